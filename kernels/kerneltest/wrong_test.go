package kerneltest

import (
	"slices"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/cortexm"
	"github.com/etrun-go/etrun/kernels/llm"
	"github.com/etrun-go/etrun/kernels/portable"
	"github.com/etrun-go/etrun/kernels/quantized"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// wrong returns an operator that computes something else in the last element of each output. With a result in a slot,
// the number is wrong.
func wrong(op kernels.Op, sig *kernels.Signature) kernels.Op {
	right := op.Func
	op.Func = func(c *kernels.Ctx, a kernels.Args) error {
		if err := right(c, a); err != nil {
			return err
		}
		for i := range a {
			if i < len(sig.Args) && (sig.Args[i].Out || sig.Args[i].Mutated) || i == len(sig.Args) && sig.Result != nil {
				spoil(a[i])
			}
		}
		return nil
	}
	return op
}

// spoil changes a value.
func spoil(v *tensor.Value) {
	v.Int, v.Double, v.Bool = v.Int+1, 2*v.Double+1, !v.Bool
	if v.Kind == tensor.KindTensor {
		spoilTensor(v.Tensor)
	}
	for _, item := range v.Items {
		spoil(item)
	}
}

func spoilTensor(t *tensor.Tensor) {
	size := t.DType.Size()
	if len(t.Data) < size {
		return
	}
	last := t.Data[len(t.Data)-size:]
	switch x, ok := tensor.Get[float64](last, t.DType); {
	case t.DType == tensor.Bool:
		last[0] ^= 1
	case ok && (t.DType.IsInt() || x == x && x-x == 0):
		tensor.Put(last, t.DType, 2*x+1)
	default:
		last[size-1] ^= 0x41
	}
}

// TestWrongOperatorsFail spoils every operator of this module in turn: its expected values must find that. Those of the
// operators without an element to compare are listed.
func TestWrongOperatorsFail(t *testing.T) {
	silent := []string{"aten::empty.out", "dim_order_ops::_empty_dim_order.out"}
	checked := 0
	for _, ops := range [][]kernels.Op{portable.Ops(), quantized.Ops(), cortexm.Ops(), llm.Ops()} {
		whole := kernels.NewSet(ops)
		for _, op := range ops {
			name := op.Name()
			_, sig, _, err := whole.Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			if op.Random || len(expected()[name]) == 0 { // Table demands values of these from its caller
				continue
			}
			checked++
			err = checkExpected(kernels.NewSet([]kernels.Op{wrong(op, sig)}), name, sig, nil)
			if (err == nil) != slices.Contains(silent, name) {
				t.Errorf("%s: spoiled, the check says %v", name, err)
			}
		}
	}
	if checked < 350 {
		t.Errorf("only %d operators were spoiled", checked)
	}
}
