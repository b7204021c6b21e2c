// Command operator runs a program with a custom operator: demo::clip.
package main

import (
	"context"
	"fmt"
	"log"
	"slices"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// clipOp is the row for etrun.WithOperators.
var clipOp = kernels.Op{
	Schema: "demo::clip.out(Tensor self, *, Tensor(a!) out)",
	Func:   clip,
	DTypes: "float32",
	Family: kernels.Exact,
	Pure:   true, // calls with constant arguments may be made once, at load
}

// clip limits each element to [0, 1]; NaN stays NaN.
func clip(c *kernels.Ctx, a kernels.Args) error {
	self, out := a.Tensor(0), a.Tensor(1)
	if err := kernels.WantDType(0, self, tensor.Float32); err != nil {
		return err
	}
	if err := kernels.WantDType(1, out, tensor.Float32); err != nil {
		return err
	}
	if err := kernels.ResizeOut(a, 1, self.Sizes); err != nil {
		return err
	}
	if !slices.Equal(self.DimOrder, out.DimOrder) {
		return kernels.Bad(1, "the dim order of argument 0", "another one")
	}
	p := kernels.Keep[clipping](c)
	p.x, p.y = tensor.Data[float32](self), tensor.Data[float32](out)
	c.Parallel(len(p.x), 1<<15, p) // 1<<15 elements take about 20 µs
	return nil
}

// clipping is the state of a call; it persists between runs, so that they allocate nothing.
type clipping struct{ x, y []float32 }

// Range clips the elements from lo to hi.
func (p *clipping) Range(_, lo, hi int) {
	for i, v := range p.x[lo:hi] {
		p.y[lo+i] = min(max(v, 0), 1)
	}
}

func run() error {
	prog, err := etrun.Open("examples/daemon/model.pte",
		etrun.WithDataFiles("examples/daemon/model.ptd"), etrun.WithOperators(clipOp))
	if err != nil {
		return err
	}
	defer prog.Close()
	ctx := context.Background()
	m, err := prog.Load(ctx, "forward")
	if err != nil {
		return err
	}
	defer m.Close()
	y, err := etrun.Run[float32](ctx, m, []float32{1, 2, 3, 4, 5, 6, 7, 8})
	if err != nil {
		return err
	}
	fmt.Println(y)
	return nil
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
