package elementwise

import (
	"math"
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

func TestComplexParts(t *testing.T) {
	z := ints[complex64]
	quarter := float32(math.Pi / 2)
	nan := complex(nan32, 0)
	kerneltest.Run(t, set, []kerneltest.Case{
		{Name: "polar", Op: "aten::polar.out", Args: []any{f32(2, 1, 0), f32(0, quarter, 5)}, Want: []any{z(2, complex(-4.371139e-08, 1), 0)},
			Scale: 1},
		{Name: "polar, broadcast", Op: "aten::polar.out", Args: []any{tensor.Of([]float64{1, 2}, 2, 1), f64(0, math.Pi)},
			Want: []any{tensor.Of([]complex128{1, complex(-1, 1.2246467991473515e-16), 2, complex(-2, 2.449293598294703e-16)}, 2, 2)}, Scale: 1},
		{Name: "polar of two types", Op: "aten::polar.out", Args: []any{f32(1), f64(1)}, Outs: []any{z(0)},
			Refused: "argument 1: got float64, want float32"},
		{Name: "polar into a real type", Op: "aten::polar.out", Args: []any{f32(1), f32(1)}, Outs: []any{f32(0)}, Refused: "a complex type"},
		{Name: "polar of integers", Op: "aten::polar.out", Args: []any{ints[int64](1), ints[int64](1)}, Outs: []any{z(0)},
			Refused: "argument 0: got int64, want float32"},
		{Name: "complex", Op: "aten::complex.out", Args: []any{f32(1, inf32), f32(-2, 0)}, Want: []any{z(1-2i, complex(inf32, 0))}},
		{Name: "angle of real numbers", Op: "aten::angle.out", Args: []any{f32(3, -2, 0, nan32, -inf32)},
			Want: []any{f32(0, math.Pi, 0, nan32, math.Pi)}},
		{Name: "angle of integers", Op: "aten::angle.out", Args: []any{ints[int32](-1, 4)}, Want: []any{f32(math.Pi, 0)}},
		{Name: "angle", Op: "aten::angle.out", Args: []any{z(1i, -1, 1+1i)}, Want: []any{f32(quarter, math.Pi, math.Pi/4)}},
		{Name: "angle into a complex type", Op: "aten::angle.out", Args: []any{z(1i)}, Outs: []any{z(0)}, Refused: "a real float type"},
		{Name: "sgn", Op: "aten::sgn.out", Args: []any{z(3+4i, 0, -2)}, Want: []any{z(0.6+0.8i, 0, -1)}},
		{Name: "sgn of real numbers", Op: "aten::sgn.out", Args: []any{f32(-3, 0, nan32)}, Want: []any{f32(-1, 0, 0)}},
		{Name: "conjugates", Op: "aten::_conj_copy.out", Args: []any{z(1+2i, -3i)}, Want: []any{z(1-2i, 3i)}},
		{Name: "conjugates of real numbers", Op: "aten::_conj_copy.out", Args: []any{f32(1, nan32)}, Want: []any{f32(1, nan32)}},
		{Name: "negatives", Op: "aten::_neg_view_copy.out", Args: []any{z(1 - 2i)}, Want: []any{z(-1 + 2i)}},
		{Name: "exp", Op: "aten::exp.out", Args: []any{z(0, complex(1, quarter), nan)}, Want: []any{z(1, complex(-1.1881e-07, 2.7182817), nan)},
			Scale: 10},
		{Name: "log", Op: "aten::log.out", Args: []any{z(-1, 2i)}, Want: []any{z(complex(0, math.Pi), complex(0.6931472, quarter))}},
		{Name: "tan of complex numbers", Op: "aten::tan.out", Args: []any{z(1)}, Outs: []any{z(0)}, Refused: "complex64"},
	}...)
}

func TestSpecialFunctions(t *testing.T) {
	zero := float32(math.Copysign(0, -1))
	kerneltest.Run(t, set, []kerneltest.Case{
		{Name: "digamma", Op: "aten::digamma.out", Args: []any{f32(1, 0.5, 10, -0.5, -1, 0, zero)},
			Want: []any{f32(-0.5772157, -1.9635100, 2.2517526, 0.03648998, nan32, -inf32, inf32)}},
		{Name: "erfc", Op: "aten::erfc.out", Args: []any{f32(0, 1, -inf32, 5)}, Want: []any{f32(1, 0.15729921, 2, 1.5374597e-12)}},
		{Name: "erfinv", Op: "aten::erfinv.out", Args: []any{f32(0, 0.5, -1, 1, 2)}, Want: []any{f32(0, 0.47693628, -inf32, inf32, nan32)}},
		{Name: "exp2", Op: "aten::exp2.out", Args: []any{ints[int32](3, -1)}, Want: []any{f32(8, 0.5)}},
		{Name: "i0", Op: "aten::i0.out", Args: []any{f64(713, 714, -infinity, notANumber)},
			Want: []any{f64(6.705128263670997e307, infinity, infinity, notANumber)}},
		{Name: "i0 of integers", Op: "aten::i0.out", Args: []any{ints[int32](0, -2)}, Want: []any{f32(1, 2.2795853)}},
		{Name: "lgamma", Op: "aten::lgamma.out", Args: []any{f32(1, 5, 0.5, -0.5, 0, -2, -inf32)},
			Want: []any{f32(0, 3.1780539, 0.5723649, 1.2655121, inf32, inf32, inf32)}},
		{Name: "sinc", Op: "aten::sinc.out", Args: []any{f32(0, 0.5, 1.5)}, Want: []any{f32(1, 0.63661975, -0.21220659)}},
		{Name: "the number, not NaN", Op: "aten::fmax.out", Args: []any{f32(1, nan32, nan32, -3), f32(nan32, 2, nan32, -2)},
			Want: []any{f32(1, 2, nan32, -2)}},
		{Name: "the lesser number", Op: "aten::fmin.out", Args: []any{f64(1, notANumber, 3), f64(notANumber, 2, -1)}, Want: []any{f64(1, 2, -1)}},
		{Name: "of integers", Op: "aten::fmin.out", Args: []any{ints[int8](1, 2), ints[int8](0, 3)}, Want: []any{ints[int8](0, 2)}},
		{Name: "copysign", Op: "aten::copysign.out", Args: []any{f32(1, -2, 3), f32(-0.5, zero, 0)}, Want: []any{f32(-1, -2, 3)}},
		{Name: "copysign of a number", Op: "aten::copysign.Scalar_out", Args: []any{ints[int64](1, -2), -1}, Want: []any{f32(-1, -2)}},
		{Name: "0·log", Op: "aten::xlogy.OutTensor", Args: []any{f32(0, 0, 2, 1), f32(0, nan32, float32(math.E), -1)},
			Want: []any{f32(0, nan32, 2, nan32)}},
		{Name: "a number times log", Op: "aten::xlogy.OutScalar_Self", Args: []any{2.0, f32(1, float32(math.E))}, Want: []any{f32(0, 2)}},
		{Name: "times the log of a number", Op: "aten::xlogy.OutScalar_Other", Args: []any{f32(0, 3), 0.0}, Want: []any{f32(0, -inf32)}},
		{Name: "logaddexp", Op: "aten::logaddexp.out", Args: []any{f32(0, 1000, -inf32, inf32), f32(0, 0, -inf32, inf32)},
			Want: []any{f32(0.6931472, 1000, -inf32, inf32)}},
		{Name: "logaddexp2", Op: "aten::logaddexp2.out", Args: []any{f32(3, -inf32), f32(3, 2)}, Want: []any{f32(4, 2)}},
		{Name: "gcd", Op: "aten::gcd.out", Args: []any{ints[int64](12, -18, 0, 7), ints[int64](8, 12, 0, 0)},
			Want: []any{ints[int64](4, 6, 0, 7)}},
		{Name: "gcd of floats", Op: "aten::gcd.out", Args: []any{f32(1), f32(1)}, Outs: []any{f32(0)}, Refused: "float32"},
		{Name: "signbit", Op: "aten::signbit.out", Args: []any{f32(1, -1, zero, -inf32)}, Want: []any{bools(false, true, true, true)}},
		{Name: "signbit of integers", Op: "aten::signbit.out", Args: []any{ints[int8](-1, 0)}, Want: []any{bools(true, false)}},
		{Name: "frac", Op: "aten::frac.out", Args: []any{f32(1.25, -1.25)}, Want: []any{f32(0.25, -0.25)}},
		{Name: "two decimals", Op: "aten::round.decimals_out", Args: []any{f64(2.345678, -0.125, 0.375), 2}, Want: []any{f64(2.35, -0.12, 0.38)}},
		{Name: "hundreds", Op: "aten::round.decimals_out", Args: []any{f32(1234, 250, 350), -2}, Want: []any{f32(1200, 200, 400)}},
		{Name: "no decimals", Op: "aten::round.decimals_out", Args: []any{f32(2.5, -3.5), 0}, Want: []any{f32(2, -4)}},
		{Name: "decimals of integers", Op: "aten::round.decimals_out", Args: []any{ints[int32](1), 1}, Outs: []any{ints[int32](0)},
			Refused: "int32"},
	}...)
}
