package compiletest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/etrun-go/etrun/internal/flatbuf"
)

// payload checks one call of a payload.
type payload struct {
	*plan
	data      []byte
	args      []int32
	constants []constant
	at        uint64 // of the constants
	values    map[uint32]*xvalue
	externals []*xvalue
}

// constant is an entry of the table of constants.
type constant struct {
	offset, size uint64
	key          string
	named, used  bool
}

func (p *payload) check() {
	le := binary.LittleEndian
	if len(p.data) < 32 || string(p.data[4:8]) != "XH00" {
		p.fault(14, "header %x", p.data[:min(32, len(p.data))])
		return
	}
	flat, n := uint64(le.Uint32(p.data[10:])), uint64(le.Uint32(p.data[14:]))
	p.at = uint64(le.Uint32(p.data[18:]))
	size := le.Uint64(p.data[22:])
	if flat != 32 || p.at != 32+(n+15)/16*16 || p.at+size > uint64(len(p.data)) {
		p.fault(14, "FlatBuffer of %d at %d, constants of %d at %d, of %d", n, flat, size, p.at, len(p.data))
		return
	}
	if id := string(p.data[flat+4 : flat+8]); id != "XN01" && id != "XN00" {
		p.fault(14, "identifier %q", id)
	}
	r := flatbuf.New(p.data[flat:flat+n], 0, 0)
	p.graph(r.Root())
	if err := r.Err(); err != nil {
		p.fault(14, "%v", err)
	}
}

func (p *payload) graph(t flatbuf.Table) {
	if t.String(0, "version") != "0" || t.Has(6) || t.Has(7) {
		p.fault(14, "version %q, or an old table of constants", t.String(0, "version"))
	}
	externs := t.Uint32(3, "num_externs", 0)
	flatbuf.Each(t, 8, "constant_data", func(t flatbuf.Table) {
		p.constants = append(p.constants, constant{offset: t.Uint64(0, "offset", 0), size: t.Uint64(1, "size", 0),
			key: t.String(2, "key"), named: t.Has(2)})
	})
	if len(p.constants) == 0 || p.constants[0] != (constant{}) {
		p.fault(17, "constant 0 is not empty")
		return
	}
	p.values, p.externals = make(map[uint32]*xvalue), make([]*xvalue, externs)
	if len(p.args) != int(externs) || externs > 4096 {
		p.fault(11, "%d arguments, num_externs %d", len(p.args), externs)
		return
	}
	flatbuf.Each(t, 2, "xvalues", p.value)
	p.known()
	flatbuf.Each(t, 1, "xnodes", p.node)
	p.arguments()
	for i, c := range p.constants[1:] {
		if !c.used {
			p.fault(17, "constant %d is not used", i+1)
		}
	}
	for _, x := range p.values {
		if !x.written && x.buffer == 0 && x.flags&1 == 0 {
			p.fault(16, "no node writes value %d", x.id)
		}
	}
}

// use checks constant i, of n bytes, and returns it, and its key.
func (p *payload) use(i uint32, n uint64) (data []byte, key string) {
	if int64(i) >= int64(len(p.constants)) {
		p.fault(17, "constant %d of %d", i, len(p.constants))
		return nil, ""
	}
	c := &p.constants[i]
	c.used = true
	if c.named {
		data, ok := p.named[c.key]
		if !ok || uint64(len(data)) < n {
			p.fault(17, "constant %d has the key %q", i, c.key)
		}
		return data, c.key
	}
	if c.offset%16 != 0 || c.size != n || p.at+c.offset+c.size > uint64(len(p.data)) {
		p.fault(17, "constant %d of %d bytes at %d, want %d", i, c.size, c.offset, n)
		return nil, ""
	}
	return p.data[p.at+c.offset:][:n], ""
}

func (p *payload) value(t flatbuf.Table) {
	tag, body := t.Union(0, "xvalue")
	fields, quant := body, flatbuf.Table{}
	x := &xvalue{}
	if tag == 2 {
		fields = body.Table(0, "tensor_value")
		x.quant, quant = body.Union(1, "quant_params")
	}
	x.datatype, x.buffer = fields.Int16(0, "datatype", 0), fields.Uint32(3, "constant_buffer_idx", 0)
	x.dims = flatbuf.Slice(fields.Vector(2, "dims", 4), flatbuf.Vector.Uint32)
	x.external, x.flags, x.id = fields.Uint32(4, "external_id", 0), fields.Uint32(5, "flags", 0), fields.Uint32(6, "id_out", 0)
	if n := fields.Uint32(1, "num_dims", 0); int(n) != len(x.dims) || n == 0 || n > 6 {
		p.fault(13, "value %d has %d dims of %d", x.id, len(x.dims), n)
	}
	if bits[x.datatype] == 0 || fields.Has(7) {
		p.fault(15, "value %d has the datatype %d", x.id, x.datatype)
	}
	if p.values[x.id] != nil {
		p.fault(15, "value %d is twice", x.id)
	}
	p.values[x.id] = x
	p.external(x)
	if x.buffer > 0 {
		x.data, x.key = p.use(x.buffer, x.bytes())
	}
	p.quantization(x, quant)
}

