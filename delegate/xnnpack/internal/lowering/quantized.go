package lowering

import (
	"math"
	"slices"

	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var quantizedLowerings = []lowerRow{
	{class: opclass.Quantize, emit: quantizeCall, anyType: true},
	{class: opclass.Dequantize, emit: dequantizeCall, anyType: true, fold: foldDequantize},
	{class: opclass.DequantizePerChannel, anyType: true, fold: foldDequantize, emit: func(*lowerCall) error {
		return refuse("per-channel scales of a tensor that is not constant, or zero points other than 0")
	}},
}

// quantization is the datatype, scale and zero point of quantized elements.
type quantization struct {
	datatype graph.Datatype
	quant    graph.Quant
}

// maxError is by how many steps of the result's scale a number of a quantized call may change. Rounding to the result changes it
// by half a step anyway.
const maxError = 0.25

// is reports whether a value has the quantization.
func (q *quantization) is(v *graph.Value) bool {
	return v.Datatype == q.datatype && v.Quant.Scale == q.quant.Scale && v.Quant.ZeroPoint == q.quant.ZeroPoint
}

// represents reports whether a number is one of those of a quantized value, up to an error that is small in the scale of to, too.
func represents(v *graph.Value, x float32, to *quantization) bool {
	d, scale := v.Datatype.Info(), float64(v.Quant.Scale)
	at := float64(x)/scale + float64(v.Quant.ZeroPoint)
	most := min(0.01, maxError*float64(to.quant.Scale)/scale)
	return at >= float64(d.MinZero) && at <= float64(d.MaxZero) && math.Abs(at-math.RoundToEven(at)) < most
}

// checkBounds checks that the scale of an operand represents bounds as exactly as that of the result does: a clamp rounds its
// bounds to the operand's scale. Bounds outside the range of the operand have no effect.
func (c *lowerCall) checkBounds(in *graph.Value, lo, hi float32) error {
	if c.to == nil || in.Quant.Scale <= c.to.quant.Scale {
		return nil
	}
	d, q := in.Datatype.Info(), &in.Quant
	least, most := float32(d.MinZero-q.ZeroPoint)*q.Scale, float32(d.MaxZero-q.ZeroPoint)*q.Scale
	if lo > least && !represents(in, lo, c.to) || hi < most && !represents(in, hi, c.to) {
		return refuse("bounds %v to %v, which the operand's scale does not represent", lo, hi)
	}
	return nil
}

func (q *quantization) equal(other *quantization) bool {
	return q.datatype == other.datatype && q.quant.Scale == other.quant.Scale && q.quant.ZeroPoint == other.quant.ZeroPoint
}

// fixedQuantization returns the quantization of a call that quantizes or dequantizes a tensor with
// constant parameters, nil for other calls.
func fixedQuantization(g *lowering.Graph, i int) *quantization {
	c := &g.Calls[i]
	if !isCall(g, i, opclass.Quantize) && !isCall(g, i, opclass.Dequantize) {
		return nil
	}
	arg := func(k int) *lowering.GraphValue { return &g.Values[c.Args[k]] }
	x := arg(0)
	if c.Op.Class == opclass.Quantize {
		x = arg(len(c.Sig.Args) - 1)
	}
	q := &quantization{datatype: graph.QInt8}
	if x.DType == tensor.Uint8 {
		q.datatype = graph.QUInt8
	}
	d, zero := q.datatype.Info(), arg(2).Int
	if x.DType != d.Tensor || arg(3).Int != int64(d.MinZero) || arg(4).Int != int64(d.MaxZero) || arg(5).Int != int64(d.Tensor) {
		return nil
	}
	if zero < int64(d.MinZero) || zero > int64(d.MaxZero) {
		return nil
	}
	q.quant = graph.Quant{Scale: float(arg(1)), ZeroPoint: int32(zero)}
	return q
}

// isTyped reports whether a dequantization of int8 states that type, that of its result if any, and bounds of the type,
// as the operator requires.
func (c *lowerCall) isTyped() bool {
	at := slices.IndexFunc(c.call.Sig.Args, func(a kernels.Arg) bool { return a.Name == "dtype" })
	if at < 2 || at+1 >= len(c.call.Sig.Args) || c.arg(at).Int != int64(tensor.Int8) {
		return false
	}
	out := c.arg(at + 1)
	return (out.Kind == tensor.None || out.Int == int64(tensor.Float32)) && c.arg(at-2).Int >= math.MinInt8 && c.arg(at-1).Int <= math.MaxInt8
}

// int8Quantization returns the quantization that all calls of the graph use for a quantized tensor,
// nil if they disagree.
func int8Quantization(g *lowering.Graph, v int) (q *quantization) {
	calls := g.Readers(v)
	if w := g.Writer(v); w >= 0 {
		calls = append([]int{w}, calls...)
	}
	for _, i := range calls {
		other := fixedQuantization(g, i)
		if other == nil || q != nil && !q.equal(other) {
			return nil
		}
		q = other
	}
	return q
}

// checkInt8 checks that float is a float32 tensor and that all calls use the same quantization for
// its quantized form, which it returns.
func (c *lowerCall) checkInt8(float, int8s int) (*quantization, error) {
	if d := c.vals[float].DType; d != tensor.Float32 {
		return nil, refuse("%v tensors", d)
	}
	q := int8Quantization(c.in, int8s)
	if q == nil {
		return nil, refuse("quantized elements of an unsupported type or range, or with several quantizations")
	}
	if err := (&graph.Value{Datatype: q.datatype, Quant: q.quant}).CheckPerTensor(""); err != nil {
		return nil, refuse("%s", ReasonOf(err))
	}
	return q, nil
}

// quantizeCall lowers a quantization. It reuses the quantized form that the tensor already has.
func quantizeCall(c *lowerCall) error {
	x, y := c.call.Args[0], c.out()
	q, err := c.checkInt8(x, y)
	if err != nil {
		return err
	}
	o := c.follow(x)
	h := c.layoutsOf(x)
	if h.int8At != [orders]int{graph.None, graph.None} {
		if from := c.int8Value(x, o); q.is(&c.Graph.Values[from]) {
			c.layoutsOf(y).at[o] = from
			return nil
		}
	}
	c.layoutsOf(y).at[o] = c.converted(c.value(x, o), q.datatype, q.quant)
	return nil
}

// dequantizeCall adds no node: readers use the quantized elements, or convert them.
func dequantizeCall(c *lowerCall) error {
	x, y := c.call.Args[0], c.out()
	if _, err := c.checkInt8(y, x); err != nil {
		return err
	}
	o := c.follow(x)
	c.layoutsOf(y).int8At[o] = c.value(x, o)
	return nil
}

// target returns the quantization of a tensor if all calls that read it quantize it in the same
// way, directly or after a clamp or a view. Otherwise it returns nil.
func (l *Lowering) target(v int) (q *quantization) {
	for _, i := range l.in.Readers(v) {
		other := fixedQuantization(l.in, i)
		if other == nil && (l.in.Calls[i].View || l.clamps(i)) {
			other = l.target(l.in.Writes(nil, i)[0])
		}
		if other == nil || q != nil && !q.equal(other) {
			return nil
		}
		q = other
	}
	if slices.Contains(l.in.Outputs, v) {
		return nil
	}
	return q
}

// clamps reports whether a call restricts quantized elements to bounds.
func (l *Lowering) clamps(i int) bool {
	row := l.loweringAt(i)
	return row != nil && row.clamps
}

// quantized lowers a call to nodes of quantized elements, if its operands have a quantized form and its result
// is only quantized. It reports whether it did.
func (l *Lowering) quantized(c *lowerCall) bool {
	read, outs := c.ins(), c.outs()
	if len(outs) > 1 {
		outs = outs[:1]
	}
	to := l.target(outs[0])
	if to == nil || !l.haveInt8(read, c.loweringAt(c.index).weights) {
		return false
	}
	trial, end := l.trial()
	defer end()
	for _, v := range read {
		for o, x := range l.layoutsOf(v).int8At {
			if x != graph.None {
				from := &l.Graph.Values[x]
				trial.layoutsOf(v).int8At[o] = trial.Builder.Value(from.Datatype, from.Shape, from.Quant)
			}
		}
	}
	if trial.attempt(c, to) != nil {
		return false
	}
	return l.newCall(c.index, to).emit(c.loweringAt(c.index)) == nil
}

// trial begins a lowering of shapes only with the same constants. end makes it reusable.
func (l *Lowering) trial() (trial *Lowering, end func()) {
	trial = New(l.in, true, l.refuses)
	own := trial.int8Constants
	trial.vals, trial.int8Constants = l.vals, l.int8Constants
	return trial, func() {
		trial.int8Constants = own
		trial.Recycle()
	}
}

// haveInt8 reports whether all tensors except weights have a quantized form, and at least one does.
func (l *Lowering) haveInt8(read []int, weights bool) bool {
	some := false
	for _, v := range read {
		if l.vals[v].IsConst() && weights {
			continue
		}
		if some = true; l.layoutsOf(v).int8At == [orders]int{graph.None, graph.None} {
			return false
		}
	}
	return some
}

// attempt lowers one call on quantized elements, and checks the resulting graph.
func (l *Lowering) attempt(c *lowerCall, to *quantization) error {
	inputs := make([]int, len(l.Graph.Values))
	for v := range inputs {
		inputs[v] = v
	}
	if err := l.newCall(c.index, to).emit(c.loweringAt(c.index)); err != nil {
		return err
	}
	y := c.outs()[0]
	o := contiguous
	if l.layoutsOf(y).int8At[o] == graph.None {
		o = channelsLast
	}
	out := l.layoutsOf(y).int8At[o]
	if out < len(inputs) {
		return nil
	}
	l.Externals(inputs, []int{out})
	g, err := l.Finish()
	if err != nil {
		return err
	}
	s, err := g.Declared()
	if err != nil {
		return err
	}
	if reason := l.refuses(g, s); reason != "" {
		return refuse("%s", reason)
	}
	return nil
}

// sampled is the number of channels of weights that a lowering of shapes only checks.
const sampled = 4

// int8Weights converts weights that are multiples of a scale per channel to int8.
func (c *lowerCall) int8Weights(s graph.Shape, channel int, data []byte) (int, error) {
	w := tensor.View[float32](data)
	channels, inner := s.Dim[channel], s.Trailing(channel+1)
	int8s, scales := allocPadded(s.Numel()), make([]float32, channels)
	row := make([]float32, 0, s.Numel()/channels)
	for k := range channels {
		if c.shapeOnly && k >= sampled {
			c.partial = true
			scales[k] = scales[0]
			continue
		}
		row = row[:0]
		for i := 0; i < len(w); i += channels * inner {
			row = append(row, w[i+k*inner:][:inner]...)
		}
		if scales[k] = commonScale(row); scales[k] == 0 {
			return graph.None, refuse("weights that are not quantized")
		}
		for i := range row {
			int8s[(i/inner*channels+k)*inner+i%inner] = byte(int8(math.RoundToEven(float64(row[i] / scales[k]))))
		}
	}
	return c.Builder.Constant(graph.QCInt8, s, graph.Quant{Scales: scales, ChannelDim: channel}, int8s), nil
}

// commonScale returns a scale of which all numbers are multiples, from -128 to 127 times, up to
// rounding. It returns 0 if there is none.
func commonScale(row []float32) float32 {
	var most float32
	for _, x := range row {
		if most = max(most, x, -x); x != x || most > math.MaxFloat32 {
			return 0
		}
	}
	if most == 0 {
		return 1
	}
	for k := 128; k > 0; k-- {
		if scale := most / float32(k); scale >= 0x1p-126 && multiples(row, scale) {
			return scale
		}
	}
	return 0
}

func multiples(row []float32, scale float32) bool {
	for _, x := range row {
		q := float32(math.RoundToEven(float64(x / scale)))
		if d := q*scale - x; q > 127 || q < -128 || max(d, -d) > max(x, -x)*0x1p-21 {
			return false
		}
	}
	return true
}

// int32Bias converts a bias to multiples of the scales of the sums. What that changes must be small
// in the result's scale.
func (c *lowerCall) int32Bias(list []float32, filter, in int) (int, error) {
	q := graph.Quant{ChannelDim: 0}
	data := allocPadded(4 * len(list))
	for i, x := range list {
		scale := c.Graph.Values[in].Quant.Scale * c.Graph.Values[filter].Quant.Scales[i]
		n := math.RoundToEven(float64(x) / float64(scale))
		if !(math.Abs(n) <= math.MaxInt32) || scale < 0x1p-126 {
			return graph.None, refuse("bias %v is outside int32 at scale %v", x, scale)
		}
		if d := math.Abs(n*float64(scale) - float64(x)); d > maxError*float64(c.to.quant.Scale) {
			return graph.None, refuse("bias %v is no multiple of scale %v of the sums", x, scale)
		}
		tensor.View[int32](data)[i] = int32(n)
		q.Scales = append(q.Scales, scale)
	}
	return c.Builder.Constant(graph.QCInt32, graph.ShapeOf(len(list)), q, data), nil
}

// float returns a number of any kind.
func float(x *lowering.GraphValue) float32 {
	switch x.Kind {
	case tensor.KindInt:
		return float32(float64(x.Int)) // as the operators round it
	case tensor.KindBool:
		if x.Bool {
			return 1
		}
		return 0
	default:
		return float32(x.Double)
	}
}
