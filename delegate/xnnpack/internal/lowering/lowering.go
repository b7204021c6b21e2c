package lowering

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Lowering translates a graph of operators to a graph of nodes, call by call. Each tensor has one
// value in the new graph, or two: one in each memory order that its readers need. The second is
// computed from the first by a transpose, once.
type Lowering struct {
	graph.Builder
	in   *lowering.Graph
	vals []lowering.GraphValue // of the graph, and constants that replace results of calls
	// copies is memory for vals if they differ from the graph's, unwritten for the data of constants that is not read.
	copies        []lowering.GraphValue
	unwritten     []byte
	calls         []lowerCall           // memory for calls
	made          []bool                // memory of outputs
	byLayout      []*layouts            // by tensor, see holds
	slab          []layouts             // memory for further entries of byLayout
	int8Constants map[int]*int8Constant // quantized constants
	// shapeOnly lowerings compute only shapes: constants keep their own bytes, in any order, and nothing
	// of the size of weights is computed. deferred are the constants in another order; partial is set if
	// other constants or their scales are not final.
	shapeOnly, partial bool
	deferred           []DeferredConstant
	padded             map[paddedConstant]int // constants with leading dimensions of size 1
	done               []bool                 // by call: it is lowered
	lists              []int                  // tensors that calls read and write
	// dynamic maps tensors that were dequantized at run time to the tensors before quantization;
	// rows8 maps the latter to their quantized values.
	dynamic, rows8 map[int]int
	float32s       map[int]*lowering.GraphValue // float16 constants as float32
	refuses        func(*graph.Graph, []graph.Shape) string
}

// layouts contains a tensor's values in the new graph, one for each memory order; none if there is no
// such value yet.
type layouts struct {
	at [orders]int
	// haveInt8 are values of quantized elements that represent the same numbers.
	int8At [orders]int
}

type paddedConstant struct {
	value, rank int
	order       order
}

// order is an order of a tensor's dimensions in memory.
type order uint8

const (
	contiguous   order = iota // in ATen's order
	channelsLast              // dimension 1 innermost, for three or four dimensions
	orders
)

func (o order) other() order { return 1 - o }

// perms are the permutations of dimensions in memory, by order and rank.
var perms = func() (p [orders][xnn.MaxDims + 1][]int) {
	for rank := range xnn.MaxDims + 1 {
		for i := range rank {
			p[contiguous][rank] = append(p[contiguous][rank], i)
		}
		p[channelsLast][rank] = p[contiguous][rank]
	}
	p[channelsLast][3], p[channelsLast][4] = []int{0, 2, 1}, graph.ToChannelsLast
	return p
}()

// perm returns the dimensions from the outermost in memory to the innermost. Callers must not
// modify it.
func (o order) perm(rank int) []int { return perms[o][rank] }

// inverse returns the inverse of a permutation.
func inverse(perm []int) []int {
	out := make([]int, len(perm))
	for i, p := range perm {
		out[p] = i
	}
	return out
}

// declaredOrder returns a tensor's memory order. ok is false if values do not support it.
func declaredOrder(v *lowering.GraphValue) (o order, ok bool) {
	for _, o := range []order{contiguous, channelsLast} {
		same := len(v.DimOrder) == 0 || len(v.DimOrder) == len(v.Sizes)
		for i, d := range v.DimOrder {
			same = same && int(d) == o.perm(len(v.Sizes))[i]
		}
		if same {
			return o, true
		}
	}
	return 0, false
}

// memoryShapeOf returns the shape of a tensor's value in a memory order. Tensors without dimensions
// have one dimension of size 1.
func memoryShapeOf(v *lowering.GraphValue, o order) graph.Shape {
	if len(v.Sizes) == 0 {
		return graph.ShapeOf(1)
	}
	return graph.ShapeOf(v.Sizes...).Permuted(o.perm(len(v.Sizes)))
}

// nothing is the entry of a tensor that has no values yet.
var nothing = layouts{at: [orders]int{graph.None, graph.None}, int8At: [orders]int{graph.None, graph.None}}

