package xnnpack

import (
	"context"
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/callstest"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/cases"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// specials are numbers that engines may treat in their own way.
var specials = []float32{float32(math.NaN()), graph.Inf, -graph.Inf, 0, float32(math.Copysign(0, -1)),
	0x1p-149, -0x1p-130, math.MaxFloat32, -math.MaxFloat32}

// specialRounds is the number of random programs; ETRUN_SPECIALS sets another one.
func specialRounds() int {
	if n, err := strconv.Atoi(os.Getenv("ETRUN_SPECIALS")); err == nil {
		return n
	}
	return cases.Of(200, 600)
}

// sprinkle overwrites some elements of the inputs with special numbers, and computes the expected outputs.
func sprinkle(c *callstest.Calls, numbers []float32) error {
	for _, v := range c.Graph.Inputs {
		t := c.Tensors[v]
		if t.DType != tensor.Float32 || t.Numel() == 0 {
			continue
		}
		x := tensor.View[float32](t.Data)[:t.Numel()]
		for range 1 + c.Rand.IntN(3) {
			x[c.Rand.IntN(len(x))] = numbers[c.Rand.IntN(len(numbers))]
		}
	}
	for _, again := range c.Again {
		if err := again(); err != nil {
			return err
		}
	}
	return nil
}

// runSpecial compares the outputs of a lowered graph with those of the operators: NaN and infinities are the same.
func runSpecial(c *callstest.Calls, b Backend, tolerance float64) error {
	img, err := b.CompileGraph(context.Background(), c.Graph)
	if err != nil {
		return nil // checked elsewhere
	}
	defer img.Close()
	u, err := img.Unit(delegate.Instance{Pool: cpu.NewPool(1)})
	if err != nil {
		return err
	}
	defer u.Close()
	args := c.Arguments()
	if err := u.Execute(context.Background(), args); err != nil {
		return err
	}
	for i, v := range c.Graph.Outputs {
		if err := sameNumbers(args[len(c.Graph.Inputs)+i].Tensor, c.Tensors[v], tolerance); err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
	}
	return nil
}

func sameNumbers(got, want *tensor.Tensor, tolerance float64) error {
	x, y := graphtest.NumbersOf(got), graphtest.NumbersOf(want)
	for i := range y {
		same := x[i] == y[i] || math.IsNaN(x[i]) && math.IsNaN(y[i]) ||
			!math.IsInf(y[i], 0) && math.Abs(x[i]-y[i]) <= tolerance*max(1, math.Abs(y[i]), 100)
		if !same {
			return fmt.Errorf("element %d of %v: got %v, want %v", i, want.Sizes, x[i], y[i])
		}
	}
	return nil
}

// TestSpecialNumbers runs random programs with NaN, infinities and subnormal numbers among their inputs: lowered to
// either engine they compute what the operators do.
func TestSpecialNumbers(t *testing.T) {
	failed := 0
	for seed := range specialRounds() {
		short, tolerance := seed%4 == 3, 1e-4
		if short {
			tolerance = 0.004 // of sums of several steps
		}
		w := callstest.NewRandom(uint64(seed), 1+seed%12, short, Backend{}.Accepts)
		if len(w.Graph.Calls) == 0 || len(w.Graph.Outputs) == 0 {
			continue
		}
		if err := sprinkle(w.Calls, specials[:7]); err != nil {
			continue
		}
		for _, b := range compilers() {
			if err := runSpecial(w.Calls, b, tolerance); err != nil {
				if failed++; failed < 20 {
					t.Errorf("seed %d, %s: %v\n%v", seed, b.Engine, err, w)
				}
			}
		}
	}
	t.Logf("%d failed", failed)
}
