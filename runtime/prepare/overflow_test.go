package prepare_test

import (
	"errors"
	"math/bits"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/exec/exectest"
	"github.com/etrun-go/etrun/runtime/prepare"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Sizes whose sum overflows are rejected, for views of constants and others.
func TestSizesThatOverflowTogether(t *testing.T) {
	for name, storage := range map[string]pte.Storage{"constants": pte.Constant, "others": pte.Unplanned} {
		spec := exectest.Small()
		for range 8 { // of a quarter of all addresses each
			base := *spec.Values[exectest.Constant].Tensor
			base.Storage = storage
			huge := &pte.Tensor{DType: tensor.Int64, Sizes: []int{1 << (bits.UintSize - 6)}, DimOrder: []uint8{0}}
			n := len(spec.Values)
			spec.Values = append(spec.Values, pte.Value{Kind: tensor.KindTensor, Tensor: &base}, pte.Value{Kind: tensor.KindTensor, Tensor: huge})
			spec.Chains[0].Instructions = append(spec.Chains[0].Instructions, exectest.Call(exectest.OpView, n, n+1))
		}
		_, err := exectest.Load(&spec, 0, prepare.Options{Operators: kernels.NewSet(exectest.WordOps), AsWritten: true})
		if _, ok := errors.AsType[*prepare.MemoryError](err); !ok && !errors.Is(err, pte.ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
