package compiletest

import (
	"encoding/binary"
	"math"
	"slices"
)

// xnode is a node of a payload.
type xnode struct {
	tag      uint8
	in       []*xvalue // nil if absent
	out      *xvalue
	min, max float32
	fault    func(rule int, format string, args ...any)
}

// Tags of nodes.
const (
	tagAdd             = 1
	tagFullyConnected  = 2
	tagConv2d          = 7
	tagDepthwiseConv2d = 13
	tagMultiply        = 15
	tagSubtract        = 16
	tagConvert         = 18
	tagLeakyReLU       = 25
	tagConvTranspose2d = 39
)

// weighted are the nodes whose filter and bias may be constants, with their datatypes: input, filter, bias, output.
var weighted = map[uint8][][4]int16{
	tagFullyConnected: {{fp32, fp32, fp32, fp32}, {fp16, fp32, fp32, fp16}, {fp16, fp16, fp16, fp16},
		{qdint8, qcint8, fp32, fp32}, {qdint8, qcint8, fp32, fp16}, {qdint8, qcint4, fp32, fp32}, {qdint8, qcint4, fp32, fp16},
		{qdint8, qbint4, fp32, fp32}, {qdint8, qbint4, fp32, fp16}, {qint8, qcint8, qcint32, qint8}, {qint8, qint8, qint32, qint8},
		{qint8, qcint4, qcint32, qint8}, {fp32, qcint8, none, fp32}, {fp32, qcint4, none, fp32}},
	tagConv2d: {{fp32, fp32, fp32, fp32}, {fp16, fp32, fp32, fp16}, {qint8, qint8, qint32, qint8}, {qint8, qcint8, qcint32, qint8},
		{qdint8, qcint8, fp32, fp32}, {qdint8, qcint8, fp32, fp16}},
	tagDepthwiseConv2d: {{fp32, fp32, fp32, fp32}, {fp16, fp32, fp32, fp16}, {qint8, qint8, qint32, qint8}, {qint8, qcint8, qcint32, qint8}},
	tagConvTranspose2d: {{fp32, fp32, fp32, fp32}, {fp16, fp32, fp32, fp16}, {qint8, qint8, qint32, qint8}, {qint8, qcint8, qcint32, qint8},
		{qdint8, qcint8, fp32, fp32}},
}

var (
	// moves have results of the type, scale and zero point of their operands: transpose, reshape, slice, pad, maximum pool,
	// concatenate, resize. Global average pools may have means of another scale.
	moves = []uint8{5, 20, 35, 10, 14, 32, 33, 34, 38, 9}
	// computed8 may have 8-bit operands: add, subtract, multiply, global average pool, sigmoid, clamp, hardswish, leaky relu, elu, tanh.
	computed8 = []uint8{tagAdd, tagSubtract, tagMultiply, tagGlobalPool, 4, 6, 24, tagLeakyReLU, 29, 43}
	// conversions are from and to.
	conversions = [][2]int16{{fp32, qint8}, {qint8, fp32}, {fp16, qint8}, {qint8, fp16}, {fp32, qdint8}, {fp16, qdint8}, {qint8, qint8},
		{fp32, fp16}, {fp16, fp32}}
)

// check checks the datatypes and scales of a node.
func (n *xnode) check() {
	if n.out.datatype == qint8 && n.quantized(n.min) >= n.quantized(n.max) {
		n.fault(22, "tag %d has the bounds %v and %v, of scale %v", n.tag, n.min, n.max, n.out.scale)
	}
	n.dynamic()
	switch {
	case weighted[n.tag] != nil:
		n.product()
	case n.tag == tagConvert:
		n.convert()
	case slices.Contains(moves, n.tag):
		for _, x := range n.in {
			if x.datatype != n.out.datatype || x.scale != n.out.scale || x.zero != n.out.zero {
				n.fault(23, "tag %d moves datatype %d of scale %v and zero point %d to %d, %v, %d", n.tag, x.datatype, x.scale, x.zero,
					n.out.datatype, n.out.scale, n.out.zero)
			}
		}
	default:
		n.elementwise()
	}
}

