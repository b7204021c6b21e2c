package quantize

import (
	"math"
	"testing"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// series returns n weights of the series that the expected scales were computed for.
func series(n int) (list []float32) {
	for k := range n {
		list = append(list, float32(math.Sin(0.37*float64(k))*(1+0.01*float64(k))))
	}
	return list
}

func TestWeights8(t *testing.T) {
	w := series(64)
	f := &filter{shape: graph.ShapeOf(4, 16)}
	for k := range 4 {
		f.rows = append(f.rows, w[16*k:][:16])
	}
	x := f.perChannel(nil)
	for k, want := range []float64{0.008855284, 0.010180459, 0.011503261, 0.012429449} {
		if got := float64(x.Quant.Scales[k]); math.Abs(got-want) > 1e-8 {
			t.Errorf("scale %d is %v, want %v", k, got, want)
		}
	}
	for i, v := range w {
		got := float32(int8(x.Data[i])) * x.Quant.Scales[i/16]
		if d := got - v; max(d, -d) > 0.51*x.Quant.Scales[i/16] || int8(x.Data[i]) == -128 {
			t.Errorf("element %d is %v, want %v", i, got, v)
		}
	}
}

// A group's scale is one of those that are tried, and the error is not larger than at the scale of PyTorch's quantizer.
func TestWeights4(t *testing.T) {
	w := series(128)
	f := &filter{shape: graph.ShapeOf(2, 64), rows: [][]float32{w[:64], w[64:]}}
	x := f.perGroup(32)
	for g, full := range []float64{0.172389105, 0.210472003, 0.251594692, 0.297057301} {
		scale := float64(numberOf(x.Quant.Blocks[g]))
		if scale < 0.79*full || scale > 1.06*full {
			t.Errorf("scale %d is %v, want about %v", g, scale, full)
		}
		got, theirs := 0.0, 0.0
		for i, v := range w[32*g:][:32] {
			q := int(x.Data[(32*g+i)/2]>>(4*(i%2))&15) - 8
			got += math.Pow(float64(v)-float64(q)*scale, 2)
			rounded := float64(numberOf(graph.ToBF16(float32(full))))
			theirs += math.Pow(float64(v)-rounded*float64(code4(v, float32(rounded))), 2)
		}
		if got > theirs*(1+1e-9) || theirs == 0 {
			t.Errorf("group %d: squared error %v, PyTorch's scale has %v", g, got, theirs)
		}
	}
}

// Biases that are large against the products do not exceed 32 bits.
func TestBias(t *testing.T) {
	f := &filter{shape: graph.ShapeOf(1, 2), rows: [][]float32{{1e-9, -1e-9}}}
	bias := []float32{100}
	x := f.perChannel(floors(bias, 1, 0.01, 0.5))
	b := bias32(bias, 0.01, x.Quant.Scales)
	if got := float64(b.Quant.Scales[0]) * float64(tensor.View[int32](b.Data)[0]); math.Abs(got-100) > 0.01 {
		t.Errorf("bias %v, want 100", got)
	}
}