// layoutsOf returns a tensor's entry. Entries are added on demand, since a lowering of one call uses
// few of a graph's tensors.
func (l *Lowering) layoutsOf(v int) *layouts {
	h := l.byLayout[v]
	if h == nil {
		if len(l.slab) == cap(l.slab) {
			l.slab = make([]layouts, 0, 16+cap(l.slab))
		}
		l.slab = append(l.slab, nothing)
		h = &l.slab[len(l.slab)-1]
		l.byLayout[v] = h
	}
	return h
}

// owns records a filter that is a copy of a constant, and that is not needed once it is packed.
func (l *Lowering) owns(data, constant []byte) {
	if len(data) > 0 && !cpu.Overlap(data, constant) {
		l.Graph.Own = append(l.Graph.Own, data)
	}
}

// NoNode is the error text for operators without a lowering.
const NoNode = "no XNNPACK node for it"

// refusal is the reason why a call cannot be lowered.
type refusal string

func (r refusal) Error() string { return string(r) }

func refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

// maxUnwritten is how many bytes that are not written a lowering keeps for the next graph.
const maxUnwritten = 1 << 16

// shapeOnlyLowerings contains lowerings of shapes only for reuse: a method needs one for each of its calls.
var shapeOnlyLowerings sync.Pool

// New returns a lowering of a graph. refuses returns why the library does not run the lowered one, "" if it does.
func New(g *lowering.Graph, shapeOnly bool, refuses func(*graph.Graph, []graph.Shape) string) *Lowering {
	if shapeOnly {
		if l, ok := shapeOnlyLowerings.Get().(*Lowering); ok {
			l.refuses = refuses
			return l.reset(g)
		}
	}
	l := &Lowering{Builder: graph.NewBuilder(), shapeOnly: shapeOnly, refuses: refuses,
		int8Constants: make(map[int]*int8Constant), padded: make(map[paddedConstant]int),
		dynamic: make(map[int]int), rows8: make(map[int]int), float32s: make(map[int]*lowering.GraphValue)}
	return l.reset(g)
}

// reset sets the graph of a new or cleared lowering.
func (l *Lowering) reset(g *lowering.Graph) *Lowering {
	l.in, l.vals = g, g.Values
	l.byLayout, l.done = resized(l.byLayout, len(g.Values)), resized(l.done, len(g.Calls))
	return l
}

// resized returns a cleared list of n elements, in the memory of list if it has enough.
func resized[T any](list []T, n int) []T {
	list = slices.Grow(list[:0], n)[:n]
	clear(list)
	return list
}

// Recycle makes a lowering of shapes only reusable. Its graph must not be used any more.
func (l *Lowering) Recycle() {
	emptyGraph(l.Graph)
	clear(l.copies)
	clear(l.calls)
	if len(l.unwritten) > maxUnwritten {
		l.unwritten = nil
	}
	l.in, l.vals, l.slab, l.calls = nil, nil, l.slab[:0], l.calls[:0]
	l.partial, l.deferred = false, nil
	l.lists = l.lists[:0]
	clear(l.int8Constants)
	clear(l.padded)
	clear(l.dynamic)
	clear(l.rows8)
	clear(l.float32s)
	shapeOnlyLowerings.Put(l)
}

// input makes a tensor an input of the graph, in the memory order that it declares.
func (l *Lowering) input(v int) {
	x := &l.vals[v]
	o, _ := declaredOrder(x)
	q := &quantization{datatype: floatOf(x)}
	if x.DType != tensor.Float32 && x.DType != tensor.Float16 {
		q = int8Quantization(l.in, v)
	}
	l.layoutsOf(v).at[o] = l.Builder.Value(q.datatype, memoryShapeOf(x, o), q.quant)
}

// floatOf returns the datatype of a tensor of floats.
func floatOf(x *lowering.GraphValue) graph.Datatype {
	if x.DType == tensor.Float16 {
		return graph.FP16
	}
	return graph.FP32
}

