package cortexm

import (
	"fmt"
	"math"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// requantize scales v by multiplier · 2^(shift-31), a shift within [-31, 31]
// (CMSIS-NN's arm_nn_requantize).
func requantize(v, multiplier, shift int32) int32 {
	v <<= uint32(max(shift, 0))
	h := int32((int64(v)*int64(multiplier) + 1<<30) >> 31)
	return divideByPower(h, max(-shift, 0))
}

// divideByPower returns v / 2^n, 0 ≤ n < 63, rounded half away from 0
// (arm_nn_divide_by_power_of_two).
func divideByPower(v, n int32) int32 {
	if n <= 0 {
		return v
	}
	w := int64(v)
	return int32((w + int64(1)<<(n-1) + w>>63) >> n)
}

// maxShift is the largest shift in either direction.
const maxShift = 31

// scale is a multiplier and a shift.
type scale struct{ multiplier, shift int32 }

func (s scale) apply(v int32) int32 { return requantize(v, s.multiplier, s.shift) }

// quantizer converts scaled numbers to int8: it adds the zero point, which wraps, and clamps.
type quantizer struct{ zero, least, most int32 }

func (q quantizer) of(v int32) int8 { return int8(min(max(v+q.zero, q.least), q.most)) }

// int8Range clamps to the range of int8.
func int8Range(zero int32) quantizer { return quantizer{zero, math.MinInt8, math.MaxInt8} }

// channels converts sums of products, which start from the bias of their channel, to int8.
type channels struct {
	quantizer
	bias, multipliers, shifts *tensor.Tensor // int32, one per channel; bias may be nil
	arg                       int            // of shifts
	one                       scale          // of all channels if multipliers is nil
}

// set reads the scales of n channels, tensor arguments i and i+1.
func (q *channels) set(r *reader, i, n int) {
	q.multipliers, q.shifts, q.arg = r.perChannel(i, n), r.perChannel(i+1, n), i+1
}

// setBias reads the bias of n channels, which may be None.
func (q *channels) setBias(r *reader, i, n int) {
	if q.bias = nil; !r.IsNone(i) {
		q.bias = r.perChannel(i, n)
	}
}

// check returns an error for shifts out of range; their contents are checked in every run.
func (q *channels) check() error {
	if q.multipliers == nil {
		return nil
	}
	for o, s := range tensor.Data[int32](q.shifts) {
		if s < -maxShift || s > maxShift {
			return kernels.Badf(q.arg, fmt.Sprintf("shifts in [-%d, %[1]d]", maxShift), "%d for channel %d", s, o)
		}
	}
	return nil
}

// store converts the sums of channels from, from+1, … to int8.
func (q *channels) store(dst []int8, sums []int32, from int) {
	dst = dst[:len(sums)]
	if q.multipliers == nil {
		for i, v := range sums {
			dst[i] = q.of(q.one.apply(v))
		}
		return
	}
	multipliers := tensor.Data[int32](q.multipliers)[from:][:len(sums)]
	shifts := tensor.Data[int32](q.shifts)[from:][:len(sums)]
	for i, v := range sums {
		dst[i] = q.of(requantize(v, multipliers[i], shifts[i]))
	}
}
