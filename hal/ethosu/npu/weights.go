package npu

import (
	"bytes"
	"math"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// storedWeights is where an operation's weights are and how they are stored.
type storedWeights struct {
	order   weightOrder
	region  int
	streams []span // one for each core, or one for all (fast weight streams)
	fast    bool
	shape   [4]int // of the grid: o, kh, kw, i
	limit   int64  // largest magnitude of an input
}

// ublocksU85 gives the depth of the U85's group of output channels by the number of
// MACs and the microblock (height by width: 1x1, 1x2, 1x4, 2x2, 2x4, 4x4).
var ublocksU85 = map[int][6]int{
	128:  {16, 8, 0, 0, 0, 0},
	256:  {0, 16, 8, 8, 0, 0},
	512:  {0, 0, 16, 16, 0, 0},
	1024: {0, 0, 32, 32, 16, 0},
	2048: {0, 0, 64, 64, 0, 16},
}

// cores is the number of weight streams of an operation.
func (d *decoder) cores() int {
	if !d.u85 && d.regs.get(isa.ParallelMode) == 0 {
		return 1
	}
	return d.config.Cores()
}

// storedWeights reads the registers that say where and how weights are stored.
func (d *decoder) storedWeights(o *kernelOp, isDepthwise bool) (*storedWeights, error) {
	r := &d.regs
	w := &storedWeights{region: r.bits(isa.WeightRegion, 0, 3), limit: o.inputLimit()}
	w.shape = [4]int{o.out.d, o.window.kh, o.window.kw, o.window.d}
	if isDepthwise {
		w.shape[3] = 1
	}
	w.order = weightOrder{
		u85: d.u85, depthwise: isDepthwise, partKernel: r.bits(isa.KernelStride, 2, 1) == 1 && !isDepthwise,
		ifm16: o.ifm.size == 2, blockDepth: r.m1(isa.OFMBlkDepthM1), cores: d.cores(),
		subY: 8, subX: 8, strideY: 1, strideX: 1,
	}
	if r.bits(isa.KernelStride, 5, 1) == 1 {
		w.order.subY, w.order.subX = 4, 4
	}
	w.order.subY, w.order.subX = w.order.subY/o.window.dilY, w.order.subX/o.window.dilX
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
	return w, checkGrid(w.shape)
}

// maxWeights is the largest number of weights of one operation.
const maxWeights = 1 << 28

func checkGrid(shape [4]int) error {
	n := int64(shape[0])
	for _, s := range shape[1:] {
		if n *= int64(s); n > maxWeights { // at most 2^28 times 2^16
			return isa.Unsupported("weights of %v, at most %d", shape, maxWeights)
		}
	}
	return nil
}

// inputLimit is the largest magnitude of an element of the IFM less its zero point.
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
	t.ublock, t.ifmUBlock, t.ifmBlock, t.round = 8, 8, 32, 1
	if d.config.Family == isa.U55 && d.config.MACs == 32 {
		t.ublock = 4
	}
	if t.partKernel || t.ifm16 {
		t.ifmBlock = 16
	}
	switch {
	case t.depthwise:
		t.round = 4
	case t.partKernel && t.ifm16:
		t.round = 2
	case t.partKernel:
		t.round = 4
	}
}

// orderU85 completes the order of the U85.
func (d *decoder) orderU85(o *kernelOp, w *storedWeights) error {
	t, r := &w.order, &d.regs
	micro := r.bits(isa.AccFormat, 8, 3)
	if micro < 6 {
		t.ublock = ublocksU85[d.config.MACs][micro]
	}
	if t.ublock == 0 {
		return isa.Malformed("microblock %d with %d MACs", micro, d.config.MACs)
	}
	w.fast, t.sparse = r.bits(isa.WeightFormat, 0, 1) == 1, r.bits(isa.WeightFormat, 4, 1) == 1
	if w.fast && t.depthwise {
		return isa.Malformed("fast weight stream of a depthwise operation")
	}
	small := d.config.MACs <= 256
	switch {
	case t.partKernel:
		t.ifmBlock = 16
	case o.ifm.size == 4, small && t.ublock == 16 && !t.sparse:
		t.ifmBlock = 32
	case t.sparse && !t.ifm16:
		t.ifmBlock = 128
	default:
		t.ifmBlock = 64
	}
	t.ifmUBlock, t.round = t.ifmBlock, 1
	switch {
	case t.depthwise:
		t.ifmUBlock, t.round = 1, 10
	case t.partKernel && t.ifm16 && !t.sparse:
		t.ifmUBlock, t.round = 8, 10
	case t.partKernel && (t.ifm16 || t.sparse):
		t.round = 10
	case t.partKernel:
		t.round = 5
	}
	if t.partKernel || t.depthwise {
		t.strideY, t.strideX = o.window.strideY, o.window.strideX
	}
	switch {
	case small && !t.ifm16:
	case d.config.MACs <= 512:
		t.dwPad = 2
	default:
		t.dwPad = 6
	}
	return nil
}