// quantized returns a bound as an element of the output.
func (n *xnode) quantized(bound float32) float64 {
	x := math.RoundToEven(float64(bound)/float64(n.out.scale)) + float64(n.out.zero)
	return min(max(x, math.MinInt8), math.MaxInt8)
}

// dynamic checks operands that are quantized in each run.
func (n *xnode) dynamic() {
	if n.out.datatype == qdint8 && n.tag != tagConvert {
		n.fault(24, "tag %d writes a dynamic value", n.tag)
	}
	for k, x := range n.in {
		if x == nil || x.datatype != qdint8 {
			continue
		}
		x.readers = append(x.readers, n.tag)
		want := int32(3)
		if n.tag == tagFullyConnected {
			want = 1
		}
		alone := len(x.readers) == 1 || !slices.ContainsFunc(x.readers, func(t uint8) bool { return t != tagFullyConnected })
		if k > 0 || weighted[n.tag] == nil || x.nonbatch != want || !alone {
			n.fault(24, "tag %d reads dynamic value %d with %d dimensions, read by the tags %d", n.tag, x.id, x.nonbatch, x.readers)
		}
	}
}

func (n *xnode) convert() {
	from, to := n.in[0], n.out
	if !slices.Contains(conversions, [2]int16{from.datatype, to.datatype}) {
		n.fault(21, "a conversion of datatype %d to %d", from.datatype, to.datatype)
	}
	if from.datatype == qint8 && to.datatype == qint8 {
		n.ratio(from.scale/to.scale, 0x1p-8, 0x1p7)
	}
}

// ratio checks a ratio of scales.
func (n *xnode) ratio(x, least, most float32) {
	if !(x >= least && x <= most) {
		n.fault(22, "tag %d has a ratio of scales of %v, want %v to %v", n.tag, x, least, most)
	}
}

// below is the largest number less than x.
func below(x float32) float32 { return math.Nextafter32(x, 0) }

func (n *xnode) elementwise() {
	t := n.out.datatype
	if t != fp32 && t != fp16 && (t != qint8 || !slices.Contains(computed8, n.tag)) ||
		slices.ContainsFunc(n.in, func(x *xvalue) bool { return x.datatype != t }) {
		n.fault(21, "tag %d writes datatype %d, and reads %d", n.tag, t, n.in[0].datatype)
		return
	}
	if t != qint8 {
		return
	}
	switch n.tag {
	case tagAdd, tagSubtract:
		for _, x := range n.in {
			n.ratio(x.scale/n.out.scale, 0x1p-10, below(0x1p8))
		}
	case tagMultiply:
		n.ratio(n.in[0].scale*n.in[1].scale/n.out.scale, 0x1p-16, below(0x1p8))
	case tagLeakyReLU:
		n.ratio(n.in[0].scale/n.out.scale, 0x1p-8, 0x1p7)
	}
}

// product checks nodes with filters.
func (n *xnode) product() {
	in, filter, bias := n.in[0], n.in[1], n.in[2]
	if !slices.ContainsFunc(weighted[n.tag], func(r [4]int16) bool {
		return in.datatype == r[0] && filter.datatype == r[1] && (bias == nil || bias.datatype == r[2]) && n.out.datatype == r[3]
	}) {
		n.fault(21, "tag %d of the datatypes %d, %d, %d to %d", n.tag, in.datatype, filter.datatype, bias.typed(), n.out.datatype)
		return
	}
	if in.datatype != qint8 {
		return
	}
	for c, s := range filter.channels() {
		n.ratio(in.scale*s/n.out.scale, 0x1p-32, below(256))
		if bias == nil {
			continue
		}
		list := bias.channels()
		if want := in.scale * s; c >= len(list) || list[c] < math.Nextafter32(want, 0) || list[c] > math.Nextafter32(want, float32(math.Inf(1))) {
			n.fault(21, "tag %d, channel %d: the bias has the scales %v, want %v", n.tag, c, list, want)
			return
		}
	}
	if bias == nil {
		return
	}
	for b := bias.data; len(b) >= 4; b = b[4:] {
		if int32(binary.LittleEndian.Uint32(b)) == math.MinInt32 {
			n.fault(21, "tag %d: an element of the bias is -2^31", n.tag)
		}
	}
}
