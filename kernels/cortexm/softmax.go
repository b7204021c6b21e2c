package cortexm

import (
	"math"
	"math/bits"

	"github.com/etrun-go/etrun/kernels"
)

// softmax is cortex_m::softmax.out, of rows of the last dimension, in the fixed-point
// arithmetic of arm_softmax_s8:
//
//	e = exp((input - max) · scale)    0 where input - max < diff_min
//	out = e / Σ e · 256 - 128
//
// Sums saturate at 2^31, which takes a row of at least 4096 values, and divisions by 2^32 or more
// saturate too; CMSIS-NN's kernel is undefined in these cases.
func softmax(c *kernels.Ctx, a kernels.Args) error {
	p, r := kernels.Keep[softmaxPass](c), reader{Args: a}
	r.int8(0, 7)
	in := a.Tensor(0)
	d, err := kernels.WrapDim(1, a.Int(1), in.Rank())
	if r.keep(err); d != max(in.Rank(), 1)-1 {
		r.bad(1, "%d", "the last dimension", d)
	}
	if p.n = 1; in.Rank() > 0 {
		p.n = in.Sizes[in.Rank()-1]
	}
	p.read(&r)
	if r.resize(7, in.Sizes); r.err != nil {
		return r.err
	}
	p.input.set(in)
	p.output.set(a.Tensor(7))
	return again(c, p)
}

// softmaxPass is the state of an instruction. Its ranges are rows.
type softmaxPass struct {
	input, output layout
	n             int        // elements of a row
	exp           [256]int32 // by the difference from the maximum, 31 fraction bits
	below         int        // upper bound of the differences with a nonzero exponential
	x, y          []int8
}

// read reads the parameters and computes the exponentials.
func (p *softmaxPass) read(r *reader) {
	r.int32(2)
	if z := r.Int(3); z != math.MinInt8 {
		r.bad(3, "%d", "-128", z)
	}
	multiplier, shift, least := r.int32(4), r.within(5, 0, maxShift), r.int32(6)
	if r.err != nil {
		return
	}
	p.below = int(min(max(-int64(least)+1, 0), int64(len(p.exp))))
	for d := range p.exp[:p.below] {
		p.exp[d] = expNegative(highProduct(int32(-d)<<shift, multiplier))
	}
}

// Repeat computes the same tensors again.
func (p *softmaxPass) Repeat(c *kernels.Ctx) error {
	if p.output.t.Numel() == 0 {
		return nil
	}
	p.x, p.y = load[int8](c, &p.input), target[int8](c, &p.output)
	c.Parallel(len(p.y)/p.n, 1+grain/p.n, p)
	store(c, &p.output, p.y)
	return nil
}

// Range computes rows [lo, hi).
func (p *softmaxPass) Range(_, lo, hi int) {
	for r := lo; r < hi; r++ {
		p.row(p.y[r*p.n:][:p.n], p.x[r*p.n:][:p.n])
	}
}

func (p *softmaxPass) row(y, x []int8) {
	const sumBits = 12 // above the fraction bits of a sum
	most := x[0]
	for _, v := range x {
		most = max(most, v)
	}
	sum := int64(0)
	for _, v := range x {
		if d := int(most) - int(v); d < p.below {
			sum += int64(divideByPower(p.exp[d], sumBits))
		}
	}
	sum = min(sum, math.MaxInt32)
	headroom := int32(bits.LeadingZeros32(uint32(sum)))
	factor := oneOver(int32(uint32(sum)<<headroom - 1<<31))
	for i, v := range x {
		y[i] = math.MinInt8
		if d := int(most) - int(v); d < p.below {
			code := divideByPower(highProduct(factor, p.exp[d]), sumBits+23-headroom) + math.MinInt8
			y[i] = int8(min(max(code, math.MinInt8), math.MaxInt8))
		}
	}
}

// highProduct returns a · b / 2^31, rounded half away from 0 and saturated
// (arm_nn_doubling_high_mult, gemmlowp's SaturatingRoundingDoublingHighMul).
func highProduct(a, b int32) int32 {
	if a == math.MinInt32 && b == math.MinInt32 {
		return math.MaxInt32
	}
	p := int64(a) * int64(b)
	half := int64(1 << 30)
	if p < 0 {
		half = 1 - half
	}
	return int32((p + half) / (1 << 31))
}

// expFactors are exp(-2^(i-2)), 31 fraction bits.
var expFactors = [...]int32{1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242}

// expNegative returns exp(v) for v ≤ 0 with 26 fraction bits, as a number with 31 fraction bits
// (gemmlowp's exp_on_negative_values).
func expNegative(v int32) int32 {
	if v == 0 {
		return math.MaxInt32
	}
	const quarter = 1 << 24
	q := v&(quarter-1) - quarter
	rest := q - v
	x := q<<5 + 1<<28
	x2 := highProduct(x, x)
	x3, x4 := highProduct(x2, x), highProduct(x2, x2)
	const third, exp8 = 715827883, 1895147668 // 1/3, exp(-1/8)
	t := divideByPower(highProduct(divideByPower(x4, 2)+x3, third)+x2, 1)
	y := exp8 + highProduct(exp8, x+t)
	for i, f := range expFactors {
		if rest&(quarter<<i) != 0 {
			y = highProduct(y, f)
		}
	}
	return y
}

// oneOver returns 1 / (1 + v) for v with 31 fraction bits, with 31 fraction bits, by Newton's
// method (gemmlowp's one_over_one_plus_x_for_x_in_0_1).
func oneOver(v int32) int32 {
	s := int64(v) + math.MaxInt32
	round := int64(1)
	if s < 0 {
		round = -1
	}
	half := int32((s + round) / 2)
	x := 1515870810 + highProduct(half, -1010580540) // 48/17 and -32/17, 29 fraction bits
	for range 3 {
		x += saturate(int64(highProduct(x, 1<<29-highProduct(half, x))) << 2)
	}
	return saturate(int64(x) << 1)
}

func saturate(v int64) int32 { return int32(min(max(v, math.MinInt32), math.MaxInt32)) }
