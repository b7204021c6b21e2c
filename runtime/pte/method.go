package pte

import (
	"github.com/etrun-go/etrun/internal/flatbuf"
)

// methodReader reads one ExecutionPlan.
type methodReader struct {
	*programReader
	number       int // of the method
	out          Method
	values       int // number of values
	next         int // index of the current value
	lists        []listItems
	instructions int // in the chains read so far
	length       int // number of instructions of the current chain

	outside []outside // values whose places end outside their arenas
}

// required are the fields of an ExecutionPlan that every exporter writes, besides its name.
var required = [...]struct {
	id   int
	name string
}{{2, "values"}, {3, "inputs"}, {4, "outputs"}, {5, "chains"}, {8, "non_const_buffer_sizes"}}

// method reads the next method. An error behind its name is its own.
func (p *programReader) method(t flatbuf.Table) Method {
	i := p.methods
	p.methods++
	states := len(p.states)
	m := &methodReader{programReader: p, number: i, values: t.Vector(2, "values", 4).Len()}
	t.Need(0, "name")
	m.out.Name = m.name(t)
	if !t.OK() {
		return m.out
	}
	m.read(t)
	if err := t.Forget("execution_plan", i); err != nil {
		p.states = p.states[:states]
		return Method{Name: m.out.Name, Err: formatError(err)}
	}
	return m.out
}

// read reads what is behind the name.
func (m *methodReader) read(t flatbuf.Table) {
	for _, f := range required {
		t.Need(f.id, f.name)
	}
	if m.values > m.limits.Values {
		t.Failf(ErrLimit, 2, "values", "%d values, at most %d are allowed", m.values, m.limits.Values)
	}
	m.out.Arenas = m.arenas(t)
	m.out.Values = flatbuf.List(t, 2, "values", m.value)
	m.checkLists(t)
	m.out.Inputs = m.indexes(t, 3, "inputs")
	m.out.Outputs = m.indexes(t, 4, "outputs")
	m.out.Operators = flatbuf.List(t, 6, "operators", operator)
	m.out.Delegates = flatbuf.List(t, 7, "delegates", m.delegate)
	m.out.Chains = flatbuf.List(t, 5, "chains", m.chain)
	m.checkPlaces(t)
	specs := flatbuf.One(t, 1, "container_meta_type", containerSpecs)
	m.out.InSpec, m.out.OutSpec = specs[0], specs[1]
}

func (m *methodReader) name(t flatbuf.Table) string {
	name := t.String(0, "name")
	if name == "" {
		t.Failf(ErrFormat, 0, "name", "empty method name")
	}
	if m.names[name] {
		t.Failf(ErrFormat, 0, "name", "duplicate method %s", quote(name))
	}
	m.names[name] = true
	return name
}

// containerSpecs reads ContainerMetadata.
func containerSpecs(t flatbuf.Table) [2]string {
	return [2]string{t.String(0, "encoded_inp_str"), t.String(1, "encoded_out_str")}
}

func operator(t flatbuf.Table) Operator {
	return Operator{Name: t.String(0, "name"), Overload: t.String(1, "overload")}
}

// arenas reads the planned buffers; slot 0 of the list is reserved.
func (m *methodReader) arenas(t flatbuf.Table) []Arena {
	sizes := t.Vector(8, "non_const_buffer_sizes", 8)
	if sizes.Len() < 2 || !sizes.Charge() {
		return nil
	}
	arenas := make([]Arena, sizes.Len()-1)
	left := m.limits.ArenaBytes
	for i := range arenas {
		size := sizes.Int64(i + 1)
		arenas[i].Size = size
		if size < 0 {
			sizes.Failf(ErrFormat, i+1, "size %d", size)
		} else if size > left {
			sizes.Failf(ErrLimit, i+1, "size %d, planned buffers of a method may take %d bytes", size, m.limits.ArenaBytes)
		}
		left -= size
	}
	flatbuf.Each(t, 9, "non_const_buffer_device", func(t flatbuf.Table) {
		if i := ref(t, 0, "buffer_idx", "planned buffer", len(arenas)+1); i > 0 {
			arenas[i-1].Device = t.Int8(1, "device_type", 0)
			arenas[i-1].DeviceIndex = t.Int8(2, "device_index", 0)
		}
	})
	return arenas
}

func (p *programReader) delegate(t flatbuf.Table) Delegate {
	t.Need(1, "processed")
	id := t.String(0, "id")
	if id == "" {
		t.Failf(ErrFormat, 0, "id", "empty backend id")
	}
	return Delegate{
		ID:    id,
		Data:  flatbuf.One(t, 1, "processed", p.processed),
		Specs: flatbuf.List(t, 2, "compile_specs", compileSpec),
	}
}

func compileSpec(t flatbuf.Table) CompileSpec {
	return CompileSpec{Key: t.String(0, "key"), Value: t.Bytes(1, "value")}
}

// processed reads a BackendDelegateDataReference.
func (p *programReader) processed(t flatbuf.Table) []byte {
	switch location := t.Int8(0, "location", 0); location {
	case 0:
		i := t.Uint32(1, "index", 0)
		if uint64(i) < uint64(len(p.blobs)) {
			return p.blobs[i]
		}
		t.Failf(ErrFormat, 1, "index", "inline data %d, the file has %d", i, len(p.blobs))
	case 1:
		return p.at(t, 1, "index")
	default:
		t.Failf(ErrUnsupported, 0, "location", "data location %d, known are 0 (inline) and 1 (segment)", location)
	}
	return nil
}

// ref reads an i32 field that is the index of one of n items.
func ref(t flatbuf.Table, id int, name, what string, n int) int {
	i := t.Int32(id, name, 0)
	if i < 0 || int64(i) >= int64(n) {
		t.Failf(ErrFormat, id, name, "%s %d out of range [0, %d)", what, i, n)
		return 0
	}
	return int(i)
}

// indexes reads a vector of i32 value indices.
func (m *methodReader) indexes(t flatbuf.Table, id int, name string) []int {
	v := t.Vector(id, name, 4)
	if v.Len() == 0 || !v.Charge() {
		return nil
	}
	out := m.ints(v.Len())
	for i := range out {
		out[i] = m.index(v, i, int64(v.Int32(i)))
	}
	return out
}

// index checks element i of v, which is a value index.
func (m *methodReader) index(v flatbuf.Vector, i int, value int64) int {
	if value < 0 || value >= int64(m.values) {
		v.Failf(ErrFormat, i, "value %d, the method has %d", value, m.values)
		return 0
	}
	return int(value)
}
