// Package nhwc (no compatibility promise) has the loops over images whose channels are adjacent in memory, [N, H, W, C] or
// [N, D, H, W, C]: those of operators on tensors in channels-last order, and of the Go engine of XNNPACK.
//
// A loop is a struct: its owner sets the exported fields and calls Plan, then Run for each line of the output, on several
// threads. A loop that is planned again for the same geometry allocates nothing.
package nhwc

import (
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/window"
)

// Images are images of C channels, and windows over them.
type Images struct {
	window.Shape
	C int
}

// Stopper is what ends loops early, by a panic: a *kernels.Ctx or a *cpu.Run.
type Stopper interface{ Poll() }

// size returns the number of elements of an image.
func (s *Images) size() int { return window.Volume(s.In) * s.C }

// Divide divides by one number. float32 is multiplied by its reciprocal, as in XNNPACK.
func Divide[T simd.Ordered](y []T, by T) {
	if y, ok := any(y).([]float32); ok {
		simd.ScaleShift(y, y, 1/float32(by), 0)
		return
	}
	for i := range y {
		y[i] /= by
	}
}

// fill sets all elements to v.
func fill[T comparable](dst []T, v T) {
	var zero T
	if v == zero {
		clear(dst)
		return
	}
	for i := range dst {
		dst[i] = v
	}
}
