package xnnpack

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// callMaker builds a random graph of calls. It omits calls that fail or that Accepts rejects.
type callMaker struct {
	*calls
	ready   []val
	refused map[string]int
	short   bool // most tensors are quantized
}

func (w *callMaker) pick() val { return w.ready[w.r.IntN(len(w.ready))] }

func (w *callMaker) sizes(v val) []int { return w.g.Values[v].Sizes }

// try adds a call unless it fails or is rejected.
func (w *callMaker) try(op string, o out, args ...any) {
	n := len(w.g.Calls)
	results := w.call(op, []out{o}, args...)
	w.settle(n, results)
}

func (w *callMaker) settle(n int, results vals) {
	good := w.err == nil
	for _, v := range results {
		t := w.tensors[v]
		good = good && t.Numel() > 0 && t.Numel() < 20000 && !slices.ContainsFunc(graphtest.NumbersOf(t), func(x float64) bool { return !(math.Abs(x) < 1e3) })
	}
	if good {
		reason := Backend{}.Accepts(w.g, n)
		if reason != "" {
			w.refused[w.g.Calls[n].Place+": "+reason]++
			good = false
		}
	}
	w.err = nil
	if !good {
		w.g.Calls = w.g.Calls[:n]
		w.renew()
		return
	}
	w.ready = append(w.ready, results...)
	w.renew()
}

// renew copies the graph to discard its index of readers.
func (w *callMaker) renew() {
	w.g = &lowering.Graph{Method: w.g.Method, Values: w.g.Values, Calls: w.g.Calls, Inputs: w.g.Inputs, Outputs: w.g.Outputs}
}

// like describes a result with the rank and dim order of a tensor.
func (w *callMaker) like(v val) out {
	return out{rank: len(w.sizes(v)), order: w.g.Values[v].DimOrder}
}

func (w *callMaker) grow() {
	steps := []func(x val, sizes []int){w.unary, w.binary, w.binary, w.scalar, w.reorder, w.reshape, w.cut, w.join, w.product, w.convolution, w.convolution,
		w.rows, w.pool, w.mean, w.norm, w.copies}
	x := w.pick()
	if w.short {
		x = w.ready[w.quantize(w.r.IntN(len(w.ready)))]
	}
	steps[w.r.IntN(len(steps))](x, w.sizes(x))
	if w.short {
		w.quantize(len(w.ready) - 1)
	}
}

// quantize quantizes and dequantizes tensor i of w.ready, most of the time, and returns the index of
// the result.
func (w *callMaker) quantize(i int) int {
	n := len(w.g.Calls)
	if w.r.IntN(5) == 0 {
		return i
	}
	scale, zero := 0.02+0.001*float64(w.r.IntN(30)), w.r.IntN(20)-10
	codes := w.codes(w.ready[i], scale, zero)
	w.settle(n, vals{w.numbers(codes, scale, zero)})
	return len(w.ready) - 1
}

func (w *callMaker) unary(x val, sizes []int) {
	list := []struct {
		op   string
		args []any
	}{{"abs", nil}, {"neg", nil}, {"sigmoid", nil}, {"tanh", nil}, {"relu", nil}, {"hardtanh", []any{-0.5, 1.0}}, {"clamp", []any{nil, 0.7}},
		{"gelu", []any{"none"}}, {"leaky_relu", []any{0.2}}, {"elu", []any{1.0, 1, 1}}, {"sin", nil}}
	f := list[w.r.IntN(len(list))]
	w.try("aten::"+f.op+".out", w.like(x), append([]any{x}, f.args...)...)
}

func (w *callMaker) scalar(x val, sizes []int) {
	switch w.r.IntN(5) {
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
			w.try("aten::_softmax.out", w.like(x), x, w.r.IntN(len(sizes)), false)
		}
	}
}

