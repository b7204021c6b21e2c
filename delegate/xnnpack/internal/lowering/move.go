package lowering

import (
	"slices"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var moveLowerings = []lowerRow{
	{class: opclass.Copy, emit: sameCall, quantizes: true},
	{class: opclass.Expand, emit: expandCall, quantizes: true},

	{class: opclass.Permute, emit: func(c *lowerCall) error { return c.permute(c.permutation()) }, quantizes: true, fold: foldsPermute},
	{class: opclass.T, emit: func(c *lowerCall) error { return c.permute(c.matrix()) }, quantizes: true,
		fold: func(c *lowerCall) bool { return foldPermute(c, c.matrix()) }},
	{class: opclass.Transpose, emit: func(c *lowerCall) error { return c.permute(c.swap(c.int(1), c.int(2))) }, quantizes: true,
		fold: func(c *lowerCall) bool { return foldPermute(c, c.swap(c.int(1), c.int(2))) }},

	{class: opclass.View, emit: viewCopyCall, quantizes: true},
	{class: opclass.Unsqueeze, emit: reshapeCall, quantizes: true},
	{class: opclass.Squeeze, emit: reshapeCall, quantizes: true},

	{class: opclass.Cat, emit: catCall, quantizes: true},
	{class: opclass.Slice, emit: sliceCall, quantizes: true},
	{class: opclass.Narrow, emit: narrowCall, quantizes: true},
	{class: opclass.Select, emit: selectCall, quantizes: true},
	{class: opclass.Split, emit: func(c *lowerCall) error { return c.split(c.int(2)) }},
	{class: opclass.SplitWithSizes, emit: func(c *lowerCall) error { return c.split(c.int(2)) }},
	{class: opclass.Unbind, emit: func(c *lowerCall) error { return c.split(c.int(1)) }},
	{class: opclass.ConstantPad, emit: padCall, quantizes: true},
}

// viewLowering lowers views without an operator: the same bytes with other sizes.
var viewLowering = lowerRow{emit: (*lowerCall).view}

// sameCall lowers copies. The result has the memory order that its own tensor declares.
func sameCall(c *lowerCall) error {
	if x, y := c.arg(0), &c.vals[c.out()]; !slices.Equal(x.Sizes, y.Sizes) {
		return refuse("sizes %v repeated to %v", x.Sizes, y.Sizes)
	}
	return c.is(c.out(), c.call.Args[0])
}

// expandCall lowers a repetition that repeats nothing. If sizes may change, each must be left unchanged: those that are
// declared are equal if a size of 1 is repeated at other sizes only.
func expandCall(c *lowerCall) error {
	x, y := c.call.Args[0], c.out()
	if c.static(x, y) != nil {
		for _, n := range c.ints(1) {
			if n != -1 {
				return refuse("dynamic sizes, repeated to %d", n)
			}
		}
	}
	return sameCall(c)
}

// swap returns the permutation that exchanges two dimensions, nil if one of them does not exist.
func (c *lowerCall) swap(a, b int) []int {
	rank := len(c.arg(0).Sizes)
	perm := slices.Clone(contiguous.perm(rank))
	if a, b = wrap(a, rank), wrap(b, rank); a < 0 || b < 0 {
		return nil
	}
	perm[a], perm[b] = perm[b], perm[a]
	return perm
}

// matrix returns the permutation that transposes a matrix, nil for other tensors.
func (c *lowerCall) matrix() []int {
	if len(c.arg(0).Sizes) != 2 {
		return nil
	}
	return c.swap(0, 1)
}

// permutation returns the second argument with nonnegative dimensions.
func (c *lowerCall) permutation() (perm []int) {
	for _, d := range c.ints(1) {
		perm = append(perm, wrap(d, len(c.arg(0).Sizes)))
	}
	return perm
}

func foldsPermute(c *lowerCall) bool { return foldPermute(c, c.permutation()) }

// permute transposes a value that the argument already has. A permutation between the memory orders
// adds no node.
func (c *lowerCall) permute(perm []int) error {
	x, y := c.call.Args[0], c.out()
	rank := len(c.arg(0).Sizes)
	if !slices.Equal(slices.Sorted(slices.Values(perm)), contiguous.perm(rank)) {
		return refuse("permutation %v of %d dimensions", perm, rank)
	}
	if rank == 0 {
		return c.is(y, x)
	}
	c.value(x, c.follow(x))
	var from, best = graph.None, []int(nil)
	for _, in := range []order{contiguous, channelsLast} {
		if c.values(x)[in] == graph.None {
			continue
		}
		at := inverse(in.perm(rank))
		for _, out := range []order{contiguous, channelsLast} {
			way := make([]int, rank)
			for i, d := range out.perm(rank) {
				way[i] = at[perm[d]]
			}
			if slices.IsSorted(way) {
				c.put(y, out, c.values(x)[in])
				return nil
			}
			if out == contiguous {
				from, best = c.values(x)[in], way
			}
		}
	}
	c.put(y, contiguous, c.transposed(from, best))
	return nil
}

// view lowers a reshape of the bytes in memory. It reshapes the quantized form if there is one.
func (c *lowerCall) view() error {
	x, y := c.call.Args[0], c.call.Args[1]
	if err := c.static(x, y); err != nil {
		return err
	}
	from, _ := declaredOrder(&c.vals[x])
	to, _ := declaredOrder(&c.vals[y])
	if a, b := memoryShapeOf(c.arg(0), from), memoryShapeOf(c.arg(1), to); a.Numel() != b.Numel() {
		return refuse("sizes %v for an input of sizes %v", b, a)
	}
	if c.layoutsOf(x).int8At != nothing.int8At {
		c.layoutsOf(y).int8At[to] = c.reshaped(c.int8Value(x, from), memoryShapeOf(&c.vals[y], to))
		return nil
	}
	c.put(y, to, c.reshaped(c.value(x, from), memoryShapeOf(&c.vals[y], to)))
	return nil
}

// reshapeCall reshapes a tensor to the result's sizes.
func reshapeCall(c *lowerCall) error {
	x, y := c.call.Args[0], c.out()
	if slices.Equal(c.arg(0).Sizes, c.vals[y].Sizes) && c.arg(0).Dynamism == tensor.Static {
		return c.is(y, x)
	}
	if err := c.static(x, y); err != nil {
		return err
	}
	to := memoryShapeOf(&c.vals[y], contiguous)
	if from := memoryShapeOf(c.arg(0), contiguous); from.Numel() != to.Numel() {
		return refuse("sizes %v for an input of sizes %v", to, from)
	}
	c.put(y, contiguous, c.reshaped(c.value(x, contiguous), to))
	return nil
}

// viewCopyCall lowers a reshape. If sizes may change, the sizes that the call contains are constant
// and at most one is inferred.
func viewCopyCall(c *lowerCall) error {
	x, y := c.call.Args[0], c.out()
	if c.static(x, y) == nil {
		return reshapeCall(c)
	}
	want := c.ints(1)
	if len(want) == 0 {
		return refuse("dynamic sizes of a tensor of one element")
	}
	for i, d := range want {
		if d == -1 {
			want[i] = 0
		} else if d < 1 {
			return refuse("size %d", d)
		}
	}
	in := c.value(x, contiguous)
	to := c.like(in, memoryShapeOf(&c.vals[y], contiguous))
	graph.Params[graph.ReshapeParams](c.Node(graph.NodeTypes[graph.TagStaticReshape], []int{in}, to)).Sizes = want
	c.put(y, contiguous, to)
	return nil
}

// catCall concatenates up to five values per node.
func catCall(c *lowerCall) error {
	list, y := c.arg(0).Items, c.out()
	rank := len(c.vals[y].Sizes)
	axis := wrap(c.int(1), rank)
	if axis < 0 || len(list) == 0 {
		return refuse("%d tensors along dimension %d of %d", len(list), c.int(1), rank)
	}
	for _, v := range list {
		if v == graph.None || len(c.vals[v].Sizes) != rank {
			return refuse("tensors of different ranks, or a missing one")
		}
	}
	if len(list) == 1 {
		return c.is(y, list[0])
	}
	o := c.follow(list...)
	var parts []int
	for _, v := range list {
		x := c.value(v, o)
		if c.to != nil && !c.to.is(&c.Graph.Values[x]) {
			x = c.converted(x, c.to.datatype, c.to.quant)
		}
		parts = append(parts, x)
	}
	c.put(y, o, c.concatenated(parts, slices.Index(o.perm(rank), axis)))
	return nil
}

// concatenated concatenates values along a dimension in memory.
func (c *lowerCall) concatenated(parts []int, axis int) int {
	for len(parts) > 1 {
		var joined []int
		for group := range slices.Chunk(parts, 5) {
			joined = append(joined, c.joined(group, axis))
		}
		parts = joined
	}
	return parts[0]
}

func (c *lowerCall) joined(parts []int, axis int) int {
	if len(parts) == 1 {
		return parts[0]
	}
	s := c.Graph.Values[parts[0]].Shape
	for _, v := range parts[1:] {
		s.Dim[axis] += c.Graph.Values[v].Shape.Dim[axis]
	}
	y := c.like(parts[0], s)
	name := []string{2: "Concatenate2", 3: "Concatenate3", 4: "Concatenate4", 5: "Concatenate5"}[len(parts)]
	graph.Params[graph.ConcatenateParams](c.Node(nodeNamed(name), slices.Clone(parts), y)).Axis = axis
	return y
}

// part returns a range of a tensor's elements along one dimension, as a value in a memory order.
func (c *lowerCall) part(v int, o order, dim, from, n int) int {
	x := c.value(v, o)
	rank := len(c.vals[v].Sizes)
	s := c.Graph.Values[x].Shape
	at := slices.Index(o.perm(rank), dim)
	if s.Dim[at] == n {
		return x
	}
	p := graph.SliceParams{Offsets: make([]int, rank), Sizes: slices.Clone(s.Dims())}
	p.Offsets[at], p.Sizes[at] = from, n
	s.Dim[at] = n
	y := c.like(x, s)
	*graph.Params[graph.SliceParams](c.Node(nodeNamed("StaticSlice"), []int{x}, y)) = p
	return y
}

// slice makes y a part of the first argument.
func (c *lowerCall) slice(y, dim, from, n int) error {
	x := c.call.Args[0]
	if err := c.static(x, y); err != nil {
		return err
	}
	if from < 0 || n < 1 || from+n > c.arg(0).Sizes[dim] {
		return refuse("%d elements at %d of %d", n, from, c.arg(0).Sizes[dim])
	}
	o := c.follow(x)
	c.put(y, o, c.part(x, o, dim, from, n))
	return nil
}

func sliceCall(c *lowerCall) error {
	sizes := c.arg(0).Sizes
	dim := wrap(c.int(1), len(sizes))
	if dim < 0 {
		return refuse("dimension %d of %d", c.int(1), len(sizes))
	}
	if c.int(4) != 1 {
		return refuse("step %d, want 1", c.int(4))
	}
	bound := func(i, none int) int {
		if c.none(i) {
			return none
		}
		x := c.arg(i).Int
		if x < 0 {
			x += int64(sizes[dim])
		}
		return int(min(max(x, 0), int64(sizes[dim])))
	}
	from := bound(2, 0)
	return c.slice(c.out(), dim, from, bound(3, sizes[dim])-from)
}

func narrowCall(c *lowerCall) error {
	return c.indexed(func(dim, from int) error { return c.slice(c.out(), dim, from, c.int(3)) })
}

// indexed calls f with argument 1, a dimension, and argument 2, an index in it, which may be negative in the program.
func (c *lowerCall) indexed(f func(dim, at int) error) error {
	sizes := c.arg(0).Sizes
	dim := wrap(c.int(1), len(sizes))
	if dim < 0 {
		return refuse("dimension %d of %d", c.int(1), len(sizes))
	}
	at := c.int(2)
	if at < 0 {
		at += sizes[dim]
	}
	return f(dim, at)
}

// selected makes y the elements at one index of a dimension, without that dimension.
func (c *lowerCall) selected(y, dim, at int) error {
	x := c.call.Args[0]
	if err := c.static(x, y); err != nil {
		return err
	}
	if at < 0 || at >= c.arg(0).Sizes[dim] {
		return refuse("element %d of %d", at, c.arg(0).Sizes[dim])
	}
	c.put(y, contiguous, c.reshaped(c.part(x, contiguous, dim, at, 1), memoryShapeOf(&c.vals[y], contiguous)))
	return nil
}

func selectCall(c *lowerCall) error {
	return c.indexed(func(dim, at int) error { return c.selected(c.out(), dim, at) })
}

// split computes the outs that are read. They are consecutive along a dimension. Outs of lower rank
// are single elements of it.
func (c *lowerCall) split(dim int) error {
	sizes := c.arg(0).Sizes
	at := wrap(dim, len(sizes))
	if at < 0 {
		return refuse("dimension %d of %d", dim, len(sizes))
	}
	from := 0
	for _, v := range c.outs() {
		n := 1
		single := len(c.vals[v].Sizes) < len(sizes)
		if !single {
			n = c.vals[v].Sizes[at]
		}
		switch {
		case !c.wanted(v):
		case single:
			if err := c.selected(v, at, from); err != nil {
				return err
			}
		default:
			if err := c.slice(v, at, from, n); err != nil {
				return err
			}
		}
		from += n
	}
	return nil
}

// padCall lowers a padding with a constant. The first two paddings are those of the last dimension.
func padCall(c *lowerCall) error {
	x, y, list := c.call.Args[0], c.out(), c.ints(1)
	rank := len(c.arg(0).Sizes)
	if len(list)%2 != 0 || len(list) > 2*rank {
		return refuse("%d paddings of %d dimensions", len(list), rank)
	}
	o := c.follow(x)
	before, after := make([]int, rank), make([]int, rank)
	perm := o.perm(rank)
	for i := range len(list) / 2 {
		at := slices.Index(perm, rank-1-i)
		if before[at], after[at] = list[2*i], list[2*i+1]; before[at] < 0 || after[at] < 0 {
			return refuse("padding below 0")
		}
		if before[at] > graph.MaxElements || after[at] > graph.MaxElements {
			return refuse("padding of more than %d elements", graph.MaxElements)
		}
	}
	if len(list) == 0 || rank == 0 {
		return c.is(y, x)
	}
	in := c.value(x, o)
	if v := &c.Graph.Values[in]; c.to != nil && !c.to.is(v) && !represents(v, c.float(2), c.to) {
		return refuse("padding by %v, which the operand's scale does not represent", c.float(2))
	}
	to := c.like(in, memoryShapeOf(&c.vals[y], o))
	n := c.Node(graph.NodeTypes[graph.TagStaticConstantPad], []int{in}, to)
	*graph.Params[graph.PadParams](n) = graph.PadParams{Before: before, After: after, Value: c.float(2)}
	c.put(y, o, to)
	return nil
}