// value returns a tensor's value in a memory order.
func (l *Lowering) value(v int, o order) int {
	h, x := l.layoutsOf(v), &l.vals[v]
	if h.at[o] != graph.None {
		return h.at[o]
	}
	if x.IsConst() {
		h.at[o] = l.constantIn(l.numbers(v), o, len(x.Sizes))
		return h.at[o]
	}
	switch other := o.other(); {
	case h.at[other] != graph.None:
		h.at[o] = l.reordered(h.at[other], x, o)
	case h.int8At != [orders]int{graph.None, graph.None}:
		h.at[o] = l.converted(l.int8Value(v, o), graph.FP32, graph.Quant{})
	default:
		if l.input(v); h.at[o] == graph.None {
			h.at[o] = l.reordered(h.at[other], x, o)
		}
	}
	return h.at[o]
}

// int8Value returns a tensor's value of quantized elements in a memory order.
func (l *Lowering) int8Value(v int, o order) int {
	h := l.layoutsOf(v)
	if h.int8At[o] == graph.None {
		h.int8At[o] = l.reordered(h.int8At[o.other()], &l.vals[v], o)
	}
	return h.int8At[o]
}

// converted adds a value converted to another datatype or quantization.
func (l *Lowering) converted(from int, d graph.Datatype, q graph.Quant) int {
	to := l.Builder.Value(d, l.Graph.Values[from].Shape, q)
	l.Node(graph.NodeTypes[graph.TagConvert], []int{from}, to)
	return to
}

// reordered adds value from of a tensor converted to memory order o.
func (l *Lowering) reordered(from int, x *lowering.GraphValue, o order) int {
	rank := len(x.Sizes)
	was := inverse(o.other().perm(rank))
	perm := make([]int, rank)
	for i, d := range o.perm(rank) {
		perm[i] = was[d]
	}
	if x.Dynamism == tensor.Static && graph.KeepsMemory(perm, l.Graph.Values[from].Shape) {
		return l.reshaped(from, memoryShapeOf(x, o))
	}
	return l.transposed(from, perm)
}

// like adds a value with the same datatype and quantization as another one.
func (l *Lowering) like(v int, s graph.Shape) int {
	return l.Builder.Value(l.Graph.Values[v].Datatype, s, l.Graph.Values[v].Quant)
}

func (l *Lowering) transposed(from int, perm []int) int {
	to := l.like(from, l.Graph.Values[from].Shape.Permuted(perm))
	graph.Params[graph.TransposeParams](l.Node(graph.NodeTypes[graph.TagStaticTranspose], []int{from}, to)).Perm = perm
	return to
}

// reshaped returns a value of static sizes with other sizes.
func (l *Lowering) reshaped(from int, s graph.Shape) int {
	if l.Graph.Values[from].Shape == s {
		return from
	}
	to := l.like(from, s)
	graph.Params[graph.ReshapeParams](l.Node(graph.NodeTypes[graph.TagStaticReshape], []int{from}, to)).Sizes = slices.Clone(s.Dims())
	return to
}

// constantIn adds a constant in a memory order, with at least the given rank.
func (l *Lowering) constantIn(x *lowering.GraphValue, o order, rank int) int {
	dims, strides := padDims(x, rank)
	perm := o.perm(len(dims))
	s := graph.ShapeOf(1)
	if len(dims) > 0 {
		s = graph.ShapeOf(dims...).Permuted(perm)
	}
	data, same := l.relaid(x, dims, strides, perm, false)
	v := l.Builder.Constant(floatOf(x), s, graph.Quant{}, data)
	if !same && l.shapeOnly {
		l.postpone(DeferredConstant{v, x, dims, strides, perm, false})
	}
	return v
}

