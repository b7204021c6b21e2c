// Package resample (no compatibility promise) implements the ATen operators that interpolate images: upsampling and
// the grid sampler.
package resample

import (
	"fmt"
	"math"
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// elementCost is the cost of an output element in picoseconds.
const elementCost = 2_000

// elementsPerRange is the number of output elements of a range, about 20 µs.
const elementsPerRange = 10_000

type real interface{ float32 | float64 }

// image is the geometry of a resize: planes of in points become planes of out points; index 0 is height, 1 width.
// factor is the requested scale, 0 if only sizes were specified.
type image struct {
	planes  int
	in, out [2]int
	factor  [2]float64
}

// upsample reads the input, argument 0, and either output_size, argument 1, or scale_factors, argument scale, and
// resizes argument out.
func (m *image) upsample(a kernels.Args, scale, out int) error {
	if err := m.input(a.Tensor(0)); err != nil {
		return err
	}
	if err := m.target(a, scale); err != nil {
		return err
	}
	return m.resize(a, out, a.Tensor(0))
}

// input checks argument 0, [batch, channels, height, width].
func (m *image) input(t *tensor.Tensor) error {
	if t.Rank() != 4 {
		return kernels.Bad(0, t.String(), "rank 4")
	}
	if slices.Contains(t.Sizes[1:], 0) {
		return kernels.Bad(0, t.String(), "sizes of at least 1 behind the batch")
	}
	m.planes = t.Sizes[0] * t.Sizes[1]
	m.in = [2]int(t.Sizes[2:])
	return nil
}

func (m *image) target(a kernels.Args, scale int) error {
	m.factor = [2]float64{}
	sizes, scales := a.Ints(1), a.Floats(scale)
	if (len(sizes) == 0) == (len(scales) == 0) {
		return kernels.Badf(1, "either output_size or scale_factors", "%v and %v", sizes, scales)
	}
	if len(sizes) > 0 {
		return m.sizes(sizes)
	}
	if len(scales) != 2 {
		return kernels.Badf(scale, "2 factors", "%v", scales)
	}
	for i, f := range scales {
		n := math.Floor(float64(m.in[i]) * f)
		if !(f > 0 && n >= 1 && n <= 1<<31) {
			return kernels.Badf(scale, "factors that give sizes of 1 to 2^31", "%v", scales)
		}
		m.factor[i], m.out[i] = f, int(n)
	}
	return nil
}

// sizes sets the output's sizes from argument 1.
func (m *image) sizes(sizes []int64) error {
	if len(sizes) != 2 {
		return kernels.Badf(1, "2 sizes", "%v", sizes)
	}
	for i, n := range sizes {
		if n < 1 || n > 1<<31 {
			return kernels.Badf(1, "sizes of 1 to 2^31", "%v", sizes)
		}
		m.out[i] = int(n)
	}
	return nil
}

// resize resizes argument i, which has x's type, to the output's sizes.
func (m *image) resize(a kernels.Args, i int, x *tensor.Tensor) error {
	if t := a.Tensor(i); t.DType != x.DType {
		return kernels.Bad(i, t.DType.String(), fmt.Sprint("the input's ", x.DType))
	}
	sizes := [4]int{x.Sizes[0], x.Sizes[1], m.out[0], m.out[1]}
	return kernels.ResizeOut(a, i, sizes[:])
}

// scale returns the distance of output points in the input along dimension d (area_pixel_compute_scale).
func scale[T real](m *image, d int, alignCorners bool) T {
	switch {
	case alignCorners && m.out[d] == 1:
		return 0
	case alignCorners:
		return T(m.in[d]-1) / T(m.out[d]-1)
	case m.factor[d] > 0:
		return T(1 / m.factor[d])
	}
	return T(m.in[d]) / T(m.out[d])
}

func floor[T real](x T) T { return T(math.Floor(float64(x))) }