// weightStreams reads where the streams are.
func (d *decoder) weightStreams(w *storedWeights) {
	n := w.order.cores
	if w.fast {
		n = 1
	}
	bases := [4]isa.Code{isa.WeightBase, isa.Weight1Base, isa.Weight2Base, isa.Weight3Base}
	for _, base := range bases[:n] {
		at, length := d.regs.address(base), int64(d.regs.word(base+1))
		if length == 0 {
			at = 0 // the address of an unused stream means nothing
		}
		w.streams = append(w.streams, span{w.region, at, at + length})
	}
}

// weightReader decodes streams; it keeps its memory from one to the next.
type weightReader struct {
	mlw    mlw
	values []int16
	budget int // weights that may still be decoded
}

// decode decodes the streams of an operation, given one after the other.
func (w *storedWeights) decode(encoded []byte, r *weightReader) (*weights, error) {
	g := &grid{o: w.shape[0], kh: w.shape[1], kw: w.shape[2], i: w.shape[3]}
	n := g.o * g.kh * g.kw * g.i
	if r.budget -= n; r.budget < 0 {
		return nil, errBudget
	}
	g.v = make([]int16, n)
	if err := w.read(g, encoded, r); err != nil {
		return nil, err
	}
	out := &weights{encoded: bytes.Clone(encoded)}
	if w.order.depthwise {
		out.transpose(g)
	} else {
		pack(out, g.v, g.o, g.kh*g.kw*g.i, w.limit)
	}
	return out, nil
}

// read fills the grid from the streams of all cores.
func (w *storedWeights) read(g *grid, encoded []byte, r *weightReader) error {
	if w.fast {
		return w.readFast(g, encoded, r)
	}
	for core, span := range w.streams {
		n := span.hi - span.lo
		s := &weightStream{reader: r, more: true}
		r.mlw.reset(encoded[:n])
		encoded = encoded[n:]
		if err := w.readCore(g, s, core); err != nil {
			return err
		}
		if err := s.rest(); err != nil {
			return err
		}
	}
	return nil
}

func (w *storedWeights) readCore(g *grid, s *weightStream, core int) error {
	if w.order.u85 {
		return w.order.readU85(g, s, core)
	}
	return w.order.readU65(g, s, core)
}

// readFast reads the one stream of a fast weight decoder. What is left of its last
// bytes means nothing.
func (w *storedWeights) readFast(g *grid, encoded []byte, r *weightReader) error {
	parts, err := w.splitFast(encoded, r)
	if err != nil {
		return err
	}
	left := 0
	for core := range parts {
		s := &weightStream{reader: r, values: parts[core]}
		if err := w.readCore(g, s, core); err != nil {
			return err
		}
		left += len(s.values) - s.at
	}
	if left > 4*fwdAlign {
		return isa.Malformed("fast weight stream with %d weights too many", left)
	}
	return nil
}

// splitFast takes the one stream of a fast weight decoder apart: blocks come from
// each core in turn.
func (w *storedWeights) splitFast(encoded []byte, r *weightReader) ([][]int16, error) {
	values, err := decodeFWD(encoded, &r.budget)
	if err != nil {
		return nil, err
	}
	t := &w.order
	out, block := make([][]int16, t.cores), t.ublock*t.ifmUBlock*t.round/t.cores
	for i := 0; len(values) > 0; i++ {
		n := min(block, len(values))
		out[i%t.cores] = append(out[i%t.cores], values[:n]...)
		values = values[n:]
	}
	return out, nil
}

// transpose lays out depthwise weights: [ky][kx][channel].
func (w *weights) transpose(g *grid) {
	k := g.kh * g.kw
	w.o, w.k, w.taps = g.o, k, make([]int32, len(g.v))
	for o := range g.o {
		for i := range k {
			w.taps[i*g.o+o] = int32(g.v[o*k+i])
		}
	}
}

// weightsFromMap makes IFM2 the weights of the operation that runs.
func (o *kernelOp) weightsFromMap(r *Run) {
	n := o.out.d * o.window.d
	r.matrix = grow(r.matrix, n)
	r.read(&o.ifm2, r.matrix, 0, 0, o.out.d)
	pack(&r.dynamic, r.matrix, o.out.d, o.window.d, o.inputLimit())
	r.weights = &r.dynamic
}