// padDims returns the sizes and the strides in elements of a dense tensor, with leading dimensions
// of size 1 up to a rank.
func padDims(x *lowering.GraphValue, rank int) (dims, step []int) {
	more := max(0, rank-len(x.Sizes))
	dims, step = make([]int, more+len(x.Sizes)), make([]int, more+len(x.Sizes))
	for i := range more {
		dims[i] = 1
	}
	copy(dims[more:], x.Sizes)
	stride := 1
	for i := len(x.Sizes) - 1; i >= 0; i-- {
		d := i
		if len(x.DimOrder) > 0 {
			d = int(x.DimOrder[i])
		}
		step[more+d] = stride
		stride *= x.Sizes[d]
	}
	return dims, step
}

// DeferredConstant is a constant of a lowering of shapes only, with its dimensions in another memory order.
type DeferredConstant struct {
	value            int // of the new graph
	from             *lowering.GraphValue
	dims, step, perm []int
	filter           bool // not needed once it is packed
}

// postpone adds a deferred constants. Repairs may copy those of 16 bits.
func (l *Lowering) postpone(c DeferredConstant) {
	l.deferred = append(l.deferred, c)
	l.partial = l.partial || c.from.DType == tensor.Float16
}

// FillConstants sets the data of the constants of a lowering of shapes only; blank ones are not computed.
func FillConstants(g *graph.Graph, deferred []DeferredConstant, blank bool) {
	for i := range deferred {
		c := &deferred[i]
		data, _ := relaid(c.from, c.dims, c.step, c.perm, false, blank)
		if g.Values[c.value].Data = data; c.filter {
			g.Own = append(g.Own, data)
		}
	}
}

// relaid is the function relaid as far as the lowering needs elements; read: they are read at once.
func (l *Lowering) relaid(x *lowering.GraphValue, dims, step, perm []int, read bool) (data []byte, same bool) {
	return relaid(x, dims, step, perm, l.shapeOnly && !read, l.in.DescribeOnly && !read)
}

// relaid returns the data of a constant with its dimensions in another memory order. It is the
// constant's own data if the order makes no difference, or if shapeOnly is set.
func relaid(x *lowering.GraphValue, dims, step, perm []int, shapeOnly, blank bool) (data []byte, same bool) {
	b := graph.Box{Sizes: graph.Shape{Rank: len(perm)}}
	for i, p := range perm {
		b.Sizes.Dim[i], b.From[i] = dims[p], step[p]
	}
	b.To = graph.Strides(b.Sizes)
	same = true
	for i, d := range b.Sizes.Dims() {
		same = same && (d == 1 || b.From[i] == b.To[i])
	}
	size := x.DType.Size()
	n := b.Sizes.Numel() * size
	if same || shapeOnly {
		return x.Data[:n:n], same
	}
	out := allocPadded(n)
	if !blank || n < blankBytes {
		new(strided.Copier).Copy(strided.Serial{}, size, b.Shape(), strided.Buffer{Data: out}, strided.Buffer{Data: x.Data})
	}
	return out, false
}

// blankBytes is the size from which copies of constants are not written if the graph is only described.
const blankBytes = 64 << 10

// allocPadded allocates n bytes that vectors may read past, see graph.ReadableBehind.
func allocPadded(n int) []byte { return tensor.AlignedBytes(n + graph.ReadBehind)[:n] }

// floats adds a float32 constant.
func (l *Lowering) floats(list []float32, dims ...int) int {
	b := allocPadded(4 * len(list))
	copy(tensor.View[float32](b), list)
	return l.Builder.Constant(graph.FP32, graph.ShapeOf(dims...), graph.Quant{}, b)
}

// follow returns the memory order that needs the fewest elements of the tensors to be transposed.
// Constants do not count. It returns contiguous for tensors of different ranks.
func (l *Lowering) follow(tensors ...int) order {
	turn, rank := [orders]int{}, graph.None
	for _, v := range tensors {
		x, h := &l.vals[v], l.layoutsOf(v)
		if x.IsConst() {
			continue
		}
		if rank == graph.None {
			rank = len(x.Sizes)
		}
		if n := len(x.Sizes); n != rank || n != 3 && n != 4 {
			return contiguous
		}
		o, _ := declaredOrder(x)
		for _, way := range []order{contiguous, channelsLast} {
			unknown := h.at[way] == graph.None && h.at[way.other()] == graph.None &&
				h.int8At[way] == graph.None && h.int8At[way.other()] == graph.None
			if unknown && o != way || !unknown && h.at[way] == graph.None && h.int8At[way] == graph.None {
				turn[way] += memoryShapeOf(x, way).Numel()
			}
		}
	}
	if turn[channelsLast] < turn[contiguous] || turn[channelsLast] == turn[contiguous] && turn[contiguous] > 0 {
		return channelsLast
	}
	return contiguous
}