func (w *callMaker) binary(x val, sizes []int) {
	op := []string{"add", "sub", "mul", "maximum", "minimum"}[w.r.IntN(5)]
	other := w.pick()
	switch w.r.IntN(4) {
	case 0:
		rest := slices.Clone(sizes[min(len(sizes), w.r.IntN(5)):])
		for i := range rest {
			if w.r.IntN(2) == 0 {
				rest[i] = 1
			}
		}
		other = w.constant(rest...)
	case 1:
		other = w.constant(sizes...)
	case 2:
		for range 20 {
			if slices.Equal(w.sizes(other), sizes) {
				break
			}
			other = w.pick()
		}
	}
	args := []any{x, other}
	if w.r.IntN(2) == 0 {
		args = []any{other, x}
	}
	if op == "add" || op == "sub" {
		args = append(args, 1)
	}
	o := w.like(x)
	if n := len(w.sizes(other)); n > o.rank {
		o = w.like(other)
	}
	w.try("aten::"+op+".out", o, args...)
}

func (w *callMaker) reorder(x val, sizes []int) {
	rank := len(sizes)
	switch {
	case rank == 2 && w.r.IntN(2) == 0:
		w.try("aten::t_copy.out", out{rank: 2}, x)
	case rank == 4 && w.r.IntN(2) == 0:
		w.try("aten::permute_copy.out", out{rank: rank}, x, [][]int{{0, 2, 3, 1}, {0, 3, 1, 2}}[w.r.IntN(2)])
	case rank > 0 && w.r.IntN(2) == 0:
		w.try("aten::transpose_copy.int_out", out{rank: rank}, x, w.r.IntN(rank), -1)
	case rank > 0:
		w.try("aten::permute_copy.out", out{rank: rank}, x, w.r.Perm(rank))
	}
}

func (w *callMaker) reshape(x val, sizes []int) {
	if w.g.Values[x].DimOrder != nil && !slices.IsSorted(w.g.Values[x].DimOrder) {
		return
	}
	n := w.tensors[x].Numel()
	a := 1
	for _, d := range []int{2, 3, 4} {
		if n%d == 0 && w.r.IntN(2) == 0 {
			a = d
		}
	}
	switch w.r.IntN(6) {
	case 0:
		w.try("aten::view_copy.out", out{rank: 2}, x, []int{a, -1})
	case 1:
		at := len(w.g.Calls)
		w.settle(at, vals{w.view(x, 1, a, n/a)})
	case 2:
		at := len(w.g.Calls)
		b := 1
		if n/a%2 == 0 {
			b = 2
		}
		w.settle(at, vals{w.view(x, 1, n/a/b, a, b)})
	case 3:
		if len(sizes) < 4 {
			w.try("aten::unsqueeze_copy.out", out{rank: len(sizes) + 1}, x, w.r.IntN(len(sizes)+1))
		}
	case 4:
		if len(sizes) > 0 && sizes[0] == 1 {
			w.try("aten::squeeze_copy.dim_out", out{rank: len(sizes) - 1}, x, 0)
		}
	case 5:
		at := len(w.g.Calls)
		w.settle(at, vals{w.view(x, slices.Clone(sizes)...)})
	}
}

func (w *callMaker) cut(x val, sizes []int) {
	if len(sizes) == 0 {
		return
	}
	dim := w.r.IntN(len(sizes))
	from := w.r.IntN(sizes[dim])
	switch w.r.IntN(5) {
	case 0:
		w.try("aten::slice_copy.Tensor_out", w.like(x), x, dim, from, from+1+w.r.IntN(sizes[dim]-from), 1)
	case 1:
		w.try("aten::select_copy.int_out", out{rank: len(sizes) - 1}, x, dim, from)
	case 2:
		n := 1 + w.r.IntN(sizes[dim])
		w.try("aten::split_copy.Tensor_out", out{rank: len(sizes), order: w.g.Values[x].DimOrder, list: (sizes[dim] + n - 1) / n}, x, n, dim)
	case 3:
		if sizes[dim] < 6 {
			w.try("aten::unbind_copy.int_out", out{rank: len(sizes) - 1, list: sizes[dim]}, x, dim)
		}
	case 4:
		var pad []int
		for range 2 * (1 + w.r.IntN(len(sizes))) {
			pad = append(pad, w.r.IntN(3))
		}
		w.try("aten::constant_pad_nd.out", w.like(x), x, pad, []any{0, 0.5}[w.r.IntN(2)])
	}
}

