// Package compiletest (no compatibility promise) checks lowered programs against the rules of the formats, by a reader of
// its own: it shares no code with the packages that write or load programs, except the reader of FlatBuffers. What exporters' tools
// need is read by another one.
package compiletest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/internal/flatbuf"
)

// checker collects the rules that a program breaks.
type checker struct {
	data      []byte
	beside    [][]byte // data files
	base      uint64
	segments  [][]byte
	constants []uint64 // offsets in the constant segment
	constant  []byte
	named     map[string][]byte
	layouts   map[string]string // of tensors in data files, by key
	filters   map[string]string // what the keys of filters stand for
	found     []string
	from      *program // the program that was lowered
}

// program is what a lowered program has in common with the original one.
type program struct {
	data      []byte // filters of its payloads may be those of others
	methods   []string
	operators map[string]bool
	io        []string // inputs, outputs and the names of their structure
	shared    map[[2]string]bool
	payloads  map[string]bool // of its exporter, which are not checked
	int8s     bool            // it has tensors of 8 bits: filters may be its own
}

func (c *checker) fault(rule int, format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf("rule %d: ", rule)+fmt.Sprintf(format, args...))
}

// Check returns the rules that the program to breaks, which was made of the program from. Its data files are beside it.
func Check(from, to []byte, beside ...[]byte) []string {
	old := &checker{data: from}
	old.read()
	c := &checker{data: to, from: old.summary(), beside: beside}
	c.check()
	return c.found
}

// readDataFiles reads the data files: the keys of constants.
func (c *checker) readDataFiles() {
	le := binary.LittleEndian
	for _, b := range c.beside {
		if len(b) < 48 || string(b[4:8]) != "FT01" || string(b[8:12]) != "FH01" || le.Uint64(b[32:])+le.Uint64(b[40:]) != uint64(len(b)) {
			c.fault(1, "data file of %d bytes", len(b))
			continue
		}
		var segments [][]byte
		root := flatbuf.New(b[:le.Uint64(b[16:])+le.Uint64(b[24:])], 0, 0).Root()
		flatbuf.Each(root, 1, "segments", func(t flatbuf.Table) {
			at := le.Uint64(b[32:]) + t.Uint64(0, "offset", 0)
			if at%16 != 0 {
				c.fault(1, "a segment of the data file is at %d", at)
			}
			segments = append(segments, b[at:][:t.Uint64(1, "size", 0)])
		})
		flatbuf.Each(root, 2, "named_data", func(t flatbuf.Table) { c.entry(t, segments) })
	}
}

// entry records an entry of a data file. Runtimes refuse keys that a program has, too.
func (c *checker) entry(t flatbuf.Table, segments [][]byte) {
	key := t.String(0, "key")
	if _, ok := c.named[key]; ok {
		c.fault(25, "the key %q is in the program and in a data file", key)
	}
	c.name(key, segments[t.Uint32(1, "segment_index", 0)])
	if l := t.Table(2, "tensor_layout"); l.Exists() {
		c.layouts[key] = layoutText(l.Int8(0, "scalar_type", 0), flatbuf.Slice(l.Vector(1, "sizes", 4), flatbuf.Vector.Int32),
			flatbuf.Slice(l.Vector(2, "dim_order", 1), flatbuf.Vector.Uint8))
	}
}

// layoutText identifies the layout of a tensor.
func layoutText(dtype int8, sizes []int32, order []uint8) string {
	return fmt.Sprint(dtype, sizes, order)
}

// name records named data.
func (c *checker) name(key string, data []byte) {
	if was, ok := c.named[key]; ok && !bytes.Equal(was, data) {
		c.fault(25, "the key %q is that of different bytes", key)
	}
	c.named[key] = data
}

// root returns the table Program.
func (c *checker) root() flatbuf.Table {
	size := uint64(len(c.data))
	if string(c.data[8:12]) == "eh00" {
		size = binary.LittleEndian.Uint64(c.data[16:])
	}
	return flatbuf.New(c.data[:size], 0, 0).Root()
}

