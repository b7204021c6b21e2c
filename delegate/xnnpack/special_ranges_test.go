package xnnpack

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/callstest"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/cases"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// elementwiseOps are the operators of one or two tensors that lowering accepts, with their other arguments.
var elementwiseOps = []struct {
	name string
	in   int
	args []any
}{
	{"abs.out", 1, nil}, {"neg.out", 1, nil}, {"ceil.out", 1, nil}, {"floor.out", 1, nil}, {"sqrt.out", 1, nil}, {"rsqrt.out", 1, nil},
	{"exp.out", 1, nil}, {"log.out", 1, nil}, {"sin.out", 1, nil}, {"cos.out", 1, nil}, {"sigmoid.out", 1, nil}, {"tanh.out", 1, nil},
	{"relu.out", 1, nil}, {"silu.out", 1, nil}, {"hardswish.out", 1, nil}, {"hardtanh.out", 1, []any{-0.5, 0.75}},
	{"clamp.out", 1, []any{nil, 1}}, {"clamp.out", 1, []any{-1.0, nil}}, {"gelu.out", 1, []any{"none"}}, {"leaky_relu.out", 1, []any{0.1}},
	{"elu.out", 1, []any{1.5, 1, 1}}, {"pow.Tensor_Scalar_out", 1, []any{2}}, {"_softmax.out", 1, []any{-1, false}},
	{"add.Scalar_out", 1, []any{1.5, 1}}, {"sub.Scalar_out", 1, []any{1.5, 1}}, {"rsub.Scalar_out", 1, []any{1.5, 1}},
	{"mul.Scalar_out", 1, []any{1.5}}, {"div.Scalar_out", 1, []any{1.7}},
	{"add.out", 2, []any{1}}, {"sub.out", 2, []any{1}}, {"mul.out", 2, nil}, {"div.out", 2, nil}, {"maximum.out", 2, nil}, {"minimum.out", 2, nil},
}

// rangeNumbers are numbers of all magnitudes, and special ones.
func rangeNumbers() (list []float32) {
	list = append(list, specials...)
	for e := -149; e <= 127; e += cases.Of(3, 1) {
		for _, m := range []float64{1, 1.37, 1.999999} {
			x := float32(m * math.Pow(2, float64(e)))
			list = append(list, x, -x)
		}
	}
	return append(list, 0x1.8p126, 0x1p127)
}

// flush sets subnormal numbers to 0, as libXNNPACK does.
func flush(x []float32) {
	for i, v := range x {
		if math.Abs(float64(v)) < 0x1p-126 {
			x[i] = float32(math.Copysign(0, float64(v)))
		}
	}
}

// TestSpecialRanges lowers each elementwise operator, and compares its results for one number of every magnitude among ordinary
// numbers. The operator's result for 0 is right, too, where the library takes a subnormal number as 0.
func TestSpecialRanges(t *testing.T) {
	for i, o := range elementwiseOps {
		c := callstest.New(uint64(i))
		c.Lo = 0.1 // a result of NaN would hide others
		var args []any
		for range o.in {
			args = append(args, c.Input(20))
		}
		c.Outputs(c.Do("aten::"+o.name, 1, append(args, o.args...)...))
		others := []float32{1}
		if o.in == 2 {
			others = []float32{1, float32(math.Copysign(0, -1)), 0x1p-149, 0x1p-126, -0x1p-60, 0x1.8p63, 0x1p126, -math.MaxFloat32}
		}
		for _, b := range compilers() {
			least := 0x1p-125
			if o.name == "gelu.out" { // the library adds 1 to what it multiplies by
				least = 2e-7
			}
			t.Run(fmt.Sprintf("%s %v %s", o.name, o.args, b.Engine), func(t *testing.T) { runRanges(t, c, b, others, least) })
		}
	}
}

// ranges runs an operator and its lowered form with each number at one position, and others there in the second operand.
func runRanges(t *testing.T, c *callstest.Calls, b Backend, others []float32, least float64) {
	img, err := b.CompileGraph(context.Background(), c.Graph)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	u, err := img.Unit(delegate.Instance{Pool: cpu.NewPool(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	operand := func(i int) []float32 { return tensor.View[float32](c.Tensors[c.Graph.Inputs[i]].Data)[:20] }
	operator := func() []float64 {
		for _, again := range c.Again {
			if err := again(); err != nil {
				t.Fatal(err)
			}
		}
		return graphtest.NumbersOf(c.Tensors[c.Graph.Outputs[0]])
	}
	for i, x := range rangeNumbers() {
		at := i % 20
		for _, z := range others {
			old := []float32{operand(0)[at], operand(len(c.Graph.Inputs) - 1)[at]}
			operand(len(c.Graph.Inputs) - 1)[at] = z
			operand(0)[at] = x
			args := c.Arguments()
			mustExecute(t, u, args)
			got, want := graphtest.NumbersOf(args[len(args)-1].Tensor), operator()
			for k := range c.Graph.Inputs {
				flush(operand(k))
			}
			flushed := operator()
			for k := range want {
				if !sameInRange(got[k], want[k], least) && (b.Engine == EngineGo || !sameInRange(got[k], flushed[k], least)) {
					t.Errorf("%v, %v: element %d of one at %d: got %v, want %v", x, z, k, at, got[k], want[k])
				}
			}
			operand(len(c.Graph.Inputs) - 1)[at] = old[1]
			operand(0)[at] = old[0]
		}
	}
}

// sameInRange reports whether a number is near another one, relative to it or by less than least.
func sameInRange(got, want, least float64) bool {
	return got == want || math.IsNaN(got) && math.IsNaN(want) || !math.IsInf(want, 0) && math.Abs(got-want) <= 4e-6*math.Abs(want)+least
}