// outputs makes tensors the outputs of the graph, each in its declared memory order. A value that
// cannot be an output, because it is an input, a constant or another output, is copied.
func (l *Lowering) outputs(list []int) (values []int, err error) {
	made := resized(l.made, len(l.Graph.Values)) // by a node, and not an output yet
	for i := range l.Graph.Nodes {
		for _, v := range l.Graph.Nodes[i].Out {
			made[v] = true
		}
	}
	follow := func() {
		for v := len(made); v < len(l.Graph.Values); v++ {
			made = append(made, l.madeBy(v))
		}
	}
	for _, v := range list {
		if err := checkTensor(&l.in.Values[v]); err != nil {
			return nil, graph.Unsupported("", "%w", err)
		}
		o, _ := declaredOrder(&l.in.Values[v])
		x := l.value(v, o)
		if follow(); !made[x] {
			y := l.like(x, l.Graph.Values[x].Shape)
			l.Node(graph.NodeTypes[graph.TagCopy], []int{x}, y)
			follow()
			x = y
		}
		made[x] = false
		values = append(values, x)
	}
	l.made = made
	return values, nil
}

// madeBy reports whether the last node computes a value.
func (l *Lowering) madeBy(v int) bool {
	n := len(l.Graph.Nodes)
	return n > 0 && slices.Contains(l.Graph.Nodes[n-1].Out, v)
}

// inputValues returns the values of tensors that input was called for.
func (l *Lowering) inputValues(list []int) (values []int) {
	for _, v := range list {
		o, _ := declaredOrder(&l.vals[v])
		values = append(values, l.layoutsOf(v).at[o])
	}
	return values
}

// wrap converts a dimension that may be negative to one counted from the outermost. It returns none
// if there is no such dimension.
func wrap(d, rank int) int {
	if d < 0 {
		d += rank
	}
	if d < 0 || d >= rank {
		return graph.None
	}
	return d
}

// ReasonOf returns the text of an error without the backend's name.
func ReasonOf(err error) string {
	if e, ok := errors.AsType[*delegate.Error](err); ok && e.Err != nil {
		return e.Err.Error()
	}
	return err.Error()
}

func checkTensor(x *lowering.GraphValue) error {
	if len(x.Sizes) > xnn.MaxDims {
		return refuse("%d dimensions, at most %d", len(x.Sizes), xnn.MaxDims)
	}
	if _, ok := declaredOrder(x); !ok && !x.IsConst() {
		return refuse("a tensor of dim order %v", x.DimOrder)
	}
	s := memoryShapeOf(x, contiguous)
	if err := s.Check(); err != nil {
		return refuse("a tensor of %v", err)
	}
	if want := s.Numel() * x.DType.Size(); x.IsConst() && len(x.Data) != want {
		return refuse("a constant of %d bytes, want %d", len(x.Data), want)
	}
	return nil
}

// emptyGraph removes values, nodes and arguments.
func emptyGraph(g *graph.Graph) {
	clear(g.Values)
	clear(g.Nodes)
	*g = graph.Graph{Version: g.Version, Values: g.Values[:0], Nodes: g.Nodes[:0], Args: g.Args[:0]}
}

// RecycleGraph makes the memory of a graph available to other lowerings. It must not be used any longer.
func RecycleGraph(g *graph.Graph) {
	emptyGraph(g)
	spareGraphs.Put(g)
}

// spareGraphs contains empty graphs with memory.
var spareGraphs sync.Pool
