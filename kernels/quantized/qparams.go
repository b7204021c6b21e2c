package quantized

import (
	"cmp"
	"math"
	"slices"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// chooseQParams is quantized_decomposed::choose_qparams.Tensor_out: the scale and zero point that
// map [min(input, 0), max(input, 0)] to [quant_min, quant_max].
//
//	scale      = max((max - min) / (quant_max - quant_min), eps)
//	zero_point = clamp(quant_min - round(min / scale), quant_min, quant_max)
//
// in float32, as in torch.ao.quantization's determine_qparams. The C++ kernel treats scales below
// 6.1e-5 differently and ignores eps.
func chooseQParams(c *kernels.Ctx, a kernels.Args) error {
	in, lo, hi := a.Tensor(0), a.Int(1), a.Int(2)
	if err := checkQParams(a, lo, hi); err != nil {
		return err
	}
	for _, i := range [...]int{5, 6} {
		if t := a.Tensor(i); t.Numel() != 1 {
			return kernels.Badf(i, "one element", "%v", t)
		}
	}
	minimum, maximum, err := extent(c, in)
	if err != nil {
		return err
	}
	scale, zero := float32(1), int64(0)
	if !(math.IsInf(float64(minimum), 1) && math.IsInf(float64(maximum), -1)) {
		scale, zero = qparamsOf(min(minimum, 0), max(maximum, 0), lo, hi, float32(a.Float(3)))
	}
	tensor.Data[float64](a.Tensor(5))[0] = float64(scale)
	tensor.Data[int64](a.Tensor(6))[0] = zero
	return nil
}

func checkQParams(a kernels.Args, lo, hi int64) error {
	if !(math.MinInt32 <= lo && lo < hi && hi <= math.MaxInt32) {
		return kernels.Badf(2, "quant_min < quant_max, both of 32 bits", "%d and %d", lo, hi)
	}
	return cmp.Or(
		kernels.WantDType(0, a.Tensor(0), tensor.Float32, tensor.Float16, tensor.BFloat16),
		kernels.WantDType(5, a.Tensor(5), tensor.Float64),
		kernels.WantDType(6, a.Tensor(6), tensor.Int64),
	)
}

// qparamsOf computes a scale and a zero point from a range that contains 0. NaN is converted as
// PyTorch converts to int32.
func qparamsOf(minimum, maximum float32, lo, hi int64, eps float32) (scale float32, zero int64) {
	scale = max((maximum-minimum)/float32(float64(hi)-float64(lo)), eps)
	steps := tensor.FloatToInt(float32(math.RoundToEven(float64(minimum / scale))))
	if steps != int64(int32(steps)) {
		steps = math.MinInt32
	}
	zero = int64(int32(lo - steps))
	return scale, min(max(zero, lo), hi)
}

// extent returns the minimum and maximum element; it fails for an empty tensor, and for one with a
// NaN.
func extent(c *kernels.Ctx, t *tensor.Tensor) (minimum, maximum float32, err error) {
	n := t.Numel()
	if n == 0 {
		return 0, 0, kernels.Badf(0, "at least one element", "%v", t)
	}
	e := kernels.Keep[extents](c)
	e.src, e.size, e.load = t.Data, t.DType.Size(), tensor.Loader[float32](t.DType)
	e.block = kernels.Scratch[float32](c, blockSize*c.Threads())
	e.minimum, e.maximum = kernels.Scratch[float32](c, c.Threads()), kernels.Scratch[float32](c, c.Threads())
	for i := range e.minimum {
		e.minimum[i], e.maximum[i] = float32(math.Inf(1)), float32(math.Inf(-1))
	}
	c.Parallel(n, cpu.Grain(1, elementCost), e)
	minimum, maximum = slices.Min(e.minimum), slices.Max(e.maximum)
	if minimum != minimum {
		return 0, 0, kernels.Bad(0, "a NaN", "numbers")
	}
	return minimum, maximum, nil
}

// extents computes the range of each thread's elements.
type extents struct {
	src              []byte
	size             int
	load             tensor.LoadFunc[float32]
	block            []float32
	minimum, maximum []float32
}

// Range processes elements [lo, hi).
func (e *extents) Range(worker, lo, hi int) {
	block := e.block[blockSize*worker:][:blockSize]
	minimum, maximum := e.minimum[worker], e.maximum[worker]
	for at := lo; at < hi; at += blockSize {
		b := block[:min(blockSize, hi-at)]
		e.load(b, e.src[at*e.size:(at+len(b))*e.size])
		minimum, maximum = min(minimum, simd.Min(b)), max(maximum, simd.Max(b))
	}
	e.minimum[worker], e.maximum[worker] = minimum, maximum
}

// chooseQParamsPerToken is
// quantized_decomposed::choose_qparams_per_token_asymmetric.out: parameters for 8
// signed bits from each row of the last dimension. All of it is float32 arithmetic,
// and so is PyTorch's; the scale is at least the float32 epsilon.
func chooseQParamsPerToken(c *kernels.Ctx, a kernels.Args) error {
	in, scale, zero := a.Tensor(0), a.Tensor(2), a.Tensor(3)
	if err := checkPerToken(a); err != nil {
		return err
	}
	t := kernels.Keep[tokenRanges](c)
	rows, n := rowsOf(in)
	t.sizes = append(append(t.sizes[:0], in.Sizes[:in.Rank()-1]...), 1)
	for _, i := range [...]int{2, 3} {
		if err := kernels.ResizeOut(a, i, t.sizes); err != nil {
			return err
		}
	}
	if err := wantContiguous(a, 2, 3); err != nil {
		return err
	}
	t.n, t.x = n, tensor.Data[float32](in)
	t.scale, t.zero = tensor.Data[float64](scale), tensor.Data[int64](zero)
	c.Parallel(rows, cpu.Grain(n, elementCost), t)
	return nil
}

func checkPerToken(a kernels.Args) error {
	in := a.Tensor(0)
	if in.Rank() == 0 || in.Sizes[in.Rank()-1] == 0 {
		return kernels.Badf(0, "rows of at least one element", "%v", in)
	}
	return cmp.Or(
		kernels.WantDType(0, in, tensor.Float32),
		wantContiguous(a, 0),
		kernels.WantDType(2, a.Tensor(2), tensor.Float64),
		kernels.WantDType(3, a.Tensor(3), tensor.Int64),
	)
}

// tokenRanges is the loop over rows of n elements.
type tokenRanges struct {
	sizes []int
	n     int
	x     []float32
	scale []float64
	zero  []int64
}

// Range chooses the parameters of rows [lo, hi).
func (t *tokenRanges) Range(_, lo, hi int) {
	for i := lo; i < hi; i++ {
		x := t.x[i*t.n : (i+1)*t.n]
		scale, zero := tokenQParams(min(simd.Min(x), 0), max(simd.Max(x), 0))
		t.scale[i], t.zero[i] = float64(scale), zero
	}
}

// tokenQParams computes the parameters of one row from a range that contains 0. Of the two zero points, from the
// lower and from the upper end, it uses the one computed from the smaller terms.
func tokenQParams(minimum, maximum float32) (scale float32, zero int64) {
	const lo, hi = -128, 127
	scale = max((maximum-minimum)/(hi-lo), 0x1p-23)
	down, up := minimum/scale, maximum/scale
	z := hi - up
	if (lo+down)+(hi+up) > 0 {
		z = lo - down
	}
	z = min(max(z, lo), hi)
	return scale, tensor.FloatToInt(math.RoundToEven(float64(z)))
}
