package diff

import (
	"math"
	"testing"

	"github.com/x448/float16"

	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

func TestMeasure(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	next := math.Nextafter32(1, 2)
	floats := func(v ...float32) tensor.Value { return tensor.TensorValue(tensor.Of(v, len(v))) }
	turned := tensor.Make(tensor.Float32, []int{2, 3}, []uint8{1, 0}, tensor.Static)
	turned.Bind(tensor.BytesOf([]float32{1, 4, 2, 5, 3, 6}))
	for _, c := range []struct {
		name      string
		got, want tensor.Value
		distance  Distance
		differs   bool
	}{
		{"equal", floats(1, nan, inf, -inf), floats(1, nan, inf, -inf), Distance{Equal: true, Cosine: 1}, false},
		{"one step", floats(next, 3), floats(1, 3), Distance{MaxAbs: 1.1920928955078125e-07, MeanAbs: 1.1920928955078125e-07 / 2,
			MaxRel: 1.1920928955078125e-07, MaxULP: 1, Cosine: 1}, false},
		{"through zero", floats(math.SmallestNonzeroFloat32), floats(-math.SmallestNonzeroFloat32),
			Distance{MaxAbs: 0x1p-148, MeanAbs: 0x1p-148, MaxRel: 2, MaxULP: 2, Cosine: -1}, false},
		{"opposite", floats(2, 0), floats(-2, 0), Distance{MaxAbs: 4, MeanAbs: 2, MaxRel: 2, MaxULP: 2 << 30, Cosine: -1}, true},
		{"at right angles", floats(0, 1), floats(1, 0), Distance{MaxAbs: 1, MeanAbs: 1, MaxRel: 1, Cosine: 0, MaxULP: 127 << 23}, true},
		{"a NaN", floats(nan, 1), floats(0, 1), Distance{MaxAbs: output.Number(math.Inf(1)), MeanAbs: output.Number(math.Inf(1)), Cosine: 1}, true},
		{"zeros", floats(0, 0), floats(0, 0), Distance{Equal: true, Cosine: 1}, false},
		{"nothing for something", floats(0), floats(1), Distance{MaxAbs: 1, MeanAbs: 1, MaxRel: 1, MaxULP: 127 << 23}, true},
		{"order in memory", tensor.TensorValue(turned), tensor.TensorValue(tensor.Of([]float32{1, 2, 3, 4, 5, 6}, 2, 3)), Distance{Equal: true, Cosine: 1}, false},
		{"integers", tensor.TensorValue(tensor.Of([]int64{1, 7}, 2)), tensor.TensorValue(tensor.Of([]int64{1, 4}, 2)),
			Distance{MaxAbs: 3, MeanAbs: 1.5, MaxRel: 0.75, MaxULP: 3, Cosine: output.Number(29 / math.Sqrt(50*17))}, true},
		{"sizes", floats(1, 2), floats(1), Distance{}, true},
		{"kinds", tensor.IntValue(1), floats(1), Distance{Cosine: 1}, true},
		{"numbers", tensor.IntValue(5), tensor.IntValue(5), Distance{Equal: true, Cosine: 1}, false},
	} {
		d := Measure(&c.got, &c.want, kernels.Tolerance{Abs: 1e-5, Rel: 1e-3})
		if (d.Differs != "") != c.differs {
			t.Errorf("%s: difference %q, want one: %v", c.name, d.Differs, c.differs)
		}
		if d.Differs = ""; math.Abs(float64(d.Cosine-c.distance.Cosine)) < 1e-12 {
			d.Cosine = c.distance.Cosine
		}
		if d != c.distance {
			t.Errorf("%s: got %+v, want %+v", c.name, d, c.distance)
		}
	}
}

// Adjacent numbers are one ULP apart, in every type and at every magnitude.
func TestSteps(t *testing.T) {
	for bits := range uint16(0x7bff) {
		a, b := float64(float16.Frombits(bits).Float32()), float64(float16.Frombits(bits+1).Float32())
		if n := steps(tensor.Float16, a, b); n != 1 {
			t.Errorf("float16 %#x and the next: %d steps", bits, n)
		}
	}
	for exponent := -149; exponent < 127; exponent++ {
		a := float32(math.Ldexp(1, exponent))
		b := math.Nextafter32(a, float32(math.Inf(1)))
		if n := steps(tensor.Float32, float64(a), float64(b)); n != 1 {
			t.Errorf("float32 %v and the next: %d steps", a, n)
		}
	}
}
