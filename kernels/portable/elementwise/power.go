package elementwise

import (
	"math"

	"github.com/etrun-go/etrun/internal/math32"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
)

var powers = binary{rule: arithmetic, table: table{f32: pair(math32.Pow), f64: pow, i32: powInt[int32], i64: powInt[int64], cost: inLoops}}

var powerOps = []kernels.Op{
	{Schema: "aten::pow.Tensor_Tensor_out(Tensor self, Tensor exponent, *, Tensor(a!) out)", Func: powers.run, DTypes: numbers, Family: kernels.Loose, Note: powerNote},
	{Schema: "aten::pow.Tensor_Scalar_out(Tensor self, Scalar exponent, *, Tensor(a!) out)",
		Func: powNumber, Class: opclass.PowScalar, DTypes: numbers, Family: kernels.Loose, Note: powerNote},
	{Schema: "aten::pow.Scalar_out(Scalar self, Tensor exponent, *, Tensor(a!) out)", Func: powers.run, DTypes: numbers, Family: kernels.Loose, Note: powerNote},
}

const powerNote = "integers to integer powers are exact, wrapping"

// fixedPowers are the float exponents that PyTorch does not compute by pow.
var fixedPowers = []struct {
	exponent float64
	unary
}{
	{0.5, root},
	{-0.5, rsqrt},
	{-1, reciprocal},
	{1, unary{rule: floating, table: table{f32: identity[float32], f64: identity[float64]}}},
	{2, unary{rule: floating, table: table{f32: square32, f64: square[float64]}}},
	{3, unary{rule: floating, table: table{f32: cube[float32], f64: cube[float64]}}},
	{-2, unary{rule: floating, table: table{f32: inverseSquare[float32], f64: inverseSquare[float64]}}},
}

func powNumber(c *kernels.Ctx, a kernels.Args) error {
	types := NewResultType()
	types.Tensor(a.Tensor(0))
	types.Number(a.Scalar(1))
	common, exponent := types.Result(), a.Scalar(1)
	if common.IsInt() && exponent.I < 0 {
		return kernels.Bad(1, exponent.String(), "a non-negative power of integers")
	}
	if !common.IsFloat() {
		return powers.run(c, a)
	}
	for i := range fixedPowers {
		if p := &fixedPowers[i]; p.exponent == exponent.Float() {
			return p.run(c, a)
		}
	}
	return powers.run(c, a)
}

func square32(k *block[float32])  { simd.Mul(k.out, k.a, k.a) }
func square[C float](k *block[C]) { map1(k, func(x C) C { return x * x }) }
func cube[C float](k *block[C])   { map1(k, func(x C) C { return x * x * x }) }

func inverseSquare[C float](k *block[C]) { map1(k, func(x C) C { return 1 / (x * x) }) }

func pow(k *block[float64]) {
	map2(k, func(x, y float64) float64 { return math.Pow(x, y) })
}

func powInt[C integer](k *block[C]) { map2(k, func(x, y C) C { return powerOf(x, y) }) }

// powerOf computes x to the power y by squaring, wrapping. A negative power is rounded toward zero, that of 0 is 0
// (at::native::powi).
func powerOf[C integer](x, y C) C {
	if y < 0 {
		switch {
		case x == 1, x == -1 && y&1 == 0:
			return 1
		case x == -1:
			return -1
		}
		return 0
	}
	r := C(1)
	for ; y > 0; y >>= 1 {
		if y&1 != 0 {
			r *= x
		}
		x *= x
	}
	return r
}
