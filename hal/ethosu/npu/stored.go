package npu

import (
	"bytes"
	"math"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
	"github.com/etrun-go/etrun/hal/ethosu/npu/weights"
)

// storedWeights describes the location and encoding of an operation's weights.
type storedWeights struct {
	order   weights.Order
	region  int
	streams []span // one for each core, or one for all (fast weight streams)
	shape   weights.Shape
	limit   int64 // largest magnitude of an input
}

// ublocksU85 contains the depth of the U85's group of output channels by the number of MACs and the
// microblock (height by width: 1x1, 1x2, 1x4, 2x2, 2x4, 4x4).
var ublocksU85 = map[int][6]int{
	128:  {16, 8, 0, 0, 0, 0},
	256:  {0, 16, 8, 8, 0, 0},
	512:  {0, 0, 16, 16, 0, 0},
	1024: {0, 0, 32, 32, 16, 0},
	2048: {0, 0, 64, 64, 0, 16},
}

// cores returns the number of weight streams of an operation.
func (d *decoder) cores() int {
	if !d.u85 && d.regs.get(isa.ParallelMode) == 0 {
		return 1
	}
	return d.config.Cores()
}

// storedWeights decodes the registers for the location and encoding of weights.
func (d *decoder) storedWeights(o *kernelOp, isDepthwise bool) (*storedWeights, error) {
	r := &d.regs
	w := &storedWeights{region: r.bits(isa.WeightRegion, 0, 3), limit: o.inputLimit()}
	w.shape = weights.Shape{O: o.out.d, KH: o.window.kh, KW: o.window.kw, I: o.window.d}
	if isDepthwise {
		w.shape.I = 1
	}
	w.order = weights.Order{
		U85: d.u85, Depthwise: isDepthwise, PartKernel: r.bits(isa.KernelStride, 2, 1) == 1 && !isDepthwise,
		IFM16: o.ifm.size == 2, BlockDepth: r.m1(isa.OFMBlkDepthM1), Cores: d.cores(),
		SubY: 8, SubX: 8, StrideY: 1, StrideX: 1,
	}
	if r.bits(isa.KernelStride, 5, 1) == 1 {
		w.order.SubY, w.order.SubX = 4, 4
	}
	w.order.SubY, w.order.SubX = w.order.SubY/o.window.dilY, w.order.SubX/o.window.dilX
	var err error
	if d.u85 {
		err = d.orderU85(o, w)
	} else {
		d.orderU65(w)
	}
	if err != nil {
		return nil, err
	}
	d.weightStreams(w)
	for _, s := range w.streams {
		o.reads("weights", s)
	}
	return w, w.shape.Check()
}

// inputLimit returns the largest magnitude of an IFM element minus its zero point.
func (o *kernelOp) inputLimit() int64 {
	if o.ifm.size > 2 {
		return math.MaxInt32
	}
	low, high := typeRange(o.ifm.size, o.ifm.signed)
	zero := int64(o.ifm.zero)
	return max(high-zero, zero-low)
}

// orderU65 completes the order of the U55 and U65.
func (d *decoder) orderU65(w *storedWeights) {
	t := &w.order
	t.UBlock, t.IFMUBlock, t.IFMBlock, t.Round = 8, 8, 32, 1
	if d.config.Family == isa.U55 && d.config.MACs == 32 {
		t.UBlock = 4
	}
	if t.PartKernel || t.IFM16 {
		t.IFMBlock = 16
	}
	switch {
	case t.Depthwise:
		t.Round = 4
	case t.PartKernel && t.IFM16:
		t.Round = 2
	case t.PartKernel:
		t.Round = 4
	}
}

// orderU85 completes the order of the U85.
func (d *decoder) orderU85(o *kernelOp, w *storedWeights) error {
	t, r := &w.order, &d.regs
	micro := r.bits(isa.AccFormat, 8, 3)
	if micro < 6 {
		t.UBlock = ublocksU85[d.config.MACs][micro]
	}
	if t.UBlock == 0 {
		return isa.Malformed("microblock %d with %d MACs", micro, d.config.MACs)
	}
	t.Fast, t.Sparse = r.bits(isa.WeightFormat, 0, 1) == 1, r.bits(isa.WeightFormat, 4, 1) == 1
	if t.Fast && t.Depthwise {
		return isa.Malformed("fast weight stream of a depthwise operation")
	}
	small := d.config.MACs <= 256
	switch {
	case t.PartKernel:
		t.IFMBlock = 16
	case o.ifm.size == 4, small && t.UBlock == 16 && !t.Sparse:
		t.IFMBlock = 32
	case t.Sparse && !t.IFM16:
		t.IFMBlock = 128
	default:
		t.IFMBlock = 64
	}
	t.IFMUBlock, t.Round = t.IFMBlock, 1
	switch {
	case t.Depthwise:
		t.IFMUBlock, t.Round = 1, 10
	case t.PartKernel && t.IFM16 && !t.Sparse:
		t.IFMUBlock, t.Round = 8, 10
	case t.PartKernel && (t.IFM16 || t.Sparse):
		t.Round = 10
	case t.PartKernel:
		t.Round = 5
	}
	if t.PartKernel || t.Depthwise {
		t.StrideY, t.StrideX = o.window.strideY, o.window.strideX
	}
	switch {
	case small && !t.IFM16:
	case d.config.MACs <= 512:
		t.DepthwisePad = 2
	default:
		t.DepthwisePad = 6
	}
	return nil
}

// weightStreams decodes the locations of the streams.
func (d *decoder) weightStreams(w *storedWeights) {
	bases := [4]isa.Code{isa.WeightBase, isa.Weight1Base, isa.Weight2Base, isa.Weight3Base}
	for _, base := range bases[:w.order.Streams()] {
		at, length := d.regs.address(base), int64(d.regs.word(base+1))
		if length == 0 {
			at = 0 // the address of an unused stream is ignored
		}
		w.streams = append(w.streams, span{w.region, at, at + length})
	}
}

// decode decodes the concatenated streams of an operation.
func (w *storedWeights) decode(encoded []byte, d *weights.Decoder) (*packedWeights, error) {
	var streams [4][]byte
	at := int64(0)
	for i, s := range w.streams {
		n := s.hi - s.lo
		streams[i] = encoded[at : at+n]
		at += n
	}
	g, err := d.Decode(&w.order, w.shape, streams[:len(w.streams)])
	if err != nil {
		return nil, err
	}
	out := &packedWeights{encoded: bytes.Clone(encoded)}
	if w.order.Depthwise {
		out.transpose(g)
	} else {
		packInto(out, g.Values, g.O, g.KH*g.KW*g.I, w.limit)
	}
	return out, nil
}

func typeRange(size int, signed bool) (low, high int64) {
	switch {
	case size == 8:
		return math.MinInt64, math.MaxInt64
	case signed:
		return -1 << (8*size - 1), 1<<(8*size-1) - 1
	}
	return 0, 1<<(8*size) - 1
}