// external checks whether a value is an argument.
func (p *payload) external(x *xvalue) {
	switch {
	case x.flags == 0 && x.external != math.MaxUint32, x.flags > 2, x.flags > 0 && x.buffer > 0:
		p.fault(12, "value %d has the flags %d and the external id %d", x.id, x.flags, x.external)
	case x.flags == 0:
	case int64(x.external) >= int64(len(p.externals)) || p.externals[x.external] != nil:
		p.fault(12, "value %d has the external id %d of %d, or another one has it", x.id, x.external, len(p.externals))
	default:
		p.externals[x.external] = x
	}
}

// quantKind is the kind of quantization of each datatype.
var quantKind = map[int16]uint8{qint8: 2, 4: 2, qint32: 2, qcint8: 1, qcint32: 1, qcint4: 1, qdint8: 3, qbint4: 4}

func (p *payload) quantization(x *xvalue, t flatbuf.Table) {
	if quantKind[x.datatype] != x.quant {
		p.fault(21, "value %d of datatype %d has quantization %d", x.id, x.datatype, x.quant)
		return
	}
	switch x.quant {
	case 1, 4:
		p.channels(x, t)
	case 2:
		x.scale, x.zero = t.Float32(0, "scale", 0), t.Int32(1, "zero_point", 0)
		wrongZero := x.datatype == qint8 && (x.zero < -128 || x.zero > 127) || x.datatype == qint32 && x.zero != 0
		if !normal(x.scale) || wrongZero {
			p.fault(19, "value %d has the scale %v and the zero point %d", x.id, x.scale, x.zero)
		}
	case 3:
		x.nonbatch = t.Int32(0, "num_nonbatch_dims", 0)
		if x.flags != 0 || x.buffer != 0 {
			p.fault(24, "value %d is an argument or a constant", x.id)
		}
	}
}

// channels checks scales per channel or group.
func (p *payload) channels(x *xvalue, t flatbuf.Table) {
	dim := int(t.Int32(1, "channel_dim", 0))
	if !t.Has(0) || t.Vector(0, "scale", 4).Len() != 0 || dim < 0 || dim >= len(x.dims) {
		p.fault(20, "value %d: an inline list of scales, or dimension %d of %d", x.id, dim, len(x.dims))
		return
	}
	id, width, want := 2, uint64(4), uint64(x.dims[dim])
	if x.quant == 4 {
		group := uint64(t.Int32(2, "group_size", 0))
		if len(x.dims) != 2 || group == 0 || group%32 != 0 || uint64(x.dims[1])%group != 0 {
			p.fault(20, "value %d of dims %d has groups of %d", x.id, x.dims, group)
			return
		}
		id, width, want = 4, 2, uint64(x.dims[0])*(uint64(x.dims[1])/group)
	}
	at := t.Uint32(id, "scale_buffer_idx", 0)
	if n := uint64(t.Uint32(id+1, "num_scales", 0)); at == 0 || n != want {
		p.fault(20, "value %d: scales in constant %d, %d of them, want %d", x.id, at, n, want)
		return
	}
	data, _ := p.use(at, width*want)
	if uint64(len(data)) < width*want {
		return
	}
	if width == 2 {
		data = bfloats(data)
	}
	x.scales = floats32(data)[:want]
	for _, s := range x.scales {
		if !normal(s) {
			p.fault(19, "value %d has the scale %v", x.id, s)
		}
	}
}

// bfloats returns bfloat16 as floats.
func bfloats(b []byte) (list []byte) {
	for ; len(b) >= 2; b = b[2:] {
		list = append(list, 0, 0, b[0], b[1])
	}
	return list
}

// layout is where a node has its operands and its output.
type layout struct {
	in  []int
	out int
}

var (
	unary       = layout{[]int{0}, 1}
	elementwise = layout{[]int{0, 1}, 2}
)

// layouts are the fields of nodes, by tag.
var layouts = map[uint8]layout{
	1: elementwise, 8: elementwise, 12: elementwise, 15: elementwise, 16: elementwise, 26: elementwise, 31: elementwise, 37: elementwise,
	3: unary, 4: unary, 6: unary, 17: unary, 18: unary, 19: unary, 22: unary, 23: unary, 24: unary, 27: unary, 28: unary, 30: unary,
	40: unary, 41: unary, 42: unary, 43: unary, 44: unary,
	2: {[]int{0, 1, 2}, 3}, 5: {[]int{2}, 3}, 7: {[]int{15, 16, 17}, 18}, 13: {[]int{15, 16, 17}, 18}, 39: {[]int{15, 16, 17}, 18},
	9: {[]int{2}, 3}, 10: {[]int{3}, 4}, 11: {[]int{10}, 11}, 14: {[]int{10}, 11}, 20: {[]int{2}, 3}, 25: {[]int{1}, 2}, 29: {[]int{1}, 2},
	32: {[]int{1, 2}, 5}, 33: {[]int{1, 2, 3}, 5}, 34: {[]int{1, 2, 3, 4}, 5}, 38: {[]int{1, 2, 3, 4, 7}, 5}, 35: {[]int{3}, 4},
}

