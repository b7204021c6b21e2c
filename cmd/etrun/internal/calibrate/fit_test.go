package calibrate

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/cmd/etrun/internal/npy"
	"github.com/etrun-go/etrun/delegate/ethosu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// integers returns n random integers between lo and hi.
func integers(r *rand.Rand, n, lo, hi int) []int32 {
	q := make([]int32, n)
	for i := range q {
		q[i] = int32(lo + r.IntN(hi-lo+1))
	}
	return q
}

// TestExact finds the quantization of values, to the last bit.
func TestExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		d, reach := tensor.Int8, 128
		if r.IntN(3) == 0 {
			d, reach = tensor.Int16, 1<<15
		}
		scale, zero := float32(math.Exp(r.Float64()*20-15)), int32(r.IntN(2*reach)-reach)
		q := integers(r, 2+r.IntN(500), -reach, reach-1)
		q[0], q[1] = 3, 17
		values := make([]float64, len(q))
		for i := range q {
			values[i] = float64(float32(q[i]-zero) * scale)
		}
		f, err := of(q, values, d)
		if err != nil || float32(f.Scale) != scale || f.ZeroPoint != int64(zero) || f.Max > 1e-2 {
			t.Fatalf("%v, scale %v, zero point %d, %d values: got %+v, %v", d, scale, zero, len(q), f, err)
		}
	}
}

// TestFloatModel fits values that differ from the integers by rounding and clipping.
func TestFloatModel(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const scale, zero = 0.02, -9
	var q []int32
	var values []float64
	for range 5000 {
		v := r.NormFloat64() * 1.3
		q = append(q, int32(min(max(math.RoundToEven(v/scale)+zero, -128), 127)))
		values = append(values, v)
	}
	f, err := of(q, values, tensor.Int8)
	if err != nil || math.Abs(f.Scale/scale-1) > 0.01 || f.ZeroPoint != zero {
		t.Fatalf("got %+v, %v, want scale %v and zero point %d", f, err, scale, zero)
	}
	if f.Clipped < 10 || f.Values != 5000 || f.Max > 2 || math.Abs(f.RMS-1/math.Sqrt(12)) > 0.1 {
		t.Errorf("errors %+v, want those of rounding", f)
	}
}

func TestFitRefuses(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for name, tt := range map[string]struct {
		q    []int32
		y    []float64
		want string
	}{
		"none":                {nil, nil, "0 values"},
		"another count":       {[]int32{1, 2}, []float64{1}, "1 values, want 2"},
		"NaN":                 {[]int32{1, 2}, []float64{1, nan}, "element 1 is NaN"},
		"infinite":            {[]int32{1, 2}, []float64{inf, 1}, "element 0 is +Inf"},
		"one integer":         {[]int32{5, 5, 5}, []float64{1, 2, 3}, "wrote 5 everywhere"},
		"falling":             {[]int32{1, 2, 3}, []float64{3, 2, 1}, "correlation -1.000"},
		"constant":            {[]int32{1, 2, 3}, []float64{4, 4, 4}, "correlation NaN"},
		"unrelated":           {[]int32{1, 2, 3, 4}, []float64{1, -1, 1, -1}, "correlation"},
		"too large":           {[]int32{1, 2}, []float64{1e300, 1.7e308}, "correlation"},
		"too small":           {[]int32{1, 2}, []float64{1e-60, 2e-60}, "the best fit is scale"},
		"zero point too high": {[]int32{1, 2, 3}, []float64{-1000, -999, -998}, "the best fit is scale 1 and zero point 1001"},
	} {
		if f, err := of(tt.q, tt.y, tensor.Int8); !errors.Is(err, ErrFit) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %+v, %v, want …%s…", name, f, err, tt.want)
		}
	}
}

// array returns a float32 array.
func array(name string, values []float32, sizes ...int) *npy.Array {
	return &npy.Array{Name: name, DType: tensor.Float32, Sizes: sizes, Data: tensor.BytesOf(values)}
}

