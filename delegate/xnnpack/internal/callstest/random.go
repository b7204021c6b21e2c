package callstest

import (
	"fmt"
	"math"
	"slices"

	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Random builds a random graph of calls. It omits calls that fail or that are not lowered.
type Random struct {
	*Calls
	ready   []Val
	short   bool // most tensors are quantized
	accepts func(g *lowering.Graph, i int) string
}

func (w *Random) pick() Val { return w.ready[w.Rand.IntN(len(w.ready))] }

func (w *Random) sizes(v Val) []int { return w.Graph.Values[v].Sizes }

// try adds a call unless it fails or is rejected.
func (w *Random) try(op string, o Out, args ...any) {
	n := len(w.Graph.Calls)
	results := w.Call(op, []Out{o}, args...)
	w.settle(n, results)
}

func (w *Random) settle(n int, results Vals) {
	good := w.Err == nil
	for _, v := range results {
		t := w.Tensors[v]
		large := func(x float64) bool { return !(math.Abs(x) < 1e3) }
		good = good && t.Numel() > 0 && t.Numel() < 20000 && !slices.ContainsFunc(graphtest.NumbersOf(t), large)
	}
	good = good && w.accepts(w.Graph, n) == ""
	w.Err = nil
	if !good {
		w.Graph.Calls = w.Graph.Calls[:n]
		w.Renew()
		return
	}
	w.ready = append(w.ready, results...)
	w.Renew()
}

// Renew copies the graph to discard its index of readers.
func (w *Random) Renew() {
	w.Graph = &lowering.Graph{Method: w.Graph.Method, Values: w.Graph.Values, Calls: w.Graph.Calls,
		Inputs: w.Graph.Inputs, Outputs: w.Graph.Outputs}
}

// like describes a result with the rank and dim order of a tensor.
func (w *Random) like(v Val) Out {
	return Out{Rank: len(w.sizes(v)), Order: w.Graph.Values[v].DimOrder}
}

func (w *Random) grow() {
	steps := []func(x Val, sizes []int){w.unary, w.binary, w.binary, w.scalar, w.reorder, w.reshape, w.cut, w.join, w.product, w.convolution, w.convolution,
		w.rows, w.pool, w.mean, w.norm, w.copies}
	x := w.pick()
	if w.short {
		x = w.ready[w.quantize(w.Rand.IntN(len(w.ready)))]
	}
	steps[w.Rand.IntN(len(steps))](x, w.sizes(x))
	if w.short {
		w.quantize(len(w.ready) - 1)
	}
}

// quantize quantizes and dequantizes tensor i of w.ready, most of the time, and returns the index of
// the result.
func (w *Random) quantize(i int) int {
	n := len(w.Graph.Calls)
	if w.Rand.IntN(5) == 0 {
		return i
	}
	scale, zero := 0.02+0.001*float64(w.Rand.IntN(30)), w.Rand.IntN(20)-10
	codes := w.Quantize(w.ready[i], scale, zero)
	w.settle(n, Vals{w.Dequantize(codes, scale, zero)})
	return len(w.ready) - 1
}

func (w *Random) unary(x Val, sizes []int) {
	list := []struct {
		op   string
		args []any
	}{{"abs", nil}, {"neg", nil}, {"sigmoid", nil}, {"tanh", nil}, {"relu", nil}, {"hardtanh", []any{-0.5, 1.0}}, {"clamp", []any{nil, 0.7}},
		{"gelu", []any{"none"}}, {"leaky_relu", []any{0.2}}, {"elu", []any{1.0, 1, 1}}, {"sin", nil}}
	f := list[w.Rand.IntN(len(list))]
	w.try("aten::"+f.op+".out", w.like(x), append([]any{x}, f.args...)...)
}

func (w *Random) scalar(x Val, sizes []int) {
	switch w.Rand.IntN(5) {
	case 0:
		w.try("aten::mul.Scalar_out", w.like(x), x, 0.7)
	case 1:
		w.try("aten::add.Scalar_out", w.like(x), x, 0.3, 1)
	case 2:
		w.try("aten::rsub.Scalar_out", w.like(x), x, 1, 1)
	case 3:
		w.try("aten::pow.Tensor_Scalar_out", w.like(x), x, 2)
	case 4:
		if len(sizes) > 0 {
			w.try("aten::_softmax.out", w.like(x), x, w.Rand.IntN(len(sizes)), false)
		}
	}
}

func (w *Random) binary(x Val, sizes []int) {
	op := []string{"add", "sub", "mul", "maximum", "minimum"}[w.Rand.IntN(5)]
	other := w.pick()
	switch w.Rand.IntN(4) {
	case 0:
		rest := slices.Clone(sizes[min(len(sizes), w.Rand.IntN(5)):])
		for i := range rest {
			if w.Rand.IntN(2) == 0 {
				rest[i] = 1
			}
		}
		other = w.Constant(rest...)
	case 1:
		other = w.Constant(sizes...)
	case 2:
		for range 20 {
			if slices.Equal(w.sizes(other), sizes) {
				break
			}
			other = w.pick()
		}
	}
	args := []any{x, other}
	if w.Rand.IntN(2) == 0 {
		args = []any{other, x}
	}
	if op == "add" || op == "sub" {
		args = append(args, 1)
	}
	o := w.like(x)
	if n := len(w.sizes(other)); n > o.Rank {
		o = w.like(other)
	}
	w.try("aten::"+op+".out", o, args...)
}

func (w *Random) reorder(x Val, sizes []int) {
	rank := len(sizes)
	switch {
	case rank == 2 && w.Rand.IntN(2) == 0:
		w.try("aten::t_copy.out", Out{Rank: 2}, x)
	case rank == 4 && w.Rand.IntN(2) == 0:
		w.try("aten::permute_copy.out", Out{Rank: rank}, x, [][]int{{0, 2, 3, 1}, {0, 3, 1, 2}}[w.Rand.IntN(2)])
	case rank > 0 && w.Rand.IntN(2) == 0:
		w.try("aten::transpose_copy.int_out", Out{Rank: rank}, x, w.Rand.IntN(rank), -1)
	case rank > 0:
		w.try("aten::permute_copy.out", Out{Rank: rank}, x, w.Rand.Perm(rank))
	}
}

func (w *Random) reshape(x Val, sizes []int) {
	if w.Graph.Values[x].DimOrder != nil && !slices.IsSorted(w.Graph.Values[x].DimOrder) {
		return
	}
	n := w.Tensors[x].Numel()
	a := 1
	for _, d := range []int{2, 3, 4} {
		if n%d == 0 && w.Rand.IntN(2) == 0 {
			a = d
		}
	}
	switch w.Rand.IntN(6) {
	case 0:
		w.try("aten::view_copy.out", Out{Rank: 2}, x, []int{a, -1})
	case 1:
		at := len(w.Graph.Calls)
		w.settle(at, Vals{w.View(x, 1, a, n/a)})
	case 2:
		at := len(w.Graph.Calls)
		b := 1
		if n/a%2 == 0 {
			b = 2
		}
		w.settle(at, Vals{w.View(x, 1, n/a/b, a, b)})
	case 3:
		if len(sizes) < 4 {
			w.try("aten::unsqueeze_copy.out", Out{Rank: len(sizes) + 1}, x, w.Rand.IntN(len(sizes)+1))
		}
	case 4:
		if len(sizes) > 0 && sizes[0] == 1 {
			w.try("aten::squeeze_copy.dim_out", Out{Rank: len(sizes) - 1}, x, 0)
		}
	case 5:
		at := len(w.Graph.Calls)
		w.settle(at, Vals{w.View(x, slices.Clone(sizes)...)})
	}
}

func (w *Random) cut(x Val, sizes []int) {
	if len(sizes) == 0 {
		return
	}
	dim := w.Rand.IntN(len(sizes))
	from := w.Rand.IntN(sizes[dim])
	switch w.Rand.IntN(5) {
	case 0:
		w.try("aten::slice_copy.Tensor_out", w.like(x), x, dim, from, from+1+w.Rand.IntN(sizes[dim]-from), 1)
	case 1:
		w.try("aten::select_copy.int_out", Out{Rank: len(sizes) - 1}, x, dim, from)
	case 2:
		n := 1 + w.Rand.IntN(sizes[dim])
		w.try("aten::split_copy.Tensor_out", Out{Rank: len(sizes), Order: w.Graph.Values[x].DimOrder, List: (sizes[dim] + n - 1) / n}, x, n, dim)
	case 3:
		if sizes[dim] < 6 {
			w.try("aten::unbind_copy.int_out", Out{Rank: len(sizes) - 1, List: sizes[dim]}, x, dim)
		}
	case 4:
		var pad []int
		for range 2 * (1 + w.Rand.IntN(len(sizes))) {
			pad = append(pad, w.Rand.IntN(3))
		}
		w.try("aten::constant_pad_nd.out", w.like(x), x, pad, []any{0, 0.5}[w.Rand.IntN(2)])
	}
}

func (w *Random) join(x Val, sizes []int) {
	if len(sizes) == 0 {
		return
	}
	dim, parts := w.Rand.IntN(len(sizes)), Vals{x}
	for range 1 + w.Rand.IntN(7) {
		other := slices.Clone(sizes)
		other[dim] = 1 + w.Rand.IntN(3)
		if v := w.pick(); slices.Equal(w.sizes(v), sizes) {
			parts = append(parts, v)
		} else if w.Rand.IntN(2) == 0 {
			parts = append(parts, w.Constant(other...))
		}
	}
	w.try("aten::cat.out", w.like(x), parts, dim)
}

func (w *Random) product(x Val, sizes []int) {
	rank := len(sizes)
	if rank == 0 {
		return
	}
	k, n := sizes[rank-1], 1+w.Rand.IntN(6)
	w.Lo, w.Hi = -0.5, 0.5
	defer func() { w.Lo, w.Hi = -2, 2 }()
	bias := []any{nil, w.Constant(n)}[w.Rand.IntN(2)]
	switch {
	case rank == 2 && w.Rand.IntN(3) == 0:
		w.try("aten::mm.out", Out{Rank: 2}, x, w.Constant(k, n))
	case rank == 2 && w.Rand.IntN(2) == 0:
		w.try("aten::addmm.out", Out{Rank: 2}, w.Constant([][]int{{n}, {1}, {1, n}, {sizes[0], n}}[w.Rand.IntN(4)]...), x, w.Constant(k, n), 1, 1)
	case rank == 3 && w.Rand.IntN(2) == 0:
		w.try("aten::bmm.out", Out{Rank: 3}, x, w.Constant(sizes[0], k, n))
	default:
		w.try("aten::linear.out", Out{Rank: rank}, x, w.Constant(n, k), bias)
	}
}

func (w *Random) convolution(x Val, sizes []int) {
	if len(sizes) != 4 {
		return
	}
	w.Lo, w.Hi = -0.3, 0.3
	defer func() { w.Lo, w.Hi = -2, 2 }()
	o := w.like(x)
	in, to, groups := sizes[1], 1+w.Rand.IntN(6), 1
	if w.Rand.IntN(3) == 0 {
		groups, to = in, in*(1+w.Rand.IntN(2))
	}
	k, transposed := []int{1 + w.Rand.IntN(3), 1 + w.Rand.IntN(3)}, w.Rand.IntN(4) == 0
	shape := []int{to, in / groups, k[0], k[1]}
	if transposed {
		shape = []int{in, to / groups, k[0], k[1]}
	}
	filter := w.ConstantOf(w.Random(o.Order, shape...))
	if w.short && !transposed {
		filter = w.Weights(shape...)
	}
	bias := []any{nil, w.Constant(to)}[w.Rand.IntN(2)]
	w.try("aten::convolution.out", o, x, filter, bias, []int{1 + w.Rand.IntN(2), 1 + w.Rand.IntN(2)}, []int{w.Rand.IntN(2), w.Rand.IntN(2)}, []int{1, 1 + w.Rand.IntN(2)}, transposed, []int{0, 0}, groups)
}

func (w *Random) rows(x Val, sizes []int) {
	if len(sizes) != 3 {
		return
	}
	w.Lo, w.Hi = -0.3, 0.3
	defer func() { w.Lo, w.Hi = -2, 2 }()
	to := 1 + w.Rand.IntN(5)
	w.try("aten::convolution.out", Out{Rank: 3}, x, w.Constant(to, sizes[1], 1+w.Rand.IntN(3)), nil, []int{1}, []int{1}, []int{1}, false, []int{0}, 1)
}

func (w *Random) pool(x Val, sizes []int) {
	if len(sizes) != 4 {
		return
	}
	k, stride, pad := []int{1 + w.Rand.IntN(3), 2}, []int{1 + w.Rand.IntN(2), 1 + w.Rand.IntN(2)}, []int{w.Rand.IntN(2), w.Rand.IntN(2)}
	switch w.Rand.IntN(3) {
	case 0:
		w.try("aten::avg_pool2d.out", w.like(x), x, k, stride, pad, false, w.Rand.IntN(2) == 0, []any{nil, k[0] * k[1]}[w.Rand.IntN(2)])
	case 1:
		n := len(w.Graph.Calls)
		indices := Out{Rank: 4, Order: w.like(x).Order, DType: tensor.Int64}
		w.settle(n, w.Call("aten::max_pool2d_with_indices.out", []Out{w.like(x), indices}, x, k, stride, pad, []int{1, 1}, w.Rand.IntN(2) == 0)[:1])
	case 2:
		w.try("aten::upsample_bilinear2d.vec_out", w.like(x), x, []int{1 + w.Rand.IntN(9), 1 + w.Rand.IntN(9)}, w.Rand.IntN(2) == 0, nil)
	}
}

func (w *Random) mean(x Val, sizes []int) {
	if len(sizes) != 4 {
		return
	}
	switch w.Rand.IntN(3) {
	case 0:
		w.try("aten::mean.out", w.like(x), x, []int{-1, -2}, true, nil)
	case 1:
		w.try("aten::mean.out", Out{Rank: 2}, x, []int{2, 3}, false, nil)
	case 2:
		w.try("aten::_adaptive_avg_pool2d.out", w.like(x), x, []int{1, 1})
	}
}

func (w *Random) norm(x Val, sizes []int) {
	if len(sizes) < 2 {
		return
	}
	n := len(w.Graph.Calls)
	c := sizes[1]
	w.Lo, w.Hi = 0.5, 1.5
	variance := w.Constant(c)
	w.Lo, w.Hi = -2, 2
	w.settle(n, w.Call("aten::_native_batch_norm_legit_no_training.out", []Out{w.like(x), {Rank: 1}, {Rank: 1}}, x, w.Constant(c), w.Constant(c), w.Constant(c),
		variance, 0.1, 1e-5)[:1])
}

func (w *Random) copies(x Val, sizes []int) {
	if len(sizes) != 4 || w.Rand.IntN(3) == 0 {
		w.try("aten::clone.out", w.like(x), x, nil)
		return
	}
	o := [][]int{{0, 1, 2, 3}, {0, 2, 3, 1}}[w.Rand.IntN(2)]
	order := []uint8{}
	for _, d := range o {
		order = append(order, uint8(d))
	}
	w.try("dim_order_ops::_to_dim_order_copy.out", Out{Rank: 4, Order: order}, x, false, o)
}

// NewRandom returns a random graph of up to size calls. accepts returns why call i of a graph is not lowered, "" if it is.
func NewRandom(seed uint64, size int, short bool, accepts func(g *lowering.Graph, i int) string) *Random {
	w := &Random{Calls: New(seed), short: short, accepts: accepts}
	for range 1 + w.Rand.IntN(3) {
		switch w.Rand.IntN(5) {
		case 0:
			w.ready = append(w.ready, w.Input(1+w.Rand.IntN(3), 1+w.Rand.IntN(6), 1+w.Rand.IntN(8)))
		case 1:
			w.ready = append(w.ready, w.Input(1+w.Rand.IntN(5), 1+w.Rand.IntN(9)))
		case 2:
			w.ready = append(w.ready, w.InputIn(NHWC, 1+w.Rand.IntN(2), 1+w.Rand.IntN(6), 1+w.Rand.IntN(8), 1+w.Rand.IntN(8)))
		default:
			w.ready = append(w.ready, w.Input(1+w.Rand.IntN(2), 1+w.Rand.IntN(6), 1+w.Rand.IntN(8), 1+w.Rand.IntN(8)))
		}
	}
	for range 1 + w.Rand.IntN(size) {
		w.grow()
	}
	var outputs []Val
	for _, v := range w.ready {
		if !slices.Contains(w.Graph.Inputs, int(v)) && (len(w.Graph.Readers(int(v))) == 0 || w.Rand.IntN(4) == 0) {
			outputs = append(outputs, v)
		}
	}
	w.Outputs(outputs...)
	w.Renew()
	return w
}

// String lists the calls.
func (w *Random) String() (s string) {
	for i := range w.Graph.Calls {
		c := &w.Graph.Calls[i]
		s += c.Place
		for _, v := range c.Args {
			if x := &w.Graph.Values[v]; x.Kind == tensor.KindTensor {
				s += fmt.Sprintf(" %d:%v%v", v, x.Sizes, x.DimOrder)
			} else {
				var items []int64
				for _, item := range x.Items {
					items = append(items, w.Graph.Values[item].Int)
				}
				s += fmt.Sprintf(" %v", []any{nil, nil, x.Str, x.Double, x.Int, x.Bool, nil, x.Doubles, items, x.Items, nil, nil}[x.Kind])
			}
		}
		s += "\n"
	}
	return s + fmt.Sprintf("inputs %v outputs %v\n", w.Graph.Inputs, w.Graph.Outputs)
}
