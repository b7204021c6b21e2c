// Package diff measures the distance between the outputs of two runs.
package diff

import (
	"math"

	"github.com/x448/float16"

	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/compare"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Distance is the distance of an output from the expected one. The figures are for tensors
// of real numbers; pairs of equal elements, including NaNs and infinities, have distance 0.
type Distance struct {
	Differs string        `json:"difference,omitempty"` // first element beyond the tolerance, and how many
	Equal   bool          `json:"equal"`                // all elements are equal
	MaxAbs  output.Number `json:"max_abs"`
	MeanAbs output.Number `json:"mean_abs"`
	MaxRel  output.Number `json:"max_rel"` // relative to |want|, unless that is 0
	MaxULP  uint64        `json:"max_ulp"` // units in the last place
	Cosine  output.Number `json:"cosine"`  // cosine similarity
}

// Measure compares got with want; the tolerance applies to floats.
func Measure(got, want *tensor.Value, tol kernels.Tolerance) Distance {
	d := Distance{Cosine: 1, Equal: true}
	if err := compare.Values(got, want, tol); err != nil {
		d.Differs = err.Error()
	}
	if got.Kind != tensor.KindTensor || want.Kind != tensor.KindTensor {
		d.Equal = d.Differs == ""
		return d
	}
	g, w := got.Tensor, want.Tensor
	if g.DType != w.DType || g.Numel() != w.Numel() {
		d.Equal, d.Cosine = false, 0
		return d
	}
	d.elements(w.DType, g.Logical(), w.Logical())
	return d
}

// elements compares two lists of elements of one type.
func (d *Distance) elements(t tensor.DType, got, want []byte) {
	load, size := tensor.Loader[float64](t), t.Size()
	if load == nil {
		d.Equal = string(got) == string(want)
		return
	}
	var sum sums
	g, w := make([]float64, 1024), make([]float64, 1024)
	for at := 0; at < len(want); {
		n := min((len(want)-at)/size, len(g))
		load(g[:n], got[at:])
		load(w[:n], want[at:])
		at += n * size
		for i := range n {
			d.pair(t, g[i], w[i], &sum)
		}
	}
	if sum.n > 0 {
		d.MeanAbs = output.Number(sum.abs / float64(sum.n))
	}
	if norm := math.Sqrt(sum.got * sum.want); norm > 0 {
		d.Cosine = output.Number(sum.product / norm)
	} else if sum.got != sum.want {
		d.Cosine = 0
	}
}

// sums are over the pairs so far; the cosine is over the finite ones.
type sums struct {
	n                       int
	abs, got, want, product float64
}

func (d *Distance) pair(t tensor.DType, g, w float64, sum *sums) {
	sum.n++
	if finite(g) && finite(w) {
		sum.got, sum.want, sum.product = sum.got+g*g, sum.want+w*w, sum.product+g*w
	}
	if g == w || math.IsNaN(g) && math.IsNaN(w) {
		return
	}
	d.Equal = false
	abs := math.Abs(g - w)
	if math.IsNaN(abs) {
		abs = math.Inf(1)
	}
	sum.abs += abs
	d.MaxAbs = max(d.MaxAbs, output.Number(abs))
	if w != 0 && !math.IsInf(w, 0) {
		d.MaxRel = max(d.MaxRel, output.Number(abs/math.Abs(w)))
	}
	if finite(g) && finite(w) {
		d.MaxULP = max(d.MaxULP, steps(t, g, w))
	}
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// steps counts the representable numbers of a type from a to b.
func steps(t tensor.DType, a, b float64) uint64 {
	x, ok := ordinal(t, a)
	if !ok {
		return uint64(math.Abs(a - b))
	}
	y, _ := ordinal(t, b)
	if x > y {
		x, y = y, x
	}
	return uint64(y) - uint64(x)
}

// ordinal numbers the floats of a type in order; both zeros are 0.
func ordinal(t tensor.DType, x float64) (int64, bool) {
	var magnitude uint64 // bits without the sign
	switch abs := math.Abs(x); t {
	case tensor.Float64:
		magnitude = math.Float64bits(abs)
	case tensor.Float32:
		magnitude = uint64(math.Float32bits(float32(abs)))
	case tensor.BFloat16:
		magnitude = uint64(math.Float32bits(float32(abs)) >> 16)
	case tensor.Float16:
		magnitude = uint64(float16.Fromfloat32(float32(abs)).Bits())
	default:
		return 0, false
	}
	if x < 0 {
		return -int64(magnitude), true
	}
	return int64(magnitude), true
}
