package cortexm

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/compare"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// TestRepeat changes the elements of every tensor between two calls of one instruction: a repeated
// call must compute the same as a first call.
func TestRepeat(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, c := range calls() {
		t.Run(c.Name, func(t *testing.T) {
			op, _, _, err := set.Lookup(c.Op)
			if err != nil {
				t.Fatal(err)
			}
			args := slices.Clone(c.Args)
			for i, a := range args {
				if a, ok := a.(*tensor.Tensor); ok {
					args[i] = variable(a)
				}
			}
			out := variable(c.Want[0].(*tensor.Tensor))
			ctx, call := kernels.NewCtx(nil), kernels.NewCall(op.Func, slots(append(args, out, out)), true)
			for range 3 {
				for _, a := range args {
					if a, ok := a.(*tensor.Tensor); ok {
						shake(r, a)
					}
				}
				if err := call.Do(ctx); err != nil {
					t.Fatal(err)
				}
				fresh := variable(out)
				once := kernels.NewCall(op.Func, slots(append(args[:len(args):len(args)], fresh, fresh)), true)
				if err := once.Do(kernels.NewCtx(nil)); err != nil {
					t.Fatal(err)
				}
				if err := compare.Tensors(out, fresh, kernels.Tolerance{}); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// variable is a zeroed tensor like t that is no constant.
func variable(t *tensor.Tensor) *tensor.Tensor {
	v := tensor.Make(t.DType, t.Sizes, t.DimOrder, tensor.Static)
	v.Bind(tensor.AlignedBytes(v.NBytes()))
	return v
}

// shake changes a tensor's elements, to small ones if they may be shifts.
func shake(r *rand.Rand, t *tensor.Tensor) {
	switch t.DType {
	case i32:
		for i := range tensor.Data[int32](t) {
			tensor.Data[int32](t)[i] = int32(r.IntN(32))
		}
	case f32:
		for i := range tensor.Data[float32](t) {
			tensor.Data[float32](t)[i] = float32(r.NormFloat64() * 100)
		}
	default:
		for i := range t.Data {
			t.Data[i] = byte(r.Uint32())
		}
	}
}

// slots are the slots of a call.
func slots(args []any) kernels.Args {
	a := make(kernels.Args, len(args))
	for i, v := range args {
		switch v := v.(type) {
		case *tensor.Tensor:
			a[i] = new(tensor.TensorValue(v))
		case []int:
			items := make([]*tensor.Value, len(v))
			for k, n := range v {
				items[k] = new(tensor.IntValue(int64(n)))
			}
			a[i] = new(tensor.NewList(tensor.KindIntList, items))
		case int:
			a[i] = new(tensor.IntValue(int64(v)))
		case float64:
			a[i] = new(tensor.DoubleValue(v))
		case bool:
			a[i] = new(tensor.BoolValue(v))
		case tensor.DType:
			a[i] = new(tensor.IntValue(int64(v)))
		default:
			a[i] = new(tensor.Value)
		}
	}
	return a
}
