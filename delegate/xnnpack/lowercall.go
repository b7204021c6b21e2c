package xnnpack

import (
	"slices"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// lowerRow is how an operator becomes nodes. emit refuses what has no node.
type lowerRow struct {
	op      string
	emit    func(c *lowerCall) error
	anyType bool // emit looks at the element types itself; else all tensors are float32
	scalars bool // constants without dimensions may be of any type
}

// lowerings is the table, by operator. Rows refer to it, so it is filled by init.
var lowerings map[string]*lowerRow

func init() {
	lowerings = make(map[string]*lowerRow)
	for _, rows := range [][]lowerRow{elementwiseLowerings, moveLowerings, matmulLowerings, convolutionLowerings, poolLowerings} {
		for i := range rows {
			lowerings[rows[i].op] = &rows[i]
		}
	}
}

// lowerCall is a call that is being lowered. Its arguments are numbered as in the schema.
type lowerCall struct {
	*lowering
	call *delegate.GraphCall
}

func (c *lowerCall) emit(row *lowerRow) error {
	if err := c.checkTensors(row); err != nil {
		return err
	}
	return row.emit(c)
}

// arg is an argument's value.
func (c *lowerCall) arg(i int) *delegate.GraphValue { return &c.in.Values[c.call.Args[i]] }

func (c *lowerCall) none(i int) bool { return c.arg(i).Kind == tensor.None }

func (c *lowerCall) bool(i int) bool { return c.arg(i).Bool }

func (c *lowerCall) int(i int) int { return int(c.arg(i).Int) }

// float is a number of any kind.
func (c *lowerCall) float(i int) float32 {
	switch x := c.arg(i); x.Kind {
	case tensor.KindInt:
		return float32(x.Int)
	case tensor.KindBool:
		if x.Bool {
			return 1
		}
		return 0
	default:
		return float32(x.Double)
	}
}

// ints is a list of numbers, nil for None.
func (c *lowerCall) ints(i int) (list []int) {
	for _, item := range c.arg(i).Items {
		list = append(list, int(c.in.Values[item].Int))
	}
	return list
}

// pair is a list of two numbers, of which one stands for both; fallback where there is none.
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

// out is the tensor of the first out argument, or none.
func (c *lowerCall) out() int { return c.outs()[0] }

// outs are the tensors of the out arguments, or of the list that is the out argument.
func (c *lowerCall) outs() (list []int) {
	if c.call.View {
		return c.call.Args[1:2]
	}
	for i := range c.call.Sig.Args {
		if !c.call.Sig.Args[i].Out {
			continue
		}
		if x := c.arg(i); x.Kind == tensor.KindTensorList {
			list = append(list, x.Items...)
		} else {
			list = append(list, c.call.Args[i])
		}
	}
	return list
}

// tensors are the arguments that are read, lists item by item.
func (c *lowerCall) tensors() (list []int) {
	for i, v := range c.call.Args {
		if c.call.View && i > 0 || !c.call.View && (i >= len(c.call.Sig.Args) || c.call.Sig.Args[i].Out) {
			continue
		}
		switch x := &c.in.Values[v]; x.Kind {
		case tensor.KindTensor:
			list = append(list, v)
		case tensor.KindTensorList, tensor.KindOptionalTensorList:
			list = append(list, x.Items...)
		}
	}
	return list
}

// checkTensors refuses tensors that no value can be, and calls that compute nothing but
// constants. Of several outs all but the first must be unread, unless they are a list.
func (c *lowerCall) checkTensors(row *lowerRow) error {
	read, outs := c.tensors(), c.outs()
	if len(outs) > 1 && !c.listed() {
		for _, v := range outs[1:] {
			if !c.links().unread(v) {
				return refuse("its further results are read")
			}
		}
		outs = outs[:1]
	}
	varies := false
	for _, v := range slices.Concat(read, outs) {
		if v == none {
			return refuse("a list with a missing tensor")
		}
		x := &c.in.Values[v]
		if err := checkTensor(x); err != nil {
			return err
		}
		scalar := row.scalars && x.IsConst() && len(x.Sizes) == 0 && tensor.Loader[float32](x.DType) != nil
		if !row.anyType && x.DType != tensor.Float32 && !scalar {
			return refuse("%v tensors", x.DType)
		}
	}
	for _, v := range read {
		varies = varies || !c.in.Values[v].IsConst()
	}
	if !varies {
		return refuse("nothing but constants")
	}
	return nil
}

// listed reports a call whose out argument is a list.
func (c *lowerCall) listed() bool {
	return c.in.Values[c.call.Args[len(c.call.Args)-1]].Kind == tensor.KindTensorList && c.call.Sig != nil &&
		slices.ContainsFunc(c.call.Args[:len(c.call.Sig.Args)], func(v int) bool { return v == c.call.Args[len(c.call.Args)-1] })
}

func checkTensor(x *delegate.GraphValue) error {
	if len(x.Sizes) > xnn.MaxDims {
		return refuse("%d dimensions, at most %d", len(x.Sizes), xnn.MaxDims)
	}
	if _, ok := declaredOrder(x); !ok && !x.IsConst() {
		return refuse("a tensor of dim order %v", x.DimOrder)
	}
	if err := memoryShapeOf(x, contiguous).check(); err != nil {
		return refuse("a tensor of %v", err)
	}
	return nil
}

// static refuses tensors whose sizes may change.
func (c *lowerCall) static(list ...int) error {
	for _, v := range list {
		if c.in.Values[v].Dynamism != tensor.Static {
			return refuse("sizes that may change, which the node keeps")
		}
	}
	return nil
}

// result makes the value of a tensor that the call computes, in a memory order.
func (c *lowerCall) result(v int, o order) int {
	y := c.graphBuilder.value(fp32, memoryShapeOf(&c.in.Values[v], o), quant{})
	c.held[v].at[o] = y
	return y
}

// is makes a tensor the same as another one of the same sizes.
func (c *lowerCall) is(v, same int) error {
	c.value(same, c.follow(same))
	c.held[v] = c.held[same]
	return nil
}

// links are who makes and who reads the tensors of a graph.
type links struct {
	maker   []int   // the call that makes it, or none
	readers [][]int // calls, once for each argument
	output  []bool
}

func (l *lowering) links() *links {
	if l.linked == nil {
		l.linked = newLinks(l.in)
	}
	return l.linked
}

func newLinks(g *delegate.Graph) *links {
	k := &links{maker: make([]int, len(g.Values)), readers: make([][]int, len(g.Values)), output: make([]bool, len(g.Values))}
	for v := range k.maker {
		k.maker[v] = none
	}
	for _, v := range g.Outputs {
		k.output[v] = true
	}
	for i := range g.Calls {
		reads, writes := callTensors(g, &g.Calls[i])
		for _, v := range reads {
			k.readers[v] = append(k.readers[v], i)
		}
		for _, v := range writes {
			k.maker[v] = i
		}
	}
	return k
}

// callTensors are the tensors that a call reads and writes.
func callTensors(g *delegate.Graph, call *delegate.GraphCall) (reads, writes []int) {
	if call.Payload != nil {
		return call.Args[:call.PayloadInputs], call.Args[call.PayloadInputs:]
	}
	c := &lowerCall{lowering: &lowering{in: g}, call: call}
	reads = slices.DeleteFunc(c.tensors(), func(v int) bool { return v == none })
	return reads, c.outs()
}

// unread reports a tensor that nothing reads and that is no output.
func (k *links) unread(v int) bool { return len(k.readers[v]) == 0 && !k.output[v] }
