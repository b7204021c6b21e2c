package prim

import (
	"cmp"
	"math"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
)

const python = "as Python does it, where the C++ runtime truncates"

var numberOps = []kernels.Op{
	{Schema: "executorch_prim::add.Scalar(Scalar a, Scalar b) -> Scalar", Func: sum.run, Numbers: opclass.Summed, DTypes: "int float"},
	{Schema: "executorch_prim::sub.Scalar(Scalar a, Scalar b) -> Scalar", Func: difference.run, DTypes: "int float"},
	{Schema: "executorch_prim::mul.Scalar(Scalar a, Scalar b) -> Scalar", Func: product.run, DTypes: "int float"},
	{Schema: "executorch_prim::floordiv.Scalar(Scalar a, Scalar b) -> Scalar", Func: quotient.run, DTypes: "int float"},
	{Schema: "executorch_prim::floordiv.int(int a, int b) -> int", Func: quotient.run, Note: "floors, " + python, DTypes: "int float"},
	{Schema: "executorch_prim::mod.Scalar(Scalar a, Scalar b) -> Scalar", Func: modulo.run, Note: "takes the divisor's sign, " + python, DTypes: "int float"},
	{Schema: "executorch_prim::mod.int(int a, int b) -> int", Func: modulo.run, Note: "takes the divisor's sign, " + python, DTypes: "int float"},
	{Schema: "executorch_prim::truediv.Scalar(Scalar a, Scalar b) -> float", Func: trueDivide, DTypes: "int float"},
	{Schema: "executorch_prim::sym_max.Scalar(Scalar a, Scalar b) -> Scalar", Func: largest.run, DTypes: "int float"},
	{Schema: "executorch_prim::sym_min.Scalar(Scalar a, Scalar b) -> Scalar", Func: smallest.run, DTypes: "int float"},
	{Schema: "executorch_prim::eq.Scalar(Scalar a, Scalar b) -> bool", Func: comparison(func(order int) bool { return order == 0 }), DTypes: "int float bool"},
	{Schema: "executorch_prim::gt.Scalar(Scalar a, Scalar b) -> bool", Func: comparison(func(order int) bool { return order == 1 }), DTypes: "int float bool"},
	{Schema: "executorch_prim::lt.Scalar(Scalar a, Scalar b) -> bool", Func: comparison(func(order int) bool { return order == -1 }), DTypes: "int float bool"},
	{Schema: "executorch_prim::ge.Scalar(Scalar a, Scalar b) -> bool", Func: comparison(func(order int) bool { return order == 0 || order == 1 }), DTypes: "int float bool"},
	{Schema: "executorch_prim::le.Scalar(Scalar a, Scalar b) -> bool", Func: comparison(func(order int) bool { return order == 0 || order == -1 }), DTypes: "int float bool"},
	{Schema: "executorch_prim::neg.Scalar(Scalar a) -> Scalar", Func: negate, DTypes: "int float"},
	{Schema: "executorch_prim::sym_float.Scalar(Scalar a) -> float", Func: toFloat, DTypes: "int float"},
	{Schema: "executorch_prim::sym_int.Scalar(Scalar a) -> int", Func: toInt(math.Trunc), DTypes: "int float"},
	{Schema: "executorch_prim::ceil.Scalar(Scalar a) -> int", Func: toInt(math.Ceil), DTypes: "int float"},
	{Schema: "executorch_prim::round.Scalar(Scalar a) -> int", Func: toInt(math.RoundToEven), DTypes: "int float"},
	{Schema: "executorch_prim::trunc.Scalar(Scalar a) -> int", Func: toInt(math.Trunc), DTypes: "int float"},
	{Schema: "executorch_prim::sym_not.Scalar(bool a) -> bool", Func: not, DTypes: "bool"},
	{Schema: "executorch_prim::sym_ite.Scalar(bool condition, Scalar a, Scalar b) -> Scalar", Func: choose, DTypes: "int float bool"},
}

// arithmetic is an operator on two numbers, whose result is an integer if both are, else a double.
// divides marks integer functions that reject a divisor of 0, and MinInt64 by -1, which has no
// result.
type arithmetic struct {
	ints    func(a, b int64) int64
	doubles func(a, b float64) float64
	divides bool
}