func (w *callMaker) join(x val, sizes []int) {
	if len(sizes) == 0 {
		return
	}
	dim, parts := w.r.IntN(len(sizes)), vals{x}
	for range 1 + w.r.IntN(7) {
		other := slices.Clone(sizes)
		other[dim] = 1 + w.r.IntN(3)
		if v := w.pick(); slices.Equal(w.sizes(v), sizes) {
			parts = append(parts, v)
		} else if w.r.IntN(2) == 0 {
			parts = append(parts, w.constant(other...))
		}
	}
	w.try("aten::cat.out", w.like(x), parts, dim)
}

func (w *callMaker) product(x val, sizes []int) {
	rank := len(sizes)
	if rank == 0 {
		return
	}
	k, n := sizes[rank-1], 1+w.r.IntN(6)
	w.lo, w.hi = -0.5, 0.5
	defer func() { w.lo, w.hi = -2, 2 }()
	bias := []any{nil, w.constant(n)}[w.r.IntN(2)]
	switch {
	case rank == 2 && w.r.IntN(3) == 0:
		w.try("aten::mm.out", out{rank: 2}, x, w.constant(k, n))
	case rank == 2 && w.r.IntN(2) == 0:
		w.try("aten::addmm.out", out{rank: 2}, w.constant([][]int{{n}, {1}, {1, n}, {sizes[0], n}}[w.r.IntN(4)]...), x, w.constant(k, n), 1, 1)
	case rank == 3 && w.r.IntN(2) == 0:
		w.try("aten::bmm.out", out{rank: 3}, x, w.constant(sizes[0], k, n))
	default:
		w.try("aten::linear.out", out{rank: rank}, x, w.constant(n, k), bias)
	}
}

func (w *callMaker) convolution(x val, sizes []int) {
	if len(sizes) != 4 {
		return
	}
	w.lo, w.hi = -0.3, 0.3
	defer func() { w.lo, w.hi = -2, 2 }()
	o := w.like(x)
	in, to, groups := sizes[1], 1+w.r.IntN(6), 1
	if w.r.IntN(3) == 0 {
		groups, to = in, in*(1+w.r.IntN(2))
	}
	k, transposed := []int{1 + w.r.IntN(3), 1 + w.r.IntN(3)}, w.r.IntN(4) == 0
	shape := []int{to, in / groups, k[0], k[1]}
	if transposed {
		shape = []int{in, to / groups, k[0], k[1]}
	}
	filter := w.constantOf(w.random(o.order, shape...))
	if w.short && !transposed {
		filter = w.weights(shape...)
	}
	bias := []any{nil, w.constant(to)}[w.r.IntN(2)]
	w.try("aten::convolution.out", o, x, filter, bias, []int{1 + w.r.IntN(2), 1 + w.r.IntN(2)}, []int{w.r.IntN(2), w.r.IntN(2)}, []int{1, 1 + w.r.IntN(2)}, transposed, []int{0, 0}, groups)
}

func (w *callMaker) rows(x val, sizes []int) {
	if len(sizes) != 3 {
		return
	}
	w.lo, w.hi = -0.3, 0.3
	defer func() { w.lo, w.hi = -2, 2 }()
	to := 1 + w.r.IntN(5)
	w.try("aten::convolution.out", out{rank: 3}, x, w.constant(to, sizes[1], 1+w.r.IntN(3)), nil, []int{1}, []int{1}, []int{1}, false, []int{0}, 1)
}

func (w *callMaker) pool(x val, sizes []int) {
	if len(sizes) != 4 {
		return
	}
	k, stride, pad := []int{1 + w.r.IntN(3), 2}, []int{1 + w.r.IntN(2), 1 + w.r.IntN(2)}, []int{w.r.IntN(2), w.r.IntN(2)}
	switch w.r.IntN(3) {
	case 0:
		w.try("aten::avg_pool2d.out", w.like(x), x, k, stride, pad, false, w.r.IntN(2) == 0, []any{nil, k[0] * k[1]}[w.r.IntN(2)])
	case 1:
		n := len(w.g.Calls)
		indices := out{rank: 4, order: w.like(x).order, dtype: tensor.Int64}
		w.settle(n, w.call("aten::max_pool2d_with_indices.out", []out{w.like(x), indices}, x, k, stride, pad, []int{1, 1}, w.r.IntN(2) == 0)[:1])
	case 2:
		w.try("aten::upsample_bilinear2d.vec_out", w.like(x), x, []int{1 + w.r.IntN(9), 1 + w.r.IntN(9)}, w.r.IntN(2) == 0, nil)
	}
}

