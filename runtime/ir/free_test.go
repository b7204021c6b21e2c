package ir

import (
	"errors"
	"testing"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// TestFrees has FreeCalls of value 1, which has bounds, and of value 2, which has none.
func TestFrees(t *testing.T) {
	free := func(v int) pte.Instruction { return pte.Instruction{Kind: pte.FreeCall, Index: v} }
	jump := pte.Instruction{Kind: pte.JumpFalseCall, Index: 0, Target: 3}
	one, two := call(unary, 0, 1, 1), call(unary, 0, 2, 2)
	for _, tt := range []struct {
		name string
		code []pte.Instruction
		flow string // as in TestFlow; "" for a refused method
	}{
		{"at the end", []pte.Instruction{two, call(unary, 2, 3, 3), free(2)}, "-1:0[{0 0}]* 0:2[{1 2}]>3 1:3[]* 2:2[]*"},
		{"bounds", []pte.Instruction{one, free(1), call(unary, 1, 3, 3)}, "-1:0[{0 0}]* 0:1[{2 1}] 2:3[]*"},
		{"views", []pte.Instruction{two, call(view, 2, 4, 1), free(2), call(unary, 1, 3, 3)}, "-1:0[{0 0}]* 0:1[{1 2} {3 1}]* 3:3[]*"},
		{"written again", []pte.Instruction{two, free(2), two, call(unary, 2, 3, 3)}, "-1:0[{0 0} {2 0}]* 0:2[]>2 1:2[]>3 2:2[{3 2}]* 3:3[]*"},
		{"read", []pte.Instruction{two, free(2), call(unary, 2, 3, 3)}, ""},
		{"an output", []pte.Instruction{call(unary, 0, 3, 3), free(3)}, ""},
		{"in one branch", []pte.Instruction{two, jump, free(2), call(unary, 0, 3, 3)}, "-1:0[{0 0} {1 0}]* 0:2[]* 2:2[]* -1:0[{3 0}]* 3:3[]*"},
	} {
		m := &pte.Method{Values: planned(4), Inputs: []int{0}, Outputs: []int{3}, Chains: []pte.Chain{{Instructions: tt.code}}}
		for _, v := range []int{2, 3} {
			m.Values[v].Tensor.Dynamism, m.Values[v].Tensor.Storage = tensor.DynamicUnbound, pte.Unplanned
		}
		got, err := Build(m, links(t))
		switch {
		case tt.flow == "":
			if !errors.Is(err, pte.ErrFormat) || !errors.Is(err, errFreed) {
				t.Errorf("%s: got %v, want %v", tt.name, err, errFreed)
			}
		case err != nil:
			t.Errorf("%s: %v", tt.name, err)
		default:
			if text := flowText(got); text != tt.flow {
				t.Errorf("%s: got\n%s\nwant\n%s", tt.name, text, tt.flow)
			}
		}
	}
}
