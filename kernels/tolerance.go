package kernels

import (
	"math"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// Tolerance is an allowed error.
type Tolerance struct{ Abs, Rel float64 }

// Allows reports whether got is close enough to want: both are equal, both are NaN, or both are
// finite and |got-want| <= Abs + Rel*|want|.
func (t Tolerance) Allows(got, want float64) bool {
	return got == want || math.IsNaN(got) && math.IsNaN(want) ||
		!math.IsInf(want, 0) && math.Abs(got-want) <= t.Abs+t.Rel*math.Abs(want)
}

// bound is a family's tolerance in units of the element type's epsilon.
type bound struct {
	abs, rel         float64 // float32 and float64
	halfAbs, halfRel float64 // float16 and bfloat16, which operators compute in float32
	scaled           bool    // abs grows with the operator's scale
	minScale         float64 // minimum scale
}

var bounds = [...]bound{
	Exact:     {},
	Arith:     {rel: 2, halfRel: 1.01},
	Pointwise: {abs: 2, rel: 16, halfAbs: 0.25, halfRel: 2},
	Sum:       {abs: 16, rel: 32, halfAbs: 2, halfRel: 4, scaled: true},
	Loose:     {abs: 32, rel: 64, halfAbs: 1, halfRel: 4, scaled: true, minScale: 1},
}

// Tolerance returns the family's tolerance for outputs of type d. Integer and bool outputs are
// exact in every family. scale is the largest output of the operator for the absolute values of its
// inputs: the magnitude of the terms of a sum before cancellation. Only [Sum] and [Loose] use it.
func (f Family) Tolerance(d tensor.DType, scale float64) Tolerance {
	eps := Epsilon(d)
	if eps == 0 {
		return Tolerance{}
	}
	b := bounds[f]
	abs, rel := b.abs, b.rel
	if d.IsFloat() && d.Size() < 4 {
		abs, rel = b.halfAbs, b.halfRel
	}
	if b.scaled {
		abs *= max(scale, b.minScale)
	}
	return Tolerance{Abs: abs * eps, Rel: rel * eps}
}

// Scaled reports whether the family's absolute tolerance grows with scale.
func (f Family) Scaled() bool { return bounds[f].scaled }

// Epsilon returns the distance from 1 to the next number of a floating type, and of a complex
// type's parts; 0 for types that are compared exactly.
func Epsilon(d tensor.DType) float64 { return d.Epsilon() }