func (w *callMaker) mean(x val, sizes []int) {
	if len(sizes) != 4 {
		return
	}
	switch w.r.IntN(3) {
	case 0:
		w.try("aten::mean.out", w.like(x), x, []int{-1, -2}, true, nil)
	case 1:
		w.try("aten::mean.out", out{rank: 2}, x, []int{2, 3}, false, nil)
	case 2:
		w.try("aten::_adaptive_avg_pool2d.out", w.like(x), x, []int{1, 1})
	}
}

func (w *callMaker) norm(x val, sizes []int) {
	if len(sizes) < 2 {
		return
	}
	n := len(w.g.Calls)
	c := sizes[1]
	w.lo, w.hi = 0.5, 1.5
	variance := w.constant(c)
	w.lo, w.hi = -2, 2
	w.settle(n, w.call("aten::_native_batch_norm_legit_no_training.out", []out{w.like(x), {rank: 1}, {rank: 1}}, x, w.constant(c), w.constant(c), w.constant(c),
		variance, 0.1, 1e-5)[:1])
}

func (w *callMaker) copies(x val, sizes []int) {
	if len(sizes) != 4 || w.r.IntN(3) == 0 {
		w.try("aten::clone.out", w.like(x), x, nil)
		return
	}
	o := [][]int{{0, 1, 2, 3}, {0, 2, 3, 1}}[w.r.IntN(2)]
	order := []uint8{}
	for _, d := range o {
		order = append(order, uint8(d))
	}
	w.try("dim_order_ops::_to_dim_order_copy.out", out{rank: 4, order: order}, x, false, o)
}

// randomCalls returns a random graph of up to size calls.
func randomCalls(seed uint64, size int, short bool) *callMaker {
	w := &callMaker{calls: newCalls(seed), refused: make(map[string]int), short: short}
	for range 1 + w.r.IntN(3) {
		switch w.r.IntN(5) {
		case 0:
			w.ready = append(w.ready, w.input(1+w.r.IntN(3), 1+w.r.IntN(6), 1+w.r.IntN(8)))
		case 1:
			w.ready = append(w.ready, w.input(1+w.r.IntN(5), 1+w.r.IntN(9)))
		case 2:
			w.ready = append(w.ready, w.inputIn(nhwc, 1+w.r.IntN(2), 1+w.r.IntN(6), 1+w.r.IntN(8), 1+w.r.IntN(8)))
		default:
			w.ready = append(w.ready, w.input(1+w.r.IntN(2), 1+w.r.IntN(6), 1+w.r.IntN(8), 1+w.r.IntN(8)))
		}
	}
	for range 1 + w.r.IntN(size) {
		w.grow()
	}
	var outputs []val
	for _, v := range w.ready {
		if !slices.Contains(w.g.Inputs, int(v)) && (len(w.g.Readers(int(v))) == 0 || w.r.IntN(4) == 0) {
			outputs = append(outputs, v)
		}
	}
	w.outputs(outputs...)
	w.renew()
	return w
}

// TestLoweringFuzz compares random graphs on each engine with the portable kernels. A graph of
// accepted calls must compile. The tolerance of quantized graphs covers errors of several steps.
func TestLoweringFuzz(t *testing.T) {
	for _, test := range []struct {
		name      string
		short     bool
		tolerance float64
	}{{"floats", false, 1e-4}, {"quantized", true, 0.4}} {
		t.Run(test.name, func(t *testing.T) {
			rounds := rounds(150)
			ran, ops := 0, make(map[string]int)
			for seed := range uint64(rounds) {
				w := randomCalls(seed, 12, test.short)
				if len(w.g.Outputs) == 0 {
					continue
				}
				for _, b := range compilers() {
					if err := w.compare(b, test.tolerance); err != nil {
						t.Fatalf("seed %d, %s: %v\n%s", seed, b.Engine, err, w)
					}
				}
				ran++
				for i := range w.g.Calls {
					if sig := w.g.Calls[i].Sig; sig != nil {
						ops[sig.Name]++
					}
				}
			}
			if ran < rounds*3/4 || len(ops) < 25 {
				t.Errorf("got %d of %d graphs with %d operators, want three quarters, 25", ran, rounds, len(ops))
			}
		})
	}
}