// read reads the header and the segments.
func (c *checker) read() {
	le := binary.LittleEndian
	if string(c.data[4:8]) != "ET12" {
		c.fault(1, "identifier %q", c.data[4:8])
	}
	end := uint64(len(c.data))
	if string(c.data[8:12]) == "eh00" {
		if n := le.Uint32(c.data[12:]); n >= 32 {
			end = le.Uint64(c.data[24:]) + le.Uint64(c.data[32:])
		}
		c.base = le.Uint64(c.data[24:])
	}
	if end > uint64(len(c.data)) {
		c.fault(1, "segments end at %d, the file has %d bytes", end, len(c.data))
		return
	}
	root := c.root()
	flatbuf.Each(root, 4, "segments", func(t flatbuf.Table) {
		at, n := t.Uint64(0, "offset", 0), t.Uint64(1, "size", 0)
		if c.base+at+n > uint64(len(c.data)) {
			c.fault(1, "segment %d ends outside the file", len(c.segments))
			n = 0
		}
		if (c.base+at)%128 != 0 && c.from != nil {
			c.fault(1, "segment %d is at %d", len(c.segments), c.base+at)
		}
		c.segments = append(c.segments, c.data[c.base+at:c.base+at+n])
	})
	c.named, c.filters, c.layouts = make(map[string][]byte), make(map[string]string), make(map[string]string)
	flatbuf.Each(root, 7, "named_data", func(t flatbuf.Table) { c.name(t.String(0, "key"), c.segments[t.Uint32(1, "segment_index", 0)]) })
	c.readDataFiles()
}

// check checks all rules.
func (c *checker) check() {
	if string(c.data[8:12]) != "eh00" || binary.LittleEndian.Uint32(c.data[12:]) < 32 {
		c.fault(1, "header %q", c.data[8:16])
		return
	}
	c.read()
	root := c.root()
	if n := root.Vector(2, "constant_buffer", 4).Len(); n > 0 {
		c.fault(2, "constant_buffer has %d constants", n)
	}
	for _, missing := range ReadByTools(c.data) {
		c.fault(3, "%s", missing)
	}
	t := root.Table(5, "constant_segment") // without it runtimes read the older form of constants, if they still do
	c.constants = flatbuf.Slice(t.Vector(1, "offsets", 8), flatbuf.Vector.Uint64)
	at := int64(t.Uint32(0, "segment_index", 0))
	if len(c.constants) == 0 || c.constants[0] != 0 || at >= int64(len(c.segments)) {
		c.fault(2, "constants at %d in segment %d of %d, want the first at 0", c.constants, at, len(c.segments))
		return
	}
	c.constant = c.segments[at]
	for i, at := range c.constants {
		if at%16 != 0 || at > uint64(len(c.constant)) {
			c.fault(2, "constant %d at %d", i, at)
		}
	}
	flatbuf.Each(root, 1, "execution_plan", func(t flatbuf.Table) { (&plan{checker: c, t: t}).check() })
	c.compare(c.summary())
}

// compare checks what must be as in the original program.
func (c *checker) compare(now *program) {
	if !slices.Equal(now.methods, c.from.methods) {
		c.fault(25, "methods %q, want %q", now.methods, c.from.methods)
	}
	for name := range now.operators {
		if !c.from.operators[name] {
			c.fault(25, "operator %s is new", name)
		}
	}
	if !slices.Equal(now.io, c.from.io) {
		c.fault(25, "inputs and outputs %q, want %q", now.io, c.from.io)
	}
}

// summary reads what is compared.
func (c *checker) summary() *program {
	p := &program{data: c.data, operators: make(map[string]bool), shared: make(map[[2]string]bool), payloads: make(map[string]bool)}
	for _, s := range c.segments {
		p.payloads[string(s)] = true
	}
	flatbuf.Each(c.root(), 3, "backend_delegate_data", func(t flatbuf.Table) { p.payloads[string(t.Bytes(0, "data"))] = true })
	flatbuf.Each(c.root(), 1, "execution_plan", func(t flatbuf.Table) {
		p.methods = append(p.methods, t.String(0, "name"))
		flatbuf.Each(t, 6, "operators", func(o flatbuf.Table) { p.operators[o.String(0, "name")+"."+o.String(1, "overload")] = true })
		meta := t.Table(1, "container_meta_type")
		p.io = append(p.io, meta.String(0, "inputs"), meta.String(1, "outputs"))
		values := readValues(t)
		for _, list := range [...]int{3, 4} {
			for _, v := range flatbuf.Slice(t.Vector(list, "list", 4), flatbuf.Vector.Int32) {
				p.io = append(p.io, values[v].String())
			}
		}
		for i := range values {
			p.int8s = p.int8s || values[i].tag == tagTensor && values[i].dtype == 1
			for j := range i {
				if values[i].overlaps(&values[j]) {
					p.shared[pair(&values[i], &values[j])] = true
				}
			}
		}
	})
	return p
}

// pair identifies two tensors by their types.
func pair(a, b *value) [2]string {
	x, y := a.String(), b.String()
	return [2]string{min(x, y), max(x, y)}
}
