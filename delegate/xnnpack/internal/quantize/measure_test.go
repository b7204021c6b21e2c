package quantize

import (
	"math"
	"testing"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// A layer has infinite noise if numbers are lost, also beside others.
func TestErrors(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		want, got     []float32
		signal, noise float64
	}{
		{[]float32{3, 4}, []float32{3, 5}, 25, 1},
		{[]float32{3, 4}, []float32{nan, 4}, 25, math.Inf(1)},
		{[]float32{3, 4}, []float32{3, -inf}, 25, math.Inf(1)},
		{[]float32{nan, inf, 4}, []float32{3, nan, 4}, 16, 0},
	} {
		e := Errors{shift: make([]float64, 1), count: make([]float64, 1)}
		if e.add(c.want, c.got, -graph.Inf, graph.Inf); e.Signal != c.signal || e.Noise != c.noise {
			t.Errorf("%v and %v: got %v and %v, want %v and %v", c.want, c.got, e.Signal, e.Noise, c.signal, c.noise)
		}
	}
}
