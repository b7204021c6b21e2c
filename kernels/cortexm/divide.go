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
	p := kernels.Keep[divider[T]](c)
	self, other := a.Tensor(divSelf), a.Tensor(divOther)
	for _, i := range [...]int{divSelf, divOther, divOut} {
		if err := kernels.WantDType(i, a.Tensor(i), tensor.TypeOf[T]()); err != nil {
			return err
		}
	}
	if !slices.Equal(self.Sizes, other.Sizes) {
		return kernels.Badf(divOther, fmt.Sprintf("the sizes of the dividend, %v", self), "%v", other)
	}
	if err := p.read(a, 8*self.DType.Size()); err != nil {
		return err
	}
	if err := p.set(a, divSelf, divOther, divOut, self.Sizes); err != nil {
		return err
	}
	return again(c, p)
}

type divider[T int8 | int16] struct {
	binary[T]
	first, second            int32 // zero points
	zero, scale, least, most float32
}

// read reads the numbers of a division of codes of the given bits.
func (p *divider[T]) read(a kernels.Args, bits int) (err error) {
	if p.first, err = zeroPoint(a, divSelf+1); err != nil {
		return err
	}
	if p.second, err = zeroPoint(a, divOther+1); err != nil {
		return err
	}
	zero, err := zeroPoint(a, divZero)
	if err != nil {
		return err
	}
	limit := int32(1) << (bits - 1)
	p.zero, p.least, p.most = float32(zero), float32(-limit), float32(limit-1)
	p.scale = float32(a.Float(divScale))
	if s := float64(p.scale); math.IsNaN(s) || math.IsInf(s, 0) {
		return kernels.Badf(divScale, "a finite float32", "%v", a.Float(divScale))
	}
	return nil
}

func (p *divider[T]) Repeat(c *kernels.Ctx) error {
	p.run(c, p)
	return nil
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
