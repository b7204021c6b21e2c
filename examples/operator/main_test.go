package main

import (
	"math"
	"os"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var set = kernels.NewSet([]kernels.Op{clipOp})

func TestClip(t *testing.T) {
	nan := float32(math.NaN())
	x, y := tensor.Of([]float32{-1, 0.5, 2, nan}, 2, 2), tensor.Of([]float32{0, 0.5, 1, nan}, 2, 2)
	long := tensor.New(tensor.Float32, 1<<17) // several threads
	cases := []kerneltest.Case{
		{Name: "values", Op: "demo::clip.out", Args: []any{x}, Want: []any{y}},
		{Name: "threads", Op: "demo::clip.out", Args: []any{long}, Want: []any{long}},
		{Name: "empty", Op: "demo::clip.out", Args: []any{tensor.New(tensor.Float32, 0)}, Want: []any{tensor.New(tensor.Float32, 0)}},
		{Name: "integers", Op: "demo::clip.out", Args: []any{tensor.New(tensor.Int32, 2)}, Outs: []any{tensor.New(tensor.Int32, 2)}, Refused: "argument 0"},
	}
	kerneltest.Run(t, set, cases...)
	kerneltest.NoAllocs(t, set, cases[0], cases[1])
}

func TestTable(t *testing.T) {
	kerneltest.Table(t, set, kerneltest.Case{Op: "demo::clip.out", Args: []any{tensor.Of([]float32{-1, 0.5, 2}, 3)},
		Want: []any{tensor.Of([]float32{0, 0.5, 1}, 3)}})
}

func TestRandomCalls(t *testing.T) { kerneltest.Random(t, set, 500) }

func FuzzClip(f *testing.F) { kerneltest.Fuzz(f, set) }

func Example() {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	main()
	// Output: [0.88605464 0 1 1 0 1]
}
