package pte

import "github.com/etrun-go/etrun/internal/flatbuf"

// Parse reads and verifies a .pte program. The Program shares data's memory, which must not change while
// it is in use. A method with a fault has an error of its own, if another method has none. Errors are
// *[FormatError].
func Parse(data []byte, limits Limits) (*Program, error) {
	if err := checkIdentifier(data, FormatPTE); err != nil {
		return nil, err
	}
	header, err := readHeader(data)
	if err != nil {
		return nil, err
	}
	body, base := data, uint64(0)
	if header != nil {
		body, base = data[:header.ProgramSize], header.SegmentBase
	}
	limits = limits.withDefaults()
	r := flatbuf.New(body, 0, limits.Tables)
	p := &programReader{segments: segments{file: data, base: base}, limits: limits, names: map[string]bool{}}
	out := p.program(r.Root())
	if err := r.Err(); err != nil {
		return nil, formatError(err)
	}
	p.settleStates(out)
	if err := out.err(); err != nil {
		return nil, err
	}
	out.Header, out.Size = header, int64(len(data))
	return out, nil
}

// programReader reads table Program and stores the parts that its methods refer to.
type programReader struct {
	segments
	limits    Limits
	inline    [][]byte // constant_buffer
	constants subsegments
	initial   []subsegments // mutable_data_segments
	blobs     [][]byte      // backend_delegate_data
	states    []initial     // with initial contents, in the order of emission
	names     map[string]bool
	methods   int // read so far
	slab      []int
}

func (p *programReader) program(t flatbuf.Table) *Program {
	t.Need(1, "execution_plan")
	p.segments.read(t, 4)
	out := &Program{Version: readVersion(t)}
	p.inline = flatbuf.List(t, 2, "constant_buffer", storage)
	p.constants = flatbuf.One(t, 5, "constant_segment", p.subsegments)
	if len(p.inline) > 0 && p.constants.Len() > 0 {
		t.Failf(ErrFormat, 2, "constant_buffer", "%d inline buffers in addition to a constant_segment of %d", len(p.inline), p.constants.Len())
	}
	p.initial = flatbuf.List(t, 6, "mutable_data_segments", p.subsegments)
	p.blobs = flatbuf.List(t, 3, "backend_delegate_data", storage)
	out.Named = p.named(t)
	out.Methods = flatbuf.List(t, 1, "execution_plan", p.method)
	return out
}

// err returns the error of the first method if all methods have one.
func (p *Program) err() error {
	for i := range p.Methods {
		if p.Methods[i].Err == nil {
			return nil
		}
	}
	if len(p.Methods) == 0 {
		return nil
	}
	return p.Methods[0].Err
}

// storage reads a table whose only field is bytes: Buffer, BackendDelegateInlineData.
func storage(t flatbuf.Table) []byte { return t.Bytes(0, "storage") }

// named reads named_data.
func (p *programReader) named(t flatbuf.Table) map[string][]byte {
	entries := map[string][]byte{}
	flatbuf.Each(t, 7, "named_data", func(t flatbuf.Table) {
		entries[newKey(t, entries)] = p.at(t, 1, "segment_index")
	})
	return entries
}

// newKey reads the key of a NamedData, which must be unique.
func newKey[T any](t flatbuf.Table, entries map[string]T) string {
	key := t.String(0, "key")
	if _, twice := entries[key]; twice {
		t.Failf(ErrFormat, 0, "key", "duplicate key %s", quote(key))
	}
	return key
}

// ints returns a slice of n ints, cut from a larger allocation: most lists of a program are short.
func (p *programReader) ints(n int) []int {
	if n > len(p.slab) {
		p.slab = make([]int, max(n, 512))
	}
	out := p.slab[:n:n]
	p.slab = p.slab[n:]
	return out
}
