package lowering

import (
	"slices"

	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// lowerRow is the lowering of a class of operators. emit returns an error for calls that no node supports.
type lowerRow struct {
	class     opclass.Class
	emit      func(c *lowerCall) error
	anyType   bool // emit checks the element types; otherwise all tensors must be float32, or all float16
	several   bool // several results may be read
	scalars   bool // constants without dimensions may have types other than float32
	single    bool // float16 tensors are not supported
	quantizes bool // the nodes can also compute on quantized elements
	weights   bool // if they do, their constants are weights, which are quantized, too
	bounds    bool // the nodes have bounds, which a clamp of the result becomes
	clamps    bool // the result are the operand's elements, restricted to bounds
	rows8     bool // a product that can quantize its operand row by row
	input     int  // the argument with that operand
	// fold replaces the result with a constant if the first argument is one; nil: never.
	fold func(c *lowerCall) bool
}

// lowerCall is a call that is being lowered. Its arguments are numbered as in the schema.
type lowerCall struct {
	*Lowering
	call  *lowering.GraphCall
	index int
	to    *quantization // quantization of the results; nil if floats are computed from floats
	half  bool          // the floats are float16

	reads, writes []int // see ins and outs
}

// newCall begins to lower call i of the graph, to quantized elements if to is not nil.
func (l *Lowering) newCall(i int, to *quantization) *lowerCall {
	if len(l.calls) == cap(l.calls) {
		l.calls = make([]lowerCall, 0, 16+cap(l.calls))
	}
	l.calls = append(l.calls, lowerCall{Lowering: l, call: &l.in.Calls[i], index: i, to: to})
	return &l.calls[len(l.calls)-1]
}

func (c *lowerCall) emit(row *lowerRow) error {
	if err := c.checkTensors(row); err != nil {
		return err
	}
	if err := row.emit(c); err != nil {
		return err
	}
	for _, v := range c.outs() {
		if err := c.checkResult(v); err != nil {
			return err
		}
	}
	return nil
}

// checkResult checks that the values of a tensor have its sizes, as far as those are known.
func (c *lowerCall) checkResult(v int) error {
	y, h := &c.vals[v], c.layoutsOf(v)
	for _, o := range []order{contiguous, channelsLast} {
		want := memoryShapeOf(y, o)
		for _, x := range [2]int{h.at[o], h.int8At[o]} {
			if x == graph.None {
				continue
			}
			if got := c.Graph.Values[x].Shape; got.Rank != want.Rank || y.Dynamism == tensor.Static && got != want {
				return refuse("a result of sizes %v, declared as %v", got, want)
			}
		}
	}
	return nil
}

// arg returns an argument's value.
func (c *lowerCall) arg(i int) *lowering.GraphValue { return &c.vals[c.call.Args[i]] }

func (c *lowerCall) none(i int) bool { return c.arg(i).Kind == tensor.None }

func (c *lowerCall) bool(i int) bool { return c.arg(i).Bool }

func (c *lowerCall) int(i int) int { return int(c.arg(i).Int) }

func (c *lowerCall) float(i int) float32 { return float(c.arg(i)) }

// ints returns a list of numbers, nil for None.
func (c *lowerCall) ints(i int) (list []int) {
	for _, item := range c.arg(i).Items {
		list = append(list, int(c.vals[item].Int))
	}
	return list
}

// pair returns a list of two numbers. A single number is used twice; fallback replaces an empty
// list.
func (c *lowerCall) pair(i int, fallback [2]int) [2]int {
	switch list := c.ints(i); len(list) {
	case 0:
		return fallback
	case 1:
		return [2]int{list[0], list[0]}
	default:
		return [2]int{list[0], list[1]}
	}
}

// outs returns the tensors that the call writes, including the items of a list; out is the first.
func (c *lowerCall) outs() []int {
	if c.writes == nil {
		c.writes = c.listed(c.in.Writes)
	}
	return c.writes
}

// ins returns the tensors that the call reads, including the items of a list.
func (c *lowerCall) ins() []int {
	if c.reads == nil {
		c.reads = c.listed(c.in.Reads)
	}
	return c.reads
}

// listed returns a list of the call's tensors, in the memory that the lowering has for them.
func (c *lowerCall) listed(add func(dst []int, i int) []int) []int {
	from := len(c.lists)
	c.lists = add(c.lists, c.index)
	return slices.Clip(c.lists[from:])
}

func (c *lowerCall) out() int { return c.outs()[0] }

// checkTensors rejects unsupported tensors and calls that read only constants. If there are several
// outs, all but the first must be unread, unless they are a list or the row supports several.
func (c *lowerCall) checkTensors(row *lowerRow) error {
	read, outs := c.ins(), c.outs()
	if len(outs) > 1 && !c.returnsList() && !row.several {
		if slices.ContainsFunc(outs[1:], c.wanted) {
			return refuse("results other than the first are read")
		}
		outs = outs[:1]
	}
	if len(outs) == 0 {
		return refuse("no tensor is computed")
	}
	varies, want := false, tensor.Float32
	if c.half = c.vals[outs[0]].DType == tensor.Float16 && !row.anyType && !row.single; c.half {
		want = tensor.Float16
	}
	for _, v := range slices.Concat(read, outs) {
		x := &c.vals[v]
		if err := checkTensor(x); err != nil {
			return err
		}
		scalar := row.scalars && !c.half && x.IsConst() && len(x.Sizes) == 0 && tensor.Loader[float32](x.DType) != nil
		if !row.anyType && x.DType != want && !scalar {
			return refuse("%v tensors", x.DType)
		}
	}
	for _, v := range read {
		varies = varies || !c.vals[v].IsConst()
	}
	if !varies {
		return refuse("all operands are constants")
	}
	return nil
}

// wanted reports whether another call reads a tensor or the tensor is an output.
func (l *Lowering) wanted(v int) bool {
	return len(l.in.Readers(v)) > 0 || slices.Contains(l.in.Outputs, v)
}

// returnsList reports whether the call's out argument is a list.
func (c *lowerCall) returnsList() bool {
	for i := range c.call.Sig.Args {
		if c.call.Sig.Args[i].Out {
			return c.arg(i).Kind == tensor.KindTensorList
		}
	}
	return false
}

// static returns an error if the sizes of a tensor may change.
func (c *lowerCall) static(list ...int) error {
	for _, v := range list {
		if c.vals[v].Dynamism != tensor.Static {
			return refuse("dynamic sizes, but the node stores fixed ones")
		}
	}
	return nil
}

// value returns the value of a tensor that the call reads, in a memory order.
func (c *lowerCall) value(v int, o order) int {
	if c.to != nil {
		return c.Lowering.int8Value(v, o)
	}
	return c.Lowering.value(v, o)
}

// values returns a tensor's values with the kind of elements that the call computes on.
func (c *lowerCall) values(v int) *[orders]int {
	if c.to != nil {
		return &c.layoutsOf(v).int8At
	}
	return &c.layoutsOf(v).at
}

// result adds the value of a tensor that the call computes, in a memory order.
func (c *lowerCall) result(v int, o order) int {
	y := c.made(memoryShapeOf(&c.vals[v], o))
	c.values(v)[o] = y
	return y
}

// made adds a value with the element type of the results.
func (c *lowerCall) made(s graph.Shape) int {
	if c.to != nil {
		return c.Builder.Value(c.to.datatype, s, c.to.quant)
	}
	if c.half {
		return c.Builder.Value(graph.FP16, s, graph.Quant{})
	}
	return c.Builder.Value(graph.FP32, s, graph.Quant{})
}

// put sets a value of a tensor that the call computes, in a memory order. It converts x if its
// quantization differs: nodes that move elements keep the quantization of their input.
func (c *lowerCall) put(v int, o order, x int) {
	if c.to != nil && !c.to.is(&c.Graph.Values[x]) {
		x = c.converted(x, c.to.datatype, c.to.quant)
	}
	c.values(v)[o] = x
}

// is makes a tensor equal to another one of the same sizes.
func (c *lowerCall) is(v, same int) error {
	o := c.follow(same)
	if c.to != nil {
		c.put(v, o, c.value(same, o))
		return nil
	}
	if c.layoutsOf(same).int8At == [orders]int{graph.None, graph.None} {
		c.value(same, o)
	}
	*c.layoutsOf(v) = *c.layoutsOf(same)
	return nil
}

// lowerings are the rows by class. The rows refer to the list, so init fills it.
var lowerings [opclass.Count]*lowerRow

// Supports reports whether calls of an operator may have a lowering.
func Supports(op *kernels.Op) bool { return lowerings[op.Class] != nil }

// loweringOf returns the row of a call's operator, nil if there is none.
func loweringOf(c *lowering.GraphCall) *lowerRow {
	if c.Op == nil {
		return nil
	}
	return lowerings[c.Op.Class]
}

// loweringAt returns the row of call i, nil if there is none.
func (l *Lowering) loweringAt(i int) *lowerRow {
	if i < 0 {
		return nil
	}
	return loweringOf(&l.in.Calls[i])
}

// isCall reports whether call i is one of an operator of a class.
func isCall(g *lowering.Graph, i int, class opclass.Class) bool {
	return i >= 0 && g.Calls[i].Op != nil && g.Calls[i].Op.Class == class
}

func init() {
	for _, rows := range [][]lowerRow{elementwiseLowerings, moveLowerings, matmulLowerings, convolutionLowerings, poolLowerings,
		quantizedLowerings, dynamicLowerings} {
		for i := range rows {
			lowerings[rows[i].class] = &rows[i]
		}
	}
}