var (
	sum        = arithmetic{ints: func(a, b int64) int64 { return a + b }, doubles: func(a, b float64) float64 { return a + b }}
	difference = arithmetic{ints: func(a, b int64) int64 { return a - b }, doubles: func(a, b float64) float64 { return a - b }}
	product    = arithmetic{ints: func(a, b int64) int64 { return a * b }, doubles: func(a, b float64) float64 { return a * b }}
	quotient   = arithmetic{ints: floorDivide, doubles: func(a, b float64) float64 { return math.Floor(a / b) }, divides: true}
	modulo     = arithmetic{ints: floorModulo, doubles: func(a, b float64) float64 { return a - b*math.Floor(a/b) }, divides: true}
	largest    = arithmetic{ints: func(a, b int64) int64 { return max(a, b) }, doubles: func(a, b float64) float64 { return max(a, b) }}
	smallest   = arithmetic{ints: func(a, b int64) int64 { return min(a, b) }, doubles: func(a, b float64) float64 { return min(a, b) }}
)

func (f *arithmetic) run(_ *kernels.Ctx, a kernels.Args) error {
	if err := numbers(a, 2); err != nil {
		return err
	}
	x, y := a.Scalar(0), a.Scalar(1)
	if x.IsFloat() || y.IsFloat() {
		setDouble(a, f.doubles(x.Float(), y.Float()))
		return nil
	}
	if f.divides {
		if y.I == 0 {
			return kernels.Bad(1, "0", "a nonzero divisor")
		}
		if x.I == math.MinInt64 && y.I == -1 {
			return kernels.Badf(0, "a dividend whose quotient fits", "%d by -1", x.I)
		}
	}
	setInt(a, f.ints(x.I, y.I))
	return nil
}

// numbers returns an error if one of the first n arguments is a bool.
func numbers(a kernels.Args, n int) error {
	for i, v := range a[:n] {
		if v.Kind == tensor.KindBool {
			return kernels.Bad(i, "bool", "a number")
		}
	}
	return nil
}

func floorDivide(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func floorModulo(a, b int64) int64 {
	r := a % b
	if r != 0 && (r < 0) != (b < 0) {
		r += b
	}
	return r
}

func trueDivide(_ *kernels.Ctx, a kernels.Args) error {
	if err := numbers(a, 2); err != nil {
		return err
	}
	setDouble(a, a.Float(0)/a.Float(1))
	return nil
}

// comparison is an operator on the order of two numbers or two bools: -1, 0 or 1, and 2 if one is
// NaN.
func comparison(holds func(order int) bool) kernels.Func {
	return func(_ *kernels.Ctx, a kernels.Args) error {
		if (a[0].Kind == tensor.KindBool) != (a[1].Kind == tensor.KindBool) {
			return kernels.Bad(1, a[1].Kind.String(), a[0].Kind.String()+" as the other operand")
		}
		setBool(a, holds(order(a.Scalar(0), a.Scalar(1))))
		return nil
	}
}

func order(a, b kernels.Scalar) int {
	if !a.IsFloat() && !b.IsFloat() {
		return cmp.Compare(a.I, b.I)
	}
	x, y := a.Float(), b.Float()
	if x != x || y != y {
		return 2
	}
	return cmp.Compare(x, y)
}

func negate(_ *kernels.Ctx, a kernels.Args) error {
	if err := numbers(a, 1); err != nil {
		return err
	}
	if x := a.Scalar(0); x.IsFloat() {
		setDouble(a, -x.F)
	} else {
		setInt(a, -x.I)
	}
	return nil
}

func toFloat(_ *kernels.Ctx, a kernels.Args) error {
	setDouble(a, a.Float(0))
	return nil
}

// toInt is an operator that rounds a double to an integer; other kinds are integers already.
func toInt(rounded func(float64) float64) kernels.Func {
	return func(_ *kernels.Ctx, a kernels.Args) error {
		x := a.Scalar(0)
		if !x.IsFloat() {
			setInt(a, x.I)
			return nil
		}
		f := rounded(x.F)
		if !(f >= math.MinInt64 && f < -math.MinInt64) {
			return kernels.Badf(0, "a number that fits an int", "%v", x)
		}
		setInt(a, int64(f))
		return nil
	}
}

func not(_ *kernels.Ctx, a kernels.Args) error {
	setBool(a, !a.Bool(0))
	return nil
}

func choose(_ *kernels.Ctx, a kernels.Args) error {
	from := a[2]
	if a.Bool(0) {
		from = a[1]
	}
	r := a[len(a)-1]
	r.Kind, r.Int, r.Double, r.Bool = from.Kind, from.Int, from.Double, from.Bool
	return nil
}

// The result slot takes the kind of the result. It may be an argument's slot, because arguments are
// read first.

func setInt(a kernels.Args, v int64) {
	r := a[len(a)-1]
	r.Kind, r.Int = tensor.KindInt, v
}

func setDouble(a kernels.Args, v float64) {
	r := a[len(a)-1]
	r.Kind, r.Double = tensor.KindDouble, v
}

func setBool(a kernels.Args, v bool) {
	r := a[len(a)-1]
	r.Kind, r.Bool = tensor.KindBool, v
}
