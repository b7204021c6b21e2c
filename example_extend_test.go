package etrun_test

import (
	"context"
	"fmt"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// An operator is a schema and a function. This one replaces the built-in operator of the same name,
// and counts its calls.
func ExampleWithOperators() {
	calls := 0
	add := kernels.Op{
		Schema: "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out)",
		Func: func(_ *kernels.Ctx, a kernels.Args) error {
			calls++
			x, y, out := a.Tensor(0), a.Tensor(1), a.Tensor(3)
			if x.DType != tensor.Float32 || y.DType != tensor.Float32 {
				return kernels.Badf(0, "float32 tensors", "%v and %v", x, y)
			}
			if err := out.Resize(x.Sizes); err != nil {
				return err
			}
			xs, ys, sum := tensor.Data[float32](x), tensor.Data[float32](y), tensor.Data[float32](out)
			for i := range sum {
				sum[i] = xs[i] + ys[i%len(ys)]
			}
			return nil
		},
	}
	prog := must(etrun.Open("testdata/pte/initial_state.pte", etrun.WithOperators(add)))
	defer prog.Close()
	ctx := context.Background()
	m := must(prog.Load(ctx, "forward"))
	defer m.Close()
	fmt.Println(must(etrun.Run[float32](ctx, m, []float32{1, 2, 3, 4})), calls)
	// Output: [2 6 10 14] 1
}

// A backend compiles payloads into images; each method instance gets a unit of an image. This one
// computes nothing and returns ones.
type ones struct{}

func (ones) ID() string             { return "XnnpackBackend" } // the ID in the program
func (ones) Probe() delegate.Status { return delegate.Status{Loaded: true, Engine: "ones"} }

func (ones) Compile(_ context.Context, p *delegate.Payload) (delegate.Image, error) {
	if len(p.Data) == 0 {
		return nil, delegate.Errorf("ones", delegate.ErrPayload, "", "empty payload")
	}
	return onesImage{inputs: len(p.Args) - 1}, nil
}

type onesImage struct{ inputs int }

func (i onesImage) Unit(delegate.Instance) (delegate.Unit, error) { return onesUnit{}, nil }
func (i onesImage) Needs() delegate.Needs                         { return delegate.Needs{Inputs: i.inputs} }
func (i onesImage) Info() delegate.Info                           { return delegate.Info{Needs: i.Needs(), Engine: "ones"} }
func (onesImage) Close() error                                    { return nil }

type onesUnit struct{}

func (onesUnit) Execute(_ context.Context, args []*tensor.Value) error {
	out := tensor.Data[float32](args[len(args)-1].Tensor)
	for i := range out {
		out[i] = 1
	}
	return nil
}

func (onesUnit) Close() error { return nil }

// Backends are passed to Open. Delegates describes the compiled delegates of a method.
func ExampleWithDelegates() {
	prog := must(etrun.Open("testdata/digits/xnnpack.pte", etrun.WithDelegates(ones{})))
	defer prog.Close()
	ctx := context.Background()
	m := must(prog.Load(ctx, "forward"))
	defer m.Close()
	fmt.Println(must(etrun.Run[float32](ctx, m, make([]float32, 64))))
	fmt.Println(m.Delegates()[0].Engine)
	// Output:
	// [1 1 1 1 1 1 1 1 1 1]
	// ones
}
