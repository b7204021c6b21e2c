package graph

import (
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Argument is one argument of a unit, as bound by the last call.
type Argument struct {
	Value *Value
	// Used are the nodes that use the bytes, as in [lowering.Workspace]; in the library all use them.
	Used lowering.Span
	// dims are the tensor's dimensions in the order of the value's, if that is not the tensor's own order; nil: it is.
	dims  []uint8
	from  *tensor.Tensor
	dtype tensor.DType
	at    xnn.Address // of the tensor's bytes
	sizes []int
	order []uint8

	Data   []byte // read or written by the engine: the tensor's bytes, or a separate buffer
	tensor []byte // the tensor's bytes
	// After copies or converts an output from data to the tensor; nil if data is the result.
	After func(*Argument)
}

// NewArguments returns the arguments of a unit; shapes and specs are those that the program declares.
func NewArguments(g *Graph, shapes []Shape, specs []*delegate.ArgSpec) []*Argument {
	args, all := make([]*Argument, len(g.Args)), make([]Argument, len(g.Args))
	for i, v := range g.Args {
		args[i] = &all[i]
		args[i].Value = &g.Values[v]
		if i < len(specs) && IsDynamic(specs[i]) && specs[i] != nil {
			args[i].dims = otherOrder(shapes[v], specs[i])
		}
	}
	return args
}

// otherOrder returns the order of an argument's dimensions in which its sizes are those of a value, if that is not its
// own: the recorded order of dimensions of size 1, which do not change the memory, is arbitrary. It returns nil if
// there is no such order, or if it is the argument's own.
func otherOrder(want Shape, a *delegate.ArgSpec) (dims []uint8) {
	if got := specShape(a); got == want || len(a.Sizes) != want.Rank || got.squeezed() != want.squeezed() {
		return nil
	}
	var some, ones []uint8 // dimensions by their size, in the order of memory
	for i := range a.Sizes {
		d := uint8(i)
		if len(a.DimOrder) == len(a.Sizes) {
			d = a.DimOrder[i]
		}
		if a.Sizes[d] == 1 {
			ones = append(ones, d)
		} else {
			some = append(some, d)
		}
	}
	for _, n := range want.Dims() {
		list := &some
		if n == 1 {
			list = &ones
		}
		dims, *list = append(dims, (*list)[0]), (*list)[1:]
	}
	return dims
}

// dimOrder returns the tensor's dimensions in the order of the value's.
func (a *Argument) dimOrder(t *tensor.Tensor) []uint8 {
	if len(a.dims) == t.Rank() && a.dims != nil {
		return a.dims
	}
	return t.DimOrder
}

// ArgumentLocation names an argument of the call for messages.
func ArgumentLocation(g *Graph, i int) string {
	if i < g.Inputs {
		return fmt.Sprintf("input %d", i)
	}
	return fmt.Sprintf("output %d", i-g.Inputs)
}

func badArgument(g *Graph, i int, format string, args ...any) error {
	return delegate.Errorf(ID, delegate.ErrArgument, ArgumentLocation(g, i), format, args...)
}

// BindArguments checks a call's arguments, computes the shapes of all values in s and resizes the
// outputs. reshaped reports whether input shapes have changed; with anew, all shapes are computed in
// any case. Each element of known is empty, or has the shapes of all values for some inputs.
func BindArguments(g *Graph, bound []*Argument, args []*tensor.Value, s []Shape, anew bool, known ...[]Shape) (reshaped bool, err error) {
	if len(args) != len(bound) {
		return false, delegate.Errorf(ID, delegate.ErrArgument, "", "%d arguments, want %d", len(args), len(bound))
	}
	for i, a := range args {
		if a.Kind != tensor.KindTensor || a.Tensor == nil {
			return false, badArgument(g, i, "got %v, want tensor", a.Kind)
		}
		if err := bound[i].checkDType(g, i, a.Tensor.DType); err != nil {
			return false, err
		}
	}
	for i, v := range g.Args[:g.Inputs] {
		p, err := bound[i].physical(g, i, args[i].Tensor)
		if err != nil {
			return false, err
		}
		if s[v] != p {
			s[v], reshaped = p, true
		}
	}
	if (reshaped || anew) && !g.recall(s, known) {
		if err := g.Infer(s); err != nil {
			return true, inCall(err)
		}
	}
	for i, v := range g.Args {
		if !g.Values[v].Input {
			if err := bound[i].resize(g, i, args[i].Tensor, g.Values[v].ArgumentShape(s[v])); err != nil {
				return reshaped, err
			}
		}
		if err := bound[i].bind(g, i, args[i].Tensor); err != nil {
			return reshaped, err
		}
	}
	for i := g.Inputs; i < len(bound); i++ {
		bound[i].separate(bound, i)
	}
	return reshaped, nil
}

// recall copies the shapes from known ones for the same inputs. It reports whether it found them.
func (g *Graph) recall(s []Shape, known [][]Shape) bool {
	for _, k := range known {
		if len(k) == len(s) && !slices.ContainsFunc(g.Args[:g.Inputs], func(v int) bool { return s[v] != k[v] }) {
			copy(s, k)
			return true
		}
	}
	return false
}

// checkDType requires that the tensor has the value's type. The indices of an argmax pool may be
// declared as int64.
func (a *Argument) checkDType(g *Graph, i int, d tensor.DType) error {
	want := a.Value.Datatype.Info().Tensor
	if d == want || d == tensor.Int64 && a.Value.Datatype == Int32 && !a.Value.Input {
		return nil
	}
	return badArgument(g, i, "got %v, want %v (%v)", d, want, a.Value.Datatype)
}

// physical returns the shape of an input's value. It is that of the tensor in memory order, unless nodes use the tensor's bytes
// in another shape. If the shape of one of fixed sizes differs from the declared one only in dimensions of size 1, which do
// not change the memory, it returns the declared one.
func (a *Argument) physical(g *Graph, i int, t *tensor.Tensor) (Shape, error) {
	if t.Rank() > xnn.MaxDims {
		return Shape{}, badArgument(g, i, "%d dimensions, at most %d", t.Rank(), xnn.MaxDims)
	}
	p, ok := memoryShape(t, a.dimOrder(t))
	if p.Rank == 0 {
		p = ShapeOf(1)
	}
	declared := a.Value.ArgumentShape(a.Value.Shape)
	if t.Dynamism == tensor.Static && p.squeezed() == declared.squeezed() {
		p, ok = declared, true
	}
	if err := p.Check(); err != nil {
		return p, badArgument(g, i, "%w", err)
	}
	if !ok {
		return p, badArgument(g, i, "sizes %v with dim order %v, declared with a size of 1", t.Sizes, t.DimOrder)
	}
	if a.Value.Viewed.Rank > 0 {
		if p != declared {
			return p, badArgument(g, i, "sizes %v, the payload has %v", p, declared)
		}
		p = a.Value.Shape
	}
	return p, nil
}

// memoryShape returns the sizes of a tensor in an order of its dimensions. ok is false if its memory has another order.
func memoryShape(t *tensor.Tensor, order []uint8) (p Shape, ok bool) {
	p = Shape{Rank: t.Rank()}
	for j, d := range order {
		p.Dim[j] = t.Sizes[d]
	}
	return p, inOrder(t, order)
}

// inOrder reports whether the dimensions of a tensor, apart from those of size 1, are in this order in memory.
func inOrder(t *tensor.Tensor, order []uint8) bool {
	j := 0
	for _, d := range t.DimOrder {
		if t.Sizes[d] == 1 {
			continue
		}
		for j < len(order) && t.Sizes[order[j]] == 1 {
			j++
		}
		if j == len(order) || order[j] != d {
			return false
		}
		j++
	}
	return true
}

// resize resizes an output to the computed shape, which is in memory order. One of fixed sizes may differ from it in
// dimensions of size 1. Its sizes before the call, those of the last one, do not matter.
func (a *Argument) resize(g *Graph, i int, t *tensor.Tensor, want Shape) error {
	if t.Rank() <= xnn.MaxDims && (t.Dynamism == tensor.Static || t.Rank() == 0) {
		if p, _ := memoryShape(t, t.DimOrder); p.squeezed() == want.squeezed() {
			return nil
		}
	}
	if t.Rank() != want.Rank {
		return badArgument(g, i, "sizes %v for a result of %v", t.Sizes, want)
	}
	var logical [xnn.MaxDims]int
	for j, d := range a.dimOrder(t) {
		logical[d] = want.Dim[j]
	}
	if err := t.Resize(logical[:t.Rank()]); err != nil {
		return badArgument(g, i, "%w", err)
	}
	if !inOrder(t, a.dimOrder(t)) {
		return badArgument(g, i, "sizes %v with dim order %v, declared with a size of 1", t.Sizes, t.DimOrder)
	}
	return nil
}

// bind binds the argument to a tensor.
func (a *Argument) bind(g *Graph, i int, t *tensor.Tensor) error {
	if len(t.Data) == 0 || len(t.Data) != t.NBytes() {
		return badArgument(g, i, "%v has %d bytes, want %d", t, len(t.Data), t.NBytes())
	}
	a.from, a.dtype, a.at = t, t.DType, xnn.AddressOf(t.Data)
	a.sizes, a.order = append(a.sizes[:0], t.Sizes...), append(a.order[:0], t.DimOrder...)
	a.Data, a.tensor, a.After = t.Data, t.Data, nil
	if t.DType == tensor.Int64 {
		a.After = widen
	}
	return nil
}

// same reports whether a tensor has the memory, type, sizes and order of the bound one.
func (a *Argument) same(t *tensor.Tensor) bool {
	if t == nil || xnn.AddressOf(t.Data) != a.at || t.DType != a.dtype || len(t.Sizes) != len(a.sizes) {
		return false
	}
	for i, n := range t.Sizes {
		if n != a.sizes[i] {
			return false
		}
	}
	return t == a.from || slices.Equal(t.DimOrder, a.order)
}

// SameArguments reports whether a unit is bound to the arguments: to the same tensors, or to others
// with the same memory, type, sizes and order.
func SameArguments(bound []*Argument, args []*tensor.Value) bool {
	if len(args) != len(bound) {
		return false
	}
	for i, a := range bound {
		if args[i].Kind != tensor.KindTensor || !a.same(args[i].Tensor) {
			return false
		}
	}
	return true
}

// Finish runs the remaining copies and conversions of outputs.
func Finish(args []*Argument) {
	for _, a := range args {
		if a.After != nil {
			a.After(a)
		}
	}
}

// separate allocates a buffer for an output whose tensor overlaps an input or an earlier output while
// both are used.
func (a *Argument) separate(all []*Argument, i int) {
	for j, other := range all {
		together := a.Used.First <= other.Used.Last && other.Used.First <= a.Used.Last
		if j != i && (j < i || other.Value.Input) && together && cpu.Overlap(a.tensor, other.tensor) {
			a.Data = tensor.AlignedBytes(len(a.tensor))
			a.After = copyOut
			if a.dtype == tensor.Int64 {
				a.After = widenAndCopyOut
			}
			return
		}
	}
}

// widen converts the 32-bit indices that the engine wrote to 64-bit ones, in place, starting with
// the last.
func widen(a *Argument) {
	wide, narrow := tensor.View[int64](a.Data), tensor.View[int32](a.Data)
	for i := len(wide) - 1; i >= 0; i-- {
		wide[i] = int64(narrow[i])
	}
}

func copyOut(a *Argument) { copy(a.tensor, a.Data) }

func widenAndCopyOut(a *Argument) {
	widen(a)
	copyOut(a)
}

// ConstantArguments makes the nodes of a repaired graph read arguments that are constants of the program as constants of the
// graph, so that they are folded and packed as such. The call has the arguments nevertheless. It returns the shapes s of the
// values, with those of the constants.
func (g *Graph) ConstantArguments(args []*delegate.ArgSpec, s []Shape) []Shape {
	if len(args) != len(g.Args) {
		return s
	}
	at := make(map[int]int) // by argument: the constant
	for k, v := range g.Args[:g.Inputs] {
		if data := constantBytes(args[k], &g.Values[v]); data != nil {
			x := g.Values[v]
			x.Arg, x.Input, x.Data, x.Lent = None, false, data, true
			at[v] = len(g.Values)
			g.Values, s = append(g.Values, x), append(s, s[v])
		}
	}
	if len(at) == 0 {
		return s
	}
	for i := range g.Nodes {
		for _, v := range g.Nodes[i].In {
			if c, ok := at[v]; ok {
				g.Nodes[i].replaceOperand(v, c)
			}
		}
	}
	return s
}

// smallConstant is the size in bytes of constants that an engine may copy, as it reads beyond their last element.
const smallConstant = 16 << 10

// constantBytes returns the bytes of an argument that is a constant of the declared type and sizes, nil for others.
func constantBytes(a *delegate.ArgSpec, x *Value) []byte {
	if a == nil || a.Const == nil || a.DType != x.Datatype.Info().Tensor || specShape(a).squeezed() != x.Shape.squeezed() {
		return nil
	}
	n := x.Datatype.Bytes(x.Shape)
	if n == 0 || len(a.Const) < n || !tensor.Aligned(a.Const, 4) || n > smallConstant && !ReadableBehind(a.Const[:n]) {
		return nil
	}
	return a.Const[:n]
}

// ReadableBehind reports whether a vector behind the last byte can be read: it is in the same memory page, or in the slice's
// capacity.
func ReadableBehind(b []byte) bool {
	const page = 4096
	last := uintptr(xnn.AddressOf(b)) + uintptr(len(b)) - 1
	return cap(b)-len(b) >= ReadBehind || last/page == (last+ReadBehind)/page
}
