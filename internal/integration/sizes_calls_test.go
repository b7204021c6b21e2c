package integration

import (
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// sizedCalls generate calls. Those that fail are left out.
var sizedCalls = []func(s *sized, x val, sizes []int){
	(*sized).elementwise, (*sized).elementwise, (*sized).withNumber, (*sized).sum, (*sized).sum, (*sized).sum, (*sized).permutation,
	(*sized).permutation, (*sized).expansion,
	(*sized).flattening, (*sized).sizedView, (*sized).unit, (*sized).concatenation, (*sized).product, (*sized).product, (*sized).batches,
	(*sized).image, (*sized).image,
	(*sized).window, (*sized).pixels, (*sized).normalization, (*sized).code, (*sized).code, (*sized).part, (*sized).copied,
	(*sized).notLowered, (*sized).twice, (*sized).twice,
}

// maxOperand bounds the operands of functions, whose results may be small: sums round by about 4e-6 of numbers that large, and the results
// by as much, which is to be less than the tolerance.
const maxOperand = 128

// grow adds a random call.
func (s *sized) grow() {
	x := val(s.anyDefined())
	sizedCalls[s.R.IntN(len(sizedCalls))](s, x, s.sizes(x))
}

// anyDefined returns a value to read, more often a late one.
func (s *sized) anyDefined() int {
	n := len(s.Defined)
	return s.Defined[max(s.R.IntN(n), s.R.IntN(n))]
}

// sizes returns the sizes of a tensor at the bounds.
func (s *sized) sizes(x val) []int { return s.tensors[0][int(x)].Sizes }

// as describes a result with the rank and order of a tensor.
func (s *sized) as(x val) out {
	return out{rank: len(s.sizes(x)), order: s.tensors[0][int(x)].DimOrder}
}

func (s *sized) plain(x val) out { return out{rank: len(s.sizes(x))} }

func oneOf[T any](s *sized, list ...T) T { return list[s.R.IntN(len(list))] }

func (s *sized) elementwise(x val, _ []int) {
	f := oneOf(s, []any{"abs"}, []any{"neg"}, []any{"sigmoid"}, []any{"tanh"}, []any{"relu"}, []any{"hardtanh", -0.5, 1.0},
		[]any{"clamp", nil, 0.7},
		[]any{"leaky_relu", 0.2}, []any{"elu", 1.0, 1, 1}, []any{"sin"}, []any{"silu"})
	large := func(y float32) bool { return y > maxOperand || y < -maxOperand }
	if t := s.tensors[0][int(x)]; t.DType == tensor.Float32 && slices.ContainsFunc(tensor.Data[float32](t), large) {
		return
	}
	s.try("aten::"+f[0].(string)+".out", s.as(x), append([]any{x}, f[1:]...)...)
}

func (s *sized) withNumber(x val, sizes []int) {
	switch s.R.IntN(5) {
	case 0:
		s.try("aten::mul.Scalar_out", s.as(x), x, 0.7)
	case 1:
		s.try("aten::add.Scalar_out", s.as(x), x, 0.3, 1)
	case 2:
		s.try("aten::rsub.Scalar_out", s.as(x), x, 1, 1)
	case 3:
		s.try("aten::pow.Tensor_Scalar_out", s.as(x), x, 2)
	default:
		if len(sizes) > 0 {
			s.try("aten::_softmax.out", s.as(x), x, len(sizes)-1, false)
		}
	}
}

// sum adds a function of two tensors, whose sizes may be equal at the bounds only.
func (s *sized) sum(x val, sizes []int) {
	other := val(s.anyDefined())
	switch s.R.IntN(4) {
	case 0:
		rest := slices.Clone(sizes[s.R.IntN(len(sizes)+1):])
		for i := range rest {
			if s.tensors[1][int(x)].Sizes[len(sizes)-len(rest)+i] != rest[i] || s.R.IntN(2) == 0 {
				rest[i] = 1
			}
		}
		other = s.constant(rest...)
	case 1, 2:
		for range 8 {
			if slices.Equal(s.sizes(other), sizes) && other != x {
				break
			}
			other = val(s.anyDefined())
		}
	}
	args, o := []any{x, other}, s.as(x)
	if s.R.IntN(2) == 0 {
		args = []any{other, x}
	}
	if len(s.sizes(other)) > o.rank {
		o = s.as(other)
	}
	op := oneOf(s, "add", "sub", "mul", "maximum", "minimum")
	if op == "add" || op == "sub" {
		args = append(args, 1)
	}
	if broadcastElements(sizes, s.sizes(other)) <= maxElements {
		s.try("aten::"+op+".out", o, args...)
	}
}

// broadcastElements is the number of elements of tensors that are broadcast together.
func broadcastElements(a, b []int) int {
	if len(a) < len(b) {
		a, b = b, a
	}
	n := 1
	for i, size := range a {
		if k := i - len(a) + len(b); k >= 0 {
			size = max(size, b[k])
		}
		n *= size
	}
	return n
}

func (s *sized) permutation(x val, sizes []int) {
	rank := len(sizes)
	switch {
	case rank == 0:
	case rank == 2 && s.R.IntN(2) == 0:
		s.try("aten::t_copy.out", out{rank: 2}, x)
	case s.R.IntN(2) == 0:
		s.try("aten::transpose_copy.int_out", out{rank: rank}, x, s.R.IntN(rank), -1)
	default:
		s.try("aten::permute_copy.out", out{rank: rank}, x, s.R.Perm(rank))
	}
}

// expansion repeats sizes of 1, among them some that are larger at the bounds.
func (s *sized) expansion(x val, sizes []int) {
	to := slices.Clone(sizes)
	for i := range to {
		if to[i] == 1 {
			to[i] = 1 + s.R.IntN(3)
		}
		if s.R.IntN(3) == 0 {
			to[i] = -1
		}
	}
	for _, tensors := range s.tensors[1:] { // sizes between 1 and the bound can only stay
		for i, n := range tensors[int(x)].Sizes {
			if n != 1 && n != to[i] {
				to[i] = -1
			}
		}
	}
	s.try("aten::expand_copy.out", s.plain(x), x, to, false)
}

// flattening reshapes a tensor to rows, of which the last size or the first one follows from the others.
func (s *sized) flattening(x val, sizes []int) {
	if len(sizes) == 0 {
		return
	}
	last := sizes[len(sizes)-1]
	s.try("aten::view_copy.out", out{rank: 2}, x, oneOf(s, []int{-1, last}, []int{1, -1}, []int{-1, 1}, []int{-1, 2}))
}

func (s *sized) sizedView(x val, sizes []int) {
	if len(sizes) == 0 || !slices.IsSorted(s.tensors[0][int(x)].DimOrder) {
		return
	}
	last := sizes[len(sizes)-1]
	s.try("executorch_prim::et_view.default", out{rank: 2}, x, oneOf(s, []int{-1, last}, []int{1, -1}, []int{-1, 1}))
}

// unit adds or removes a dimension of size 1.
func (s *sized) unit(x val, sizes []int) {
	if s.R.IntN(2) == 0 && len(sizes) < 4 {
		s.try("aten::unsqueeze_copy.out", out{rank: len(sizes) + 1}, x, s.R.IntN(len(sizes)+1))
	} else if len(sizes) > 1 {
		s.try("aten::squeeze_copy.dims_out", out{rank: len(sizes) - 1}, x, []int{s.R.IntN(len(sizes))})
	}
}

func (s *sized) concatenation(x val, sizes []int) {
	if len(sizes) == 0 {
		return
	}
	parts := []val{x}
	for range 1 + s.R.IntN(6) {
		if v := val(s.anyDefined()); slices.Equal(s.sizes(v), sizes) {
			parts = append(parts, v)
		}
	}
	s.try("aten::cat.out", s.as(x), parts, s.R.IntN(len(sizes)))
}

// product multiplies rows by constant weights.
func (s *sized) product(x val, sizes []int) {
	rank := len(sizes)
	if rank == 0 {
		return
	}
	k, n := sizes[rank-1], 1+s.R.IntN(9)
	bias := oneOf[any](s, nil, s.constant(n))
	switch {
	case rank == 2 && s.R.IntN(3) == 0:
		s.try("aten::mm.out", out{rank: 2}, x, s.weights(k, n))
	case rank == 2 && s.R.IntN(2) == 0:
		added := oneOf(s, s.constant(n), s.constant(1, n))
		if v := val(s.anyDefined()); s.R.IntN(3) == 0 {
			added = v
		}
		s.try("aten::addmm.out", out{rank: 2}, added, x, s.constant(k, n), 1, 1)
	default:
		s.try("aten::linear.out", out{rank: rank}, x, s.constant(n, k), bias)
	}
}

// weights returns a constant matrix, or one that is computed from a constant, in either order.
func (s *sized) weights(k, n int) val {
	if s.R.IntN(2) == 0 {
		return s.constant(k, n)
	}
	w := s.constant(n, k)
	v, ok := s.do("aten::permute_copy.out", []out{{rank: 2, order: oneOf(s, []uint8{0, 1}, []uint8{1, 0})}}, w, []int{1, 0})
	if !ok {
		return s.constant(k, n)
	}
	s.loose[int(v)] = s.R.IntN(2) == 0 // else it is computed at load
	return v
}

// batches multiplies tensors.
func (s *sized) batches(x val, sizes []int) {
	rank := len(sizes)
	if rank != 2 && rank != 3 {
		return
	}
	other, ok := s.do("aten::transpose_copy.int_out", []out{{rank: rank}}, x, rank-2, rank-1)
	if v := val(s.anyDefined()); s.R.IntN(3) == 0 {
		other = v
	}
	if columns := s.sizes(other); ok && (len(columns) == 0 || sizes[rank-2]*columns[len(columns)-1] <= maxElements) {
		s.try([]string{2: "aten::mm.out", 3: "aten::bmm.out"}[rank], out{rank: rank}, x, other)
	}
}

// image adds a convolution.
func (s *sized) image(x val, sizes []int) {
	if len(sizes) != 4 {
		return
	}
	in, to, groups := sizes[1], 1+s.R.IntN(9), 1
	if s.R.IntN(3) == 0 {
		groups, to = in, in*(1+s.R.IntN(2))
	}
	kernel, transposed := []int{1 + s.R.IntN(3), 1 + s.R.IntN(3)}, s.R.IntN(5) == 0
	shape := []int{to, in / groups, kernel[0], kernel[1]}
	if transposed {
		shape = []int{in, to / groups, kernel[0], kernel[1]}
	}
	s.try("aten::convolution.out", s.as(x), x, s.constant(shape...), oneOf[any](s, nil, s.constant(to)),
		[]int{1 + s.R.IntN(2), 1 + s.R.IntN(2)},
		[]int{1 + s.R.IntN(2), 1 + s.R.IntN(2)}, []int{1, 1}, transposed, []int{0, 0}, groups)
}

// window adds a pool.
func (s *sized) window(x val, sizes []int) {
	if len(sizes) != 4 {
		return
	}
	size, stride, pad := []int{2 + s.R.IntN(2), 2}, []int{1 + s.R.IntN(2), 1 + s.R.IntN(2)}, []int{1, 1}
	if s.R.IntN(2) == 0 {
		s.try("aten::avg_pool2d.out", s.as(x), x, size, stride, pad, false, s.R.IntN(2) == 0, oneOf[any](s, nil, 2*size[0]))
		return
	}
	indices := out{rank: 4, order: s.as(x).order, dtype: tensor.Int64}
	if v, ok := s.do("aten::max_pool2d_with_indices.out", []out{s.as(x), indices}, x, size, stride, pad, []int{1, 1}, s.R.IntN(3) == 0); ok {
		s.Defined = append(s.Defined, int(v))
	}
}

// pixels adds a mean of images, or a resize.
func (s *sized) pixels(x val, sizes []int) {
	if len(sizes) != 4 {
		return
	}
	switch s.R.IntN(3) {
	case 0:
		s.try("aten::mean.out", s.as(x), x, []int{-1, -2}, true, nil)
	case 1:
		s.try("aten::mean.out", out{rank: 2}, x, []int{2, 3}, false, nil)
	default:
		s.try("aten::upsample_bilinear2d.vec_out", s.as(x), x, []int{1 + s.R.IntN(9), 1 + s.R.IntN(9)}, s.R.IntN(2) == 0, nil)
	}
}

func (s *sized) normalization(x val, sizes []int) {
	if len(sizes) < 2 {
		return
	}
	n := sizes[1]
	variance := s.constant(n)
	for i, v := range tensor.Data[float32](s.tensors[0][int(variance)]) {
		tensor.Data[float32](s.tensors[0][int(variance)])[i] = 0.5 + v*v
	}
	copy(s.M.Values[variance].Tensor.Data, s.tensors[0][int(variance)].Data)
	if y, ok := s.do("aten::_native_batch_norm_legit_no_training.out", []out{s.as(x), {rank: 1}, {rank: 1}}, x, s.constant(n), s.constant(n),
		s.constant(n),
		variance, 0.1, 1e-5); ok {
		s.Defined = append(s.Defined, int(y))
	}
}

// code quantizes a tensor, and a result of that with the same scale.
func (s *sized) code(x val, _ []int) {
	if !s.codes {
		return
	}
	scale, zero := 0.02+0.001*float64(s.R.IntN(30)), s.R.IntN(20)-10
	d := s.as(x)
	again := func(x val) (val, bool) {
		d.dtype = tensor.Int8
		codes, ok := s.do("quantized_decomposed::quantize_per_tensor.out", []out{d}, x, scale, zero, -128, 127, int(tensor.Int8))
		if !ok {
			return x, false
		}
		d.dtype = tensor.Float32
		return s.do("quantized_decomposed::dequantize_per_tensor.out", []out{d}, codes, scale, zero, -128, 127, int(tensor.Int8), nil)
	}
	y, ok := again(x)
	if !ok {
		return
	}
	s.Defined = append(s.Defined, int(y))
	if f, done := s.do(oneOf(s, "aten::tanh.out", "aten::relu.out", "aten::sigmoid.out"), []out{s.as(y)}, y); done && s.R.IntN(2) == 0 {
		if y, ok := again(f); ok {
			s.Defined = append(s.Defined, int(y))
		}
	}
}

// part takes a part of the fixed sizes of a tensor, or pads one.
func (s *sized) part(x val, sizes []int) {
	if len(sizes) == 0 {
		return
	}
	dim := s.R.IntN(len(sizes))
	from := s.R.IntN(sizes[dim])
	switch s.R.IntN(3) {
	case 0:
		s.try("aten::slice_copy.Tensor_out", s.as(x), x, dim, from, from+1+s.R.IntN(sizes[dim]-from), 1)
	case 1:
		s.try("aten::select_copy.int_out", out{rank: len(sizes) - 1}, x, dim, oneOf(s, 0, -1, from))
	default:
		pad := make([]int, 2*(1+s.R.IntN(len(sizes))))
		for i := range pad {
			pad[i] = s.R.IntN(3)
		}
		s.try("aten::constant_pad_nd.out", s.as(x), x, pad, oneOf[any](s, 0, 0.5))
	}
}

func (s *sized) copied(x val, sizes []int) {
	if len(sizes) != 4 || s.R.IntN(3) == 0 {
		s.try("aten::clone.out", s.as(x), x, nil)
		return
	}
	order := oneOf(s, []int{0, 1, 2, 3}, []int{0, 2, 3, 1})
	o := out{rank: 4}
	for _, d := range order {
		o.order = append(o.order, uint8(d))
	}
	s.try("dim_order_ops::_to_dim_order_copy.out", o, x, false, order)
}

// notLowered adds a call that no node computes: what is before and behind it are other regions.
func (s *sized) notLowered(x val, sizes []int) {
	if len(sizes) == 0 {
		return
	}
	if dim := s.R.IntN(len(sizes)); s.R.IntN(2) == 0 {
		s.try("aten::cumsum.out", s.plain(x), x, dim, nil)
	} else {
		s.try("aten::flip.out", s.plain(x), x, []int{dim})
	}
}

// twice adds a call of which one tensor is several operands.
func (s *sized) twice(x val, sizes []int) {
	rank := len(sizes)
	square := rank > 1 && sizes[rank-1] == sizes[rank-2]
	switch op := oneOf(s, "linear", "product", "sum", "cat", "convolution", "function"); {
	case op == "linear" && rank == 2:
		s.try("aten::linear.out", out{rank: 2}, x, x, nil)
	case op == "product" && rank == 3 && square:
		s.try("aten::bmm.out", out{rank: 3}, x, x)
	case op == "product" && rank == 2 && square:
		s.try("aten::mm.out", out{rank: 2}, x, x)
	case op == "sum" && rank == 2 && square:
		s.try("aten::addmm.out", out{rank: 2}, x, x, oneOf(s, x, s.constant(sizes...)), 1, 1)
	case op == "cat" && rank > 0:
		s.try("aten::cat.out", s.plain(x), []val{x, x, x}, s.R.IntN(rank))
	case op == "convolution" && rank == 4:
		s.try("aten::convolution.out", out{rank: 4}, x, x, nil, []int{1, 1}, []int{1, 1}, []int{1, 1}, false, []int{0, 0}, 1)
	case op == "function":
		s.try("aten::"+oneOf(s, "mul", "maximum", "div")+".out", s.as(x), x, x)
	}
}