func (p *payload) node(t flatbuf.Table) {
	tag, fields := t.Union(0, "xnode")
	l, ok := layouts[tag]
	if !ok {
		p.fault(15, "a node of tag %d", tag)
		return
	}
	n := &xnode{tag: tag, min: float32(math.Inf(-1)), max: float32(math.Inf(1)), fault: p.fault}
	if t.Has(3) {
		n.min, n.max = t.Table(3, "output_min_max").Float32(0, "output_min", 0), t.Table(3, "output_min_max").Float32(1, "output_max", 0)
	}
	for k, id := range l.in {
		x, ok := p.operand(tag, k, fields.Uint32(id, "input", 0))
		if !ok {
			return
		}
		n.in = append(n.in, x)
	}
	n.out = p.values[fields.Uint32(l.out, "output", 0)]
	if n.out == nil || n.out.written || n.out.buffer > 0 || n.out.flags&1 != 0 {
		p.fault(16, "tag %d writes a value that does not exist, or that another one writes", tag)
		return
	}
	n.out.written = true
	n.check()
	n.reshape(fields)
	if weighted[tag] != nil {
		p.filter(n)
	}
}

// operand returns operand k of a node, nil if it may be absent, and is.
func (p *payload) operand(tag uint8, k int, v uint32) (x *xvalue, ok bool) {
	isWeight := weighted[tag] != nil && k > 0
	if v == math.MaxUint32 && isWeight && k == 2 {
		return nil, true
	}
	x = p.values[v]
	switch {
	case x == nil:
		p.fault(15, "tag %d reads value %d, which does not exist", tag, v)
	case x.buffer > 0 && !isWeight:
		p.fault(18, "tag %d reads value %d, a constant", tag, v)
	case x.buffer == 0 && x.flags&1 == 0 && !x.written:
		p.fault(16, "tag %d reads value %d before it is written", tag, v)
	}
	return x, x != nil
}

// filter checks the bytes of a filter, and what its key stands for.
func (p *payload) filter(n *xnode) {
	x := n.in[1]
	own := (x.datatype == qint8 || x.datatype == qcint8) && !p.from.int8s && !bytes.Contains(p.from.data, x.data)
	if own && bytes.IndexByte(x.data, 0x80) >= 0 {
		p.fault(25, "filter %d has the element -128", x.id)
	}
	if x.key == "" {
		return
	}
	is := fmt.Sprint(n.tag, n.in[0].datatype, n.in[0].scale, n.in[0].zero, x.datatype, x.scale, x.scales)
	if was, ok := p.filters[x.key]; ok && was != is {
		p.fault(25, "the key %q is that of different filters", x.key)
	}
	p.filters[x.key] = is
}

// arguments checks the arguments of the call against the externals.
func (p *payload) arguments() {
	outputs := false
	seen := make(map[int32]bool)
	for k, x := range p.externals {
		v := p.args[k]
		if x == nil {
			p.fault(12, "no value has the external id %d", k)
			continue
		}
		isOutput := x.flags == 2
		if outputs && !isOutput {
			p.fault(12, "the input %d follows outputs", k)
		}
		outputs = outputs || isOutput
		if isOutput && seen[v] {
			p.fault(11, "value %d is an output and another argument", v)
		}
		seen[v] = true
		p.argument(k, x, &p.plan.values[v])
	}
}

func (p *payload) argument(k int, x *xvalue, a *value) {
	if a.tag != tagTensor || len(a.sizes) > 6 {
		p.fault(11, "argument %d is no tensor of at most 6 dimensions", k)
		return
	}
	p.result(k, x, a)
	if scalarType[x.datatype] != a.dtype {
		p.fault(13, "argument %d has the type %d, its value the datatype %d", k, a.dtype, x.datatype)
	}
	want := []uint32{}
	for _, n := range a.physical() {
		want = append(want, uint32(n))
	}
	if len(want) == 0 {
		want = []uint32{1}
	}
	if !slices.Equal(want, x.dims) {
		p.fault(13, "argument %d has the physical sizes %d, its value %d", k, want, x.dims)
	}
}

// known sets the sizes of arguments and constants, which the library is given.
func (p *payload) known() {
	for k, x := range p.externals {
		if v := p.args[k]; x != nil && x.flags == 1 && v >= 0 && int(v) < len(p.plan.values) {
			x.shape = p.plan.values[v].physical()
		}
	}
	for _, x := range p.values {
		for _, n := range x.dims {
			if x.buffer > 0 {
				x.shape = append(x.shape, int(n))
			}
		}
	}
}

// result checks the sizes of an output: runtimes resize the tensor to them. Static ones are refused unless they are equal.
func (p *payload) result(k int, x *xvalue, a *value) {
	want := a.physical()
	if x.flags != 2 || x.shape == nil || slices.Equal(x.shape, want) {
		return
	}
	if a.dynamism == 0 || len(x.shape) != len(want) || elements(x.shape) > elements(want) {
		p.fault(26, "argument %d has the physical sizes %d, the library computes %d", k, want, x.shape)
	}
}
