package lower

import (
	"math"
	"math/rand/v2"

	regions "github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// dims is a float32 argument of this shape, fixed one that does not change between calls.
type (
	dims  []int
	fixed []int
)

// halves and fixedHalves are the same of 16-bit floats.
type (
	halves      []int
	fixedHalves []int
)

// int8s and int64s are arguments of this shape.
type (
	int8s  []int
	int64s []int
)

// ints is a list; arguments are those of a call: sizes, a list of ints, a number, a bool, a string, or nil. The last shapes
// are the outs.
type (
	ints      = []int
	arguments = []any
)

// sizer chooses the sizes of calls.
type sizer struct{ *rand.Rand }

// sampleCall returns a random call of a class, of sizes that models have.
func sampleCall(kind string, seed uint64) (op string, args arguments) {
	for i, k := range sampleKinds {
		if k.name == kind {
			return k.call(&sizer{rand.New(rand.NewPCG(seed, uint64(i)))})
		}
	}
	panic("no kind " + kind)
}

// between returns a number from lo to hi, small ones as often as large ones. Half of the numbers above 8 are multiples of 8.
func (s *sizer) between(lo, hi int) int {
	n := int(math.Exp(math.Log(float64(lo)) + s.Float64()*math.Log(float64(hi+1)/float64(lo))))
	if n = min(max(n, lo), hi); n > 8 && s.IntN(4) > 0 {
		n = max(n/8*8, lo)
	}
	return n
}

func (s *sizer) one(list ...int) int { return list[s.IntN(len(list))] }

func (s *sizer) name(list ...string) string { return list[s.IntN(len(list))] }

// image returns the sizes of an image.
func (s *sizer) image() dims {
	size := s.between(4, 96)
	return dims{1, s.between(3, max(4, min(512, 1<<18/(size*size)))), size, size}
}

// maxMACs bounds the size of products.
const maxMACs = 8 << 20

// sampleKinds are the kinds of calls, and functions that make one.
var sampleKinds = []struct {
	name string
	call func(s *sizer) (string, arguments)
}{
	{"point", func(s *sizer) (string, arguments) { return s.dense(1, 1) }},
	{"window", func(s *sizer) (string, arguments) { return s.dense(s.one(2, 3, 3, 3, 5), 1) }},
	{"strided", func(s *sizer) (string, arguments) { return s.dense(s.one(1, 2, 3, 3, 3, 5, 7), 2) }},
	{"half", func(s *sizer) (string, arguments) {
		name, args := s.dense(s.one(1, 3), 1)
		if s.IntN(2) == 0 {
			name, args = s.unary("aten::relu.out", "aten::sigmoid.out")
		}
		return name, halved(args)
	}},
	{"line", (*sizer).line},
	{"planes", func(s *sizer) (string, arguments) { return s.depthwise(s.between(4, 112), 1) }},
	{"stridedPlanes", func(s *sizer) (string, arguments) { return s.depthwise(s.between(8, 112), 2) }},
	{"pixels", func(s *sizer) (string, arguments) { return s.depthwise(s.between(4, 11), 1) }},
	{"transposed", (*sizer).transposed},
	{"linear", (*sizer).linear},
	{"matrix", (*sizer).matrix},
	{"batch", (*sizer).batch},
	{"maximum", func(s *sizer) (string, arguments) {
		in, k := s.image(), s.one(2, 3, 3)
		y := pooled(in, k)
		return "aten::max_pool2d_with_indices.out", arguments{in, ints{k, k}, ints{2, 2}, ints{0, 0}, ints{1, 1}, false, y, int64s(y)}
	}},
	{"average", func(s *sizer) (string, arguments) {
		in, k := s.image(), s.one(2, 3, 3)
		return "aten::avg_pool2d.out", arguments{in, ints{k, k}, ints{2, 2}, ints{0, 0}, false, true, nil, pooled(in, k)}
	}},
	{"mean", func(s *sizer) (string, arguments) {
		in := s.image()
		return "aten::mean.out", arguments{in, ints{-1, -2}, true, nil, dims{1, in[1], 1, 1}}
	}},
	{"softmax", func(s *sizer) (string, arguments) {
		x := dims{s.between(1, 512), s.between(2, 256)}
		return "aten::_softmax.out", arguments{x, -1, false, x}
	}},
	{"resize", func(s *sizer) (string, arguments) {
		in, h, w := s.image(), s.between(4, 48), s.between(4, 48)
		return "aten::upsample_bilinear2d.vec_out", arguments{in, ints{h, w}, false, nil, dims{1, in[1], h, w}}
	}},
	{"binary", func(s *sizer) (string, arguments) {
		x, op := s.image(), s.name("aten::add.out", "aten::mul.out", "aten::sub.out", "aten::div.out")
		z := [...]dims{x, {1, x[1], 1, 1}, {x[3]}}[s.IntN(3)]
		if op == "aten::add.out" || op == "aten::sub.out" {
			return op, arguments{x, z, 1, x}
		}
		return op, arguments{x, z, x}
	}},
	{"join", func(s *sizer) (string, arguments) {
		x, dim := s.image(), s.IntN(3)+1
		y := append(dims{}, x...)
		y[dim] *= 2
		return "aten::cat.out", arguments{[]dims{x, x}, dim, y}
	}},
	{"moveRows", func(s *sizer) (string, arguments) {
		a, b, c, d := s.between(1, 4), s.between(2, 64), s.between(2, 16), s.between(2, 128)
		return "aten::permute_copy.out", arguments{dims{a, b, c, d}, ints{0, 2, 1, 3}, dims{a, c, b, d}}
	}},
	{"moveElements", func(s *sizer) (string, arguments) {
		a, b, c := s.between(1, 8), s.between(2, 256), s.between(2, 256)
		return "aten::permute_copy.out", arguments{dims{a, b, c}, ints{0, 2, 1}, dims{a, c, b}}
	}},
	{"copy", func(s *sizer) (string, arguments) {
		x := s.image()
		switch s.IntN(3) {
		case 0:
			return "aten::constant_pad_nd.out", arguments{x, ints{1, 1, 1, 1}, 0, dims{1, x[1], x[2] + 2, x[3] + 2}}
		case 1:
			half := max(x[1]/2, 1)
			return "aten::slice_copy.Tensor_out", arguments{x, 1, 0, half, 1, dims{1, half, x[2], x[3]}}
		}
		return "aten::permute_copy.out", arguments{x, ints{0, 1, 2, 3}, x}
	}},
	{"quantize", func(s *sizer) (string, arguments) {
		x := s.image()
		return "quantized_decomposed::quantize_per_tensor.out", arguments{x, 0.1, 3, -128, 127, 1, int8s(x)}
	}},
	{"dequantize", func(s *sizer) (string, arguments) {
		x := s.image()
		return "quantized_decomposed::dequantize_per_tensor.out", arguments{int8s(x), 0.1, 3, -128, 127, 1, nil, x}
	}},
	{"layerNorm", func(s *sizer) (string, arguments) {
		n, c := s.between(1, 200), s.between(16, 768)
		return "aten::native_layer_norm.out", arguments{dims{1, n, c}, ints{c}, fixed{c}, fixed{c}, 1e-5, dims{1, n, c}, dims{1, n, 1}, dims{1, n, 1}}
	}},
	{"batchNorm", func(s *sizer) (string, arguments) {
		x := s.image()
		c := fixed{x[1]}
		return "aten::_native_batch_norm_legit_no_training.out", arguments{x, c, c, c, c, 0.1, 1e-5, x, dims{0}, dims{0}}
	}},
	{"gelu", func(s *sizer) (string, arguments) {
		x := s.rows()
		return "aten::gelu.out", arguments{x, s.name("none", "tanh"), x}
	}},
	{"sigmoid", func(s *sizer) (string, arguments) { return s.unary("aten::sigmoid.out") }},
	{"tanh", func(s *sizer) (string, arguments) { return s.unary("aten::tanh.out") }},
	{"exact", func(s *sizer) (string, arguments) { return s.unary("aten::relu.out", "aten::neg.out", "aten::abs.out") }},
	{"arith", func(s *sizer) (string, arguments) {
		x := s.image()
		return "aten::mul.Scalar_out", arguments{x, 0.5, x}
	}},
	{"pointwise", func(s *sizer) (string, arguments) {
		return s.unary("aten::exp.out", "aten::log.out", "aten::rsqrt.out")
	}},
	{"sum", func(s *sizer) (string, arguments) {
		x := s.rows()
		return "aten::sum.IntList_out", arguments{x, ints{-1}, true, nil, dims{x[0], 1}}
	}},
	{"loose", func(s *sizer) (string, arguments) {
		x := s.rows()
		return "aten::var.correction_out", arguments{x, ints{-1}, 1, true, dims{x[0], 1}}
	}},
	{"deep", (*sizer).deep},
}

// deep is a product of so many weights that a few of them fill the caches.
func (s *sizer) deep() (string, arguments) {
	for {
		r, k, c := s.between(1, 128), s.between(768, 4096), s.between(768, 4096)
		switch {
		case r*k*c > 64*maxMACs:
		case s.IntN(2) == 0:
			return "aten::linear.out", arguments{dims{r, k}, fixed{c, k}, fixed{c}, dims{r, c}}
		default:
			return "aten::addmm.out", arguments{fixed{c}, dims{r, k}, fixed{k, c}, 1, 1, dims{r, c}}
		}
	}
}

// halved replaces tensors of 32-bit floats by those of 16 bits.
func halved(args arguments) arguments {
	for i, a := range args {
		switch a := a.(type) {
		case dims:
			args[i] = halves(a)
		case fixed:
			args[i] = fixedHalves(a)
		}
	}
	return args
}

// rows returns the sizes of a matrix of elements.
func (s *sizer) rows() dims { return dims{s.between(1, 200), s.between(4, 1024)} }

func (s *sizer) unary(names ...string) (string, arguments) {
	x := s.rows()
	return s.name(names...), arguments{x, x}
}

// pooled returns the sizes of an image after a pool with windows of k and stride 2.
func pooled(in dims, k int) dims {
	return dims{1, in[1], max((in[2]-k)/2+1, 1), max((in[3]-k)/2+1, 1)}
}

func (s *sizer) dense(k, stride int) (string, arguments) {
	groups := 1
	if s.IntN(8) == 0 {
		groups = s.one(2, 4, 8)
	}
	for {
		size, in, to := s.between(4, 112), groups*s.between(1, 384/groups), groups*s.between(1, 384/groups)
		if s.IntN(4) == 0 { // deep in a model: few pixels, many channels
			size, in, to = s.between(4, 8), groups*s.between(64/groups, 384/groups), groups*s.between(64/groups, 384/groups)
		}
		if in/groups > 1 && size*size/(stride*stride)*k*k*in/groups*to <= maxMACs {
			return convolve(dims{1, in, size, size}, fixed{to, in / groups, k, k}, stride, groups)
		}
	}
}

// line is a convolution over one dimension.
func (s *sizer) line() (string, arguments) {
	for {
		n, in, to, k, stride := s.between(8, 2048), s.between(2, 128), s.between(4, 128), s.one(1, 3, 5, 7), s.one(1, 1, 2)
		if n*in*to*k <= maxMACs {
			out := (n+2*(k/2)-k)/stride + 1
			return "aten::convolution.out", arguments{dims{1, in, n}, fixed{to, in, k}, fixed{to}, ints{stride}, ints{k / 2}, ints{1}, false, ints{0}, 1, dims{1, to, out}}
		}
	}
}

func (s *sizer) depthwise(size, stride int) (string, arguments) {
	c, k := s.between(8, max(16, min(768, 1<<18/(size*size)))), s.one(3, 3, 3, 5, 7)
	return convolve(dims{1, c, size, size}, fixed{c, 1, k, k}, stride, c)
}

// convolve is a convolution that keeps the sizes of an image, or divides them by the stride.
func convolve(in dims, w fixed, stride, groups int) (string, arguments) {
	k := w[2]
	out := (in[2]+2*(k/2)-k)/stride + 1
	return "aten::convolution.out", arguments{in, w, fixed{w[0]}, ints{stride, stride}, ints{k / 2, k / 2}, ints{1, 1}, false, ints{0, 0}, groups, dims{1, w[0], out, out}}
}

func (s *sizer) transposed() (string, arguments) {
	for {
		size, in, to, k, stride := s.between(4, 32), s.between(8, 128), s.between(4, 64), s.one(2, 3, 4), s.one(1, 2, 2)
		if size*size*k*k*in*to <= maxMACs {
			out := (size-1)*stride + k
			return "aten::convolution.out", arguments{dims{1, in, size, size}, fixed{in, to, k, k}, fixed{to}, ints{stride, stride}, ints{0, 0}, ints{1, 1}, true,
				ints{0, 0}, 1, dims{1, to, out, out}}
		}
	}
}

// product returns the sizes of a matrix product.
func (s *sizer) product() (rows, depth, columns int) {
	for {
		rows, depth, columns = s.between(1, 256), s.between(16, 1024), s.between(4, 1024)
		if rows*depth*columns <= maxMACs {
			return rows, depth, columns
		}
	}
}

func (s *sizer) linear() (string, arguments) {
	r, k, c := s.product()
	return "aten::linear.out", arguments{dims{r, k}, fixed{c, k}, fixed{c}, dims{r, c}}
}

func (s *sizer) matrix() (string, arguments) {
	r, k, c := s.product()
	if s.IntN(3) == 0 {
		return "aten::mm.out", arguments{dims{r, k}, dims{k, c}, dims{r, c}}
	}
	return "aten::addmm.out", arguments{fixed{c}, dims{r, k}, fixed{k, c}, 1, 1, dims{r, c}}
}

func (s *sizer) batch() (string, arguments) {
	for {
		n, r, k, c := s.between(1, 16), s.between(1, 200), s.between(8, 200), s.between(4, 200)
		if n*r*k*c <= maxMACs {
			return "aten::bmm.out", arguments{dims{n, r, k}, dims{n, k, c}, dims{n, r, c}}
		}
	}
}

// oneCall returns a graph of one call, and its arguments.
func oneCall(op *kernels.Op, sig *kernels.Signature, args arguments) (*regions.Graph, []*tensor.Value) {
	g := new(regions.Graph)
	c := regions.GraphCall{Op: op, Sig: sig}
	for k, a := range args {
		v := addValue(g, a)
		c.Args = append(c.Args, v)
		switch {
		case g.Values[v].Kind != tensor.KindTensor || g.Values[v].Data != nil:
		case sig.Args[k].Out:
			g.Outputs = append(g.Outputs, v)
		default:
			g.Inputs = append(g.Inputs, v)
		}
		if g.Values[v].Kind == tensor.KindTensorList {
			g.Inputs = append(g.Inputs, g.Values[v].Items...)
		}
	}
	g.Calls = []regions.GraphCall{c}
	g.Calls[0].Args = append(c.Args, c.Args[len(c.Args)-1])
	var values []*tensor.Value
	for _, v := range append(append(ints{}, g.Inputs...), g.Outputs...) {
		t := tensor.New(g.Values[v].DType, g.Values[v].Sizes...)
		if t.DType == tensor.Float32 {
			wave(tensor.Data[float32](t))
		}
		value := tensor.TensorValue(t)
		values = append(values, &value)
	}
	return g, values
}

func wave(x []float32) {
	for i := range x {
		x[i] = float32(math.Sin(float64(i)))
	}
}

// addValue adds a Go value as a graph value.
func addValue(g *regions.Graph, a any) int {
	var v regions.GraphValue
	switch a := a.(type) {
	case dims:
		v = regions.GraphValue{Kind: tensor.KindTensor, DType: tensor.Float32, Sizes: a}
	case fixed:
		n, _ := tensor.Product(a)
		v = regions.GraphValue{Kind: tensor.KindTensor, DType: tensor.Float32, Sizes: a, Data: tensor.AlignedBytes(4 * n)}
		t := tensor.New(tensor.Float32, a...)
		wave(tensor.Data[float32](t))
		copy(v.Data, t.Data)
	case halves:
		v = regions.GraphValue{Kind: tensor.KindTensor, DType: tensor.Float16, Sizes: a}
	case fixedHalves:
		n, _ := tensor.Product(a)
		v = regions.GraphValue{Kind: tensor.KindTensor, DType: tensor.Float16, Sizes: a, Data: tensor.AlignedBytes(2 * n)}
	case int8s:
		v = regions.GraphValue{Kind: tensor.KindTensor, DType: tensor.Int8, Sizes: a}
	case int64s:
		v = regions.GraphValue{Kind: tensor.KindTensor, DType: tensor.Int64, Sizes: a}
	case []dims:
		v.Kind = tensor.KindTensorList
		for _, s := range a {
			v.Items = append(v.Items, addValue(g, s))
		}
	case []int:
		v.Kind = tensor.KindIntList
		for _, n := range a {
			v.Items = append(v.Items, addValue(g, n))
		}
	case int:
		v = regions.GraphValue{Kind: tensor.KindInt, Int: int64(a)}
	case float64:
		v = regions.GraphValue{Kind: tensor.KindDouble, Double: a}
	case bool:
		v = regions.GraphValue{Kind: tensor.KindBool, Bool: a}
	case string:
		v = regions.GraphValue{Kind: tensor.KindString, Str: a}
	}
	g.Values = append(g.Values, v)
	return len(g.Values) - 1
}
