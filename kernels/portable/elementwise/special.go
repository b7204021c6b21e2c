package elementwise

import (
	"math"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var (
	fmax = binary{rule: numeric, table: table{f32: largerNumber[float32], f64: largerNumber[float64], i32: largest.i32, i64: largest.i64}}
	fmin = binary{rule: numeric, table: table{f32: smallerNumber[float32], f64: smallerNumber[float64], i32: smallest.i32,
		i64: smallest.i64}}
	copysign  = binary{rule: floating, table: table{f32: withSignOf[float32], f64: withSignOf[float64]}}
	xlogy     = binary{rule: floating, table: table{f32: xlogyOf[float32], f64: xlogyOf[float64], cost: byNumber}}
	logAdd    = binary{rule: fractional, table: table{f32: logAddOf[float32], f64: logAddOf[float64], cost: byNumber}}
	logAdd2   = binary{rule: fractional, table: table{f32: logAdd2Of[float32], f64: logAdd2Of[float64], cost: byNumber}}
	divisor   = binary{rule: takesInts, table: table{i64: gcd, cost: byNumber}}
	signbits  = unary{rule: numeric, table: table{f32: isNegative[float32], f64: isNegative[float64], i64: lessThan0, test: true}}
	fraction  = unary{rule: fractional, same: true, table: table{f32: fractionOf[float32], f64: fractionOf[float64]}}
	toDecimal = unary{rule: fractional, same: true, table: table{f32: roundDecimals[float32], f64: roundDecimals[float64]}}
)

var specialOps = []kernels.Op{
	function("digamma", digamma, nil, byNumber),
	function("erfc", math.Erfc, nil, byNumber),
	function("erfinv", math.Erfinv, nil, byNumber),
	function("exp2", math.Exp2, nil, byNumber),
	function("i0", besselI0, nil, byNumber),
	function("lgamma", lgamma, nil, byNumber),
	function("sinc", sinc, nil, byNumber),
	{Schema: "aten::fmax.out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: fmax.run, DTypes: all, Note: numberNote},
	{Schema: "aten::fmin.out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: fmin.run, DTypes: all, Note: numberNote},
	{Schema: "aten::copysign.out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: copysign.run, DTypes: all},
	{Schema: "aten::copysign.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out)", Func: copysign.run, DTypes: all},
	{Schema: "aten::xlogy.OutTensor(Tensor self, Tensor other, *, Tensor(a!) out)", Func: xlogy.run, DTypes: all, Family: kernels.Pointwise},
	{Schema: "aten::xlogy.OutScalar_Self(Scalar self, Tensor other, *, Tensor(a!) out)", Func: xlogy.run, DTypes: all,
		Family: kernels.Pointwise},
	{Schema: "aten::xlogy.OutScalar_Other(Tensor self, Scalar other, *, Tensor(a!) out)", Func: xlogy.run, DTypes: all,
		Family: kernels.Pointwise},
	{Schema: "aten::logaddexp.out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: logAdd.run, DTypes: floats, Family: kernels.Pointwise},
	{Schema: "aten::logaddexp2.out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: logAdd2.run, DTypes: floats,
		Family: kernels.Pointwise},
	{Schema: "aten::gcd.out(Tensor self, Tensor other, *, Tensor(a!) out)", Func: divisor.run, DTypes: integers},
	{Schema: "aten::signbit.out(Tensor self, *, Tensor(a!) out)", Func: signbits.run, DTypes: all},
	{Schema: "aten::frac.out(Tensor self, *, Tensor(a!) out)", Func: fraction.run, DTypes: floats, Family: kernels.Arith},
	{Schema: "aten::round.decimals_out(Tensor self, *, int decimals, Tensor(a!) out)", Func: roundTo, DTypes: floats, Family: kernels.Arith},
}

const numberNote = "of a number and NaN, the number"

func largerNumber[C float](k *block[C]) {
	map2(k, func(x, y C) C {
		if x != x || y > x {
			return y
		}
		return x
	})
}

func smallerNumber[C float](k *block[C]) {
	map2(k, func(x, y C) C {
		if x != x || y < x {
			return y
		}
		return x
	})
}

func withSignOf[C float](k *block[C]) {
	map2(k, func(x, y C) C { return C(math.Copysign(float64(x), float64(y))) })
}

// xlogyOf computes x·log(y), which is 0 for x = 0 unless y is NaN.
func xlogyOf[C float](k *block[C]) {
	map2(k, func(x, y C) C {
		if x == 0 && y == y {
			return 0
		}
		return x * C(math.Log(float64(y)))
	})
}

// logAddOf computes log(exp(x) + exp(y)) without overflow.
func logAddOf[C float](k *block[C]) {
	map2(k, func(x, y C) C { return C(logSum(float64(x), float64(y))) })
}

func logSum(x, y float64) float64 {
	if math.IsInf(x, 0) && x == y {
		return x
	}
	return max(x, y) + math.Log1p(math.Exp(-math.Abs(x-y)))
}

// logAdd2Of is logAddOf to base 2.
func logAdd2Of[C float](k *block[C]) {
	map2(k, func(x, y C) C { return C(logSum(float64(x)*math.Ln2, float64(y)*math.Ln2) * math.Log2E) })
}

// gcd computes the greatest common divisor, which is not negative. That of the least number wraps.
func gcd(k *block[int64]) {
	map2(k, func(x, y int64) int64 {
		for y != 0 {
			x, y = y, x%y
		}
		return max(x, -x)
	})
}

func isNegative[C float](k *block[C]) {
	test1(k, func(x C) bool { return math.Signbit(float64(x)) })
}

func lessThan0(k *block[int64]) {
	test1(k, func(x int64) bool { return x < 0 })
}

func fractionOf[C float](k *block[C]) {
	map1(k, func(x C) C { return x - C(math.Trunc(float64(x))) })
}

// roundTo is aten::round.decimals.
func roundTo(c *kernels.Ctx, a kernels.Args) error {
	decimals := float64(min(max(a.Int(1), -1000), 1000)) // beyond, a power of 10 is 0 or infinite
	num := [3]kernels.Scalar{
		{Type: tensor.Float64, F: math.Pow(10, math.Abs(decimals))},
		{Type: tensor.Float64, F: decimals},
	}
	return toDecimal.numbers(c, a, num)
}

// roundDecimals rounds x, scaled by a power of 10, to even. num[0] is the power for the magnitude of num[1] decimals.
func roundDecimals[C float](k *block[C]) {
	power, decimals := k.num[0], k.num[1]
	map1(k, func(x C) C {
		switch {
		case decimals < 0:
			return C(math.RoundToEven(float64(x/power))) * power
		case decimals > 0:
			return C(math.RoundToEven(float64(x*power))) / power
		}
		return C(math.RoundToEven(float64(x)))
	})
}

func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	return math.Sin(math.Pi*x) / (math.Pi * x)
}

// lgamma is the logarithm of the gamma function's magnitude.
func lgamma(x float64) float64 {
	if math.IsInf(x, -1) {
		return math.Inf(1)
	}
	v, _ := math.Lgamma(x)
	return v
}

// digamma is the derivative of lgamma. It is infinite at 0, with the opposite sign, and NaN at negative integers.
func digamma(x float64) float64 {
	switch {
	case x == 0:
		return math.Copysign(math.Inf(1), -x)
	case x < 0:
		_, fraction := math.Modf(x)
		if fraction == 0 {
			return math.NaN()
		}
		return digamma(1-x) - math.Pi/math.Tan(math.Pi*fraction)
	}
	sum := 0.0
	for ; x < 10; x++ {
		sum -= 1 / x
	}
	if x > 1e17 {
		return sum + math.Log(x)
	}
	return sum + math.Log(x) - 0.5/x - bernoulli(1/(x*x))
}

// bernoulli is the series of digamma's asymptotic expansion in z = 1/x².
func bernoulli(z float64) (sum float64) {
	for _, c := range [...]float64{1. / 12, -691. / 32760, 1. / 132, -1. / 240, 1. / 252, -1. / 120, 1. / 12} {
		sum = sum*z + c
	}
	return sum * z
}

// besselI0 is the modified Bessel function of order 0, of which Kaiser windows are made.
func besselI0(x float64) float64 {
	x = math.Abs(x)
	if x > 20 {
		return besselI0Far(x)
	}
	sum, term := 1.0, 1.0 // the power series: all terms are positive, so that nothing cancels
	for k := 1.0; term > sum*0x1p-54; k++ {
		term *= x / (2 * k) * x / (2 * k)
		sum += term
	}
	return sum
}

// besselI0Far sums the asymptotic series, whose least term is below 2⁻⁵³ for arguments above 20.
func besselI0Far(x float64) float64 {
	if math.IsInf(x, 1) {
		return x
	}
	sum, term := 1.0, 1.0
	for k := 1.0; term > 0x1p-54; k++ {
		term *= (2*k - 1) / (8 * x) * (2*k - 1) / k
		sum += term
	}
	half := math.Exp(x / 2) // of x it overflows before the function does
	return half / math.Sqrt(2*math.Pi*x) * sum * half
}
