package cortexm

import (
	"fmt"
	"math"
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// quantizedDiv is cortex_m::quantized_div.out, of tensors of the same type and sizes:
//
//	out = clamp(round((self - self_zero_point) / (other - other_zero_point) · output_scale) + output_zero_point)
//
// each step in float32, rounded half away from 0; division by 0 yields 0.
func quantizedDiv(c *kernels.Ctx, a kernels.Args) error {
	if a.Tensor(0).DType == tensor.Int16 {
		return divide[int16](c, a)
	}
	return divide[int8](c, a)
}

// Arguments of quantized_div.out.
const divSelf, divOther, divZero, divScale, divOut = 0, 2, 4, 5, 6

func divide[T int8 | int16](c *kernels.Ctx, a kernels.Args) error {
	p, r := kernels.Keep[divider[T]](c), reader{Args: a}
	for _, i := range [...]int{divSelf, divOther, divOut} {
		r.keep(kernels.WantDType(i, a.Tensor(i), tensor.TypeOf[T]()))
	}
	self, other := a.Tensor(divSelf), a.Tensor(divOther)
	if !slices.Equal(self.Sizes, other.Sizes) {
		r.bad(divOther, "%v", fmt.Sprintf("the sizes of the dividend, %v", self), other)
	}
	lo, hi := tensor.TypeOf[T]().IntRange()
	p.first, p.second = r.int32(divSelf+1), r.int32(divOther+1)
	p.zero, p.least, p.most = float32(r.int32(divZero)), float32(lo), float32(hi)
	p.scale = float32(a.Float(divScale))
	if p.scale-p.scale != 0 {
		r.bad(divScale, "%v", "a finite float32", a.Float(divScale))
	}
	return p.begin(c, &r, divSelf, divOther, divOut, self.Sizes, p)
}

type divider[T int8 | int16] struct {
	binary[T]
	first, second            int32 // zero points
	zero, scale, least, most float32
}

// Range divides elements [lo, hi).
func (p *divider[T]) Range(_, lo, hi int) {
	x, y, z := p.x[lo:hi], p.y[lo:hi], p.z[lo:hi]
	for i := range z {
		quotient := float32(0)
		if d := int32(y[i]) - p.second; d != 0 {
			quotient = float32(int32(x[i])-p.first) / float32(d)
		}
		v := float32(math.Round(float64(float32(quotient*p.scale)))) + p.zero
		z[i] = T(min(max(v, p.least), p.most))
	}
}
