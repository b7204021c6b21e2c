package prepare

import (
	"testing"

	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/pte"
)

// examined is a payload of some size with a constant of zeros, which counts how often it is followed.
type examined struct {
	lowering.Opened
	size, followed int
}

func (e *examined) Constants() []lowering.Constant {
	return []lowering.Constant{{Elements: 1, Data: make([]byte, 4)}}
}

func (e *examined) Reaches([]bool) []bool { e.followed++; return []bool{false} }

func (e *examined) Size() int { return e.size }

// TestBakedWorkIsBounded checks that states are followed through payloads only as often as their size allows.
func TestBakedWorkIsBounded(t *testing.T) {
	const states = 20
	for _, c := range []struct{ size, calls, want int }{
		{100, 1, states}, {maxBakedWork / 4, 1, 3}, {maxBakedWork / 8, 2, 6}, {maxBakedWork, 1, 0},
	} {
		x := &examined{size: c.size}
		src := &pte.Method{Delegates: make([]pte.Delegate, 1)}
		m := &ir.Method{}
		for i := range states + 1 { // the last value is the result
			storage := ir.Storage{Kind: ir.State, Bytes: 4, Values: []int{i}}
			if i == states {
				storage.Kind = ir.Activation
			}
			m.Values = append(m.Values, ir.Value{Kind: tensor.KindTensor, Tensor: &ir.Tensor{DType: tensor.Float32, Sizes: []int{1}}, Storage: i})
			m.Storages = append(m.Storages, storage)
			src.Values = append(src.Values, pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Float32, Sizes: []int{1}}})
		}
		for range c.calls {
			s := ir.Step{Kind: ir.DelegateCall, Inputs: states, Writes: []int{states}}
			for v := range states {
				s.Reads = append(s.Reads, v)
			}
			m.Steps = append(m.Steps, s)
		}
		l := &load{&Preparation{Source: Source{File: &pte.Program{Methods: []pte.Method{{}}}, Method: src}}, nil}
		l.files.opened = []*openedPayload{{Opened: x}}
		l.checkBaked(m)
		if x.followed != c.want {
			t.Errorf("%d calls of a payload of size %d: followed %d times, want %d", c.calls, c.size, x.followed, c.want)
		}
	}
}