func TestReference(t *testing.T) {
	q := []int32{-3, 0, 5, 9, 2, 7}
	right, wrong := []float32{-1, 0.5, 3, 5, 1.5, 4}, []float32{4, 9, 1, 0, 2, 7}
	twice := []float32{-2, 1, 6, 10, 3, 8}
	c := &ethosu.Calibration{StaleOutput: ethosu.StaleOutput{Method: "forward", Delegate: 3, Output: 1, Written: tensor.Int8, Sizes: []int{1, 3, 2}}, Stored: q}
	last := *c
	last.Sizes, last.DimOrder, last.Stored = []int{1, 2, 1, 3}, []uint8{0, 2, 3, 1}, []int32{-3, 9, 0, 2, 5, 7}
	for name, tt := range map[string]struct {
		arrays []*npy.Array
		c      *ethosu.Calibration
		found  string // array, or
		want   string // part of the error
	}{
		"by key":              {arrays: []*npy.Array{array("x", right, 6), array("3:1", right, 3, 2)}, found: "3:1"},
		"by method and key":   {arrays: []*npy.Array{array("forward/3:1", right, 3, 2), array("3:1", wrong, 3, 2)}, found: "forward/3:1"},
		"by key, wrong":       {arrays: []*npy.Array{array("3:1", wrong, 3, 2), array("x", right, 3, 2)}, want: `array "3:1": reference values do not fit: correlation`},
		"by key, other sizes": {arrays: []*npy.Array{array("3:1", right, 2, 3)}, want: "sizes [2 3], the output has [1 3 2]"},
		"by fit":              {arrays: []*npy.Array{array("a", wrong, 3, 2), array("b", right, 3, 1, 2), array("c", right, 2, 3)}, found: "b"},
		"another's key":       {arrays: []*npy.Array{array("3:0", right, 3, 2), array("main/3:1", right, 3, 2)}, want: "none of sizes [1 3 2] fits"},
		"nothing fits":        {arrays: []*npy.Array{array("a", wrong, 3, 2)}, want: `none of sizes [1 3 2] fits: "a": reference values do not fit`},
		"two fit":             {arrays: []*npy.Array{array("a", right, 3, 2), array("b", twice, 3, 2)}, want: `arrays "a" and "b" both fit; name one "3:1"`},
		"the same twice":      {arrays: []*npy.Array{array("a", wrong, 3, 2), array("b", right, 3, 2), array("c", right, 1, 3, 2)}, found: "b"},
		"channels last":       {arrays: []*npy.Array{array("3:1", right, 1, 2, 1, 3)}, c: &last, found: "3:1"},
		"not numbers":         {arrays: []*npy.Array{{Name: "3:1", Void: true, DType: tensor.Uint8, Sizes: []int{3, 2}, Data: make([]byte, 6)}}, want: "raw 1-byte elements, want real numbers"},
		"complex":             {arrays: []*npy.Array{{Name: "3:1", DType: tensor.Complex64, Sizes: []int{3, 2}, Data: make([]byte, 48)}}, want: "want real numbers"},
	} {
		if tt.c == nil {
			tt.c = c
		}
		r, err := NewReference(tt.arrays)
		if err != nil {
			t.Fatal(err)
		}
		f, found, explicit, err := r.Fit(tt.c)
		if !explicit {
			f, found, err = r.Search(tt.c)
		}
		if tt.want != "" {
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: got %+v, %v, want …%s…", name, f, err, tt.want)
			}
			continue
		}
		if err != nil || found != tt.found || f.Scale != 0.5 || f.ZeroPoint != -1 || len(r.Unused()) != len(tt.arrays)-1 {
			t.Errorf("%s: got %q, %+v, %v, unused %q, want %q", name, found, f, err, r.Unused(), tt.found)
		}
	}
	if _, err := NewReference([]*npy.Array{array("a", right, 6), array("a", right, 6)}); !errors.Is(err, ErrReference) {
		t.Errorf("a name twice: got %v", err)
	}
}