func (w *callMaker) compare(b Backend, tolerance float64) error {
	img, err := b.CompileGraph(context.Background(), w.g)
	if err != nil {
		return err
	}
	defer img.Close()
	return w.run(img, tolerance)
}

func (w *callMaker) String() (s string) {
	for i := range w.g.Calls {
		c := &w.g.Calls[i]
		s += c.Place
		for _, v := range c.Args {
			if x := &w.g.Values[v]; x.Kind == tensor.KindTensor {
				s += fmt.Sprintf(" %d:%v%v", v, x.Sizes, x.DimOrder)
			} else {
				var items []int64
				for _, item := range x.Items {
					items = append(items, w.g.Values[item].Int)
				}
				s += fmt.Sprintf(" %v", []any{nil, nil, x.Str, x.Double, x.Int, x.Bool, nil, x.Doubles, items, x.Items, nil, nil}[x.Kind])
			}
		}
		s += "\n"
	}
	return s + fmt.Sprintf("inputs %v outputs %v\n", w.g.Inputs, w.g.Outputs)
}

// TestLoweringHostile changes numbers, sizes and arguments of random graphs. Invalid calls or graphs
// are rejected without a panic.
func TestLoweringHostile(t *testing.T) {
	rounds := rounds(700)
	accepted, compiled := 0, 0
	for seed := range uint64(rounds) {
		w := randomCalls(seed, 8, seed%2 == 0)
		for range 1 + w.r.IntN(4) {
			w.corrupt()
		}
		w.renew()
		for i := range w.g.Calls {
			if (Backend{}).Accepts(w.g, i) == "" {
				accepted++
			}
		}
		Backend{}.Measure(w.g)
		w.g.Limits.Scratch = 64 << 20
		if img, err := (Backend{Engine: EngineGo}).CompileGraph(context.Background(), w.g); err == nil {
			compiled++
			img.Close()
		}
	}
	if accepted < rounds || compiled < rounds/10 {
		t.Errorf("got %d accepted calls, %d of %d graphs compiled, want more", accepted, compiled, rounds)
	}
}

// corrupt changes one value of the graph.
func (w *callMaker) corrupt() {
	extreme := []int64{-1 << 62, -1 << 31, -5, -1, 0, 1, 2, 3, 7, 300, 1 << 15, 1 << 31, 1 << 62}
	x := &w.g.Values[w.r.IntN(len(w.g.Values))]
	switch w.r.IntN(8) {
	case 0, 1, 2:
		if x.Kind == tensor.KindInt || x.Kind == tensor.KindIntList && len(x.Items) > 0 {
			if x.Kind == tensor.KindIntList {
				x = &w.g.Values[x.Items[w.r.IntN(len(x.Items))]]
			}
			x.Int = extreme[w.r.IntN(len(extreme))]
		}
	case 3:
		x.Double, x.Bool = []float64{0, -1, math.NaN(), math.Inf(1), 1e300, 1e-300}[w.r.IntN(6)], !x.Bool
	case 4:
		if len(x.Sizes) > 0 {
			x.Sizes = slices.Clone(x.Sizes)
			x.Sizes[w.r.IntN(len(x.Sizes))] = []int{0, 1, 2, 5, 1 << 20, 1 << (bits.UintSize/2 - 1)}[w.r.IntN(6)]
		}
	case 5:
		if len(x.Items) > 0 {
			x.Items = x.Items[:w.r.IntN(len(x.Items))]
		}
	case 6:
		x.DType = []tensor.DType{tensor.Float32, tensor.Int8, tensor.Int64, tensor.Float16, tensor.Bool}[w.r.IntN(5)]
	case 7:
		if len(x.Sizes) > 1 {
			x.Sizes, x.DimOrder = x.Sizes[1:], nil
		}
	}
}
