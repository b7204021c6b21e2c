package quantize

import (
	"math"
	"testing"
)

// wave returns the elements of the series that the expected values were computed for, by PyTorch's observers.
func wave(f, growth, shift float64) (list []float32) {
	for k := range 1000 {
		list = append(list, float32(math.Sin(f*float64(k))*(1+growth*float64(k))+shift))
	}
	return list
}

func TestObservers(t *testing.T) {
	a, b := wave(0.37, 0.001, 0), wave(0.53, 0.002, 0.25)
	positive, outlier := wave(0.37, 0.001, 0), wave(0.37, 0.001, 0)
	for i := range positive {
		positive[i] = max(positive[i], 0)
	}
	outlier[500] = 20
	for _, c := range []struct {
		name    string
		batches [][]float32
		find    func(*Observer) (float32, float32)
		scale   float64
		zero    int32
	}{
		{"a", [][]float32{a}, (*Observer).LeastError, 0.015551883727312088, 0},
		{"a, then b", [][]float32{a, b}, (*Observer).LeastError, 0.023327874019742012, -11},
		{"positive", [][]float32{positive}, (*Observer).LeastError, 0.0077794515527784824, -128},
		{"an outlier", [][]float32{outlier}, (*Observer).LeastError, 0.08616551011800766, -105},
		{"zeros", [][]float32{make([]float32, 10)}, (*Observer).LeastError, 0.000244140625, -128},
		{"one element", [][]float32{{0.5}}, (*Observer).LeastError, 0.0019607844296842813, -128},
		{"extremes", [][]float32{a}, (*Observer).Extremes, 0.015559481456875801, -1},
	} {
		o := &Observer{}
		for _, list := range c.batches {
			o.Add(list)
		}
		scale, zero := affine(c.find(o))
		if math.Abs(float64(scale)-c.scale) > 1e-7*c.scale || zero != c.zero {
			t.Errorf("%s: scale %v, zero point %d, want %v and %d", c.name, scale, zero, c.scale, c.zero)
		}
	}
}

// A percentile leaves a single outlier out, and elements that are not finite are ignored.
func TestPercentile(t *testing.T) {
	list := make([]float32, 100_000)
	for i := range list {
		list[i] = float32(i%1000)/1000 - 0.5
	}
	list[7], list[8], list[9] = 50, float32(math.NaN()), float32(math.Inf(-1))
	o := &Observer{}
	o.Add(list)
	if lo, hi := o.Percentile(); lo < -0.51 || hi > 0.55 {
		t.Errorf("range %v to %v, want about -0.5 to 0.5", lo, hi)
	}
	if lo, hi := o.Extremes(); lo != -0.5 || hi != 50 {
		t.Errorf("extremes %v and %v, want -0.5 and 50", lo, hi)
	}
	if o := (&Observer{}); !o.Empty() {
		t.Error("a new observer is not empty")
	}
}

// TestObserverOfLargeNumbers records numbers that have no neighbours at a distance of 1.
func TestObserverOfLargeNumbers(t *testing.T) {
	for _, list := range [][]float32{{1e30, 1e30}, {-1e30}, {3e38, -3e38}, {1e-45, 0}} {
		var o Observer
		o.Add(list)
		o.Add(list)
		o.Add([]float32{list[0] / 2})
		if lo, hi := o.LeastError(); o.total != float64(2*len(list)+1) || !(lo <= hi) {
			t.Errorf("%v: %v elements, %v to %v", list, o.total, lo, hi)
		}
	}
}
