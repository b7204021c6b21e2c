package kerneltest

import (
	"slices"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/cortexm"
	"github.com/etrun-go/etrun/kernels/llm"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/portable"
	"github.com/etrun-go/etrun/kernels/quantized"
)

// factsOf returns the report on the facts in an operator's row, in a set of its own.
func factsOf(t *testing.T, op kernels.Op) error {
	t.Helper()
	set := kernels.NewSet([]kernels.Op{op})
	row, sig, _, err := set.Lookup(op.Name())
	if err != nil {
		t.Fatal(err)
	}
	return checkFacts(set, row, sig, nil)
}

// TestForgottenFactsAreFound removes each fact from the row of each operator in turn, and adds one: the suite must report
// that.
func TestForgottenFactsAreFound(t *testing.T) {
	facts := 0
	for _, op := range slices.Concat(portable.Ops(), quantized.Ops(), cortexm.Ops(), llm.Ops()) {
		_, sig, _, err := kernels.NewSet([]kernels.Op{op}).Lookup(op.Name())
		if err != nil {
			t.Fatal(err)
		}
		if op.Class != opclass.None {
			facts++
			other := op
			if other.Class = opclass.None; factsOf(t, other) == nil {
				t.Errorf("%s without class %v passes", op.Name(), op.Class)
			}
		}
		if (op.Moves || op.Class != opclass.None) && len(inputTypes(sig)) > 0 {
			facts++
			other := op
			if other.Moves = !op.Moves; factsOf(t, other) == nil {
				t.Errorf("%s with Moves %v passes", op.Name(), other.Moves)
			}
		}
	}
	if facts < 100 {
		t.Errorf("%d facts", facts)
	}
}

// TestEveryClassIsDefined requires a call that defines each class, and an operator that has it.
func TestEveryClassIsDefined(t *testing.T) {
	used := make(map[opclass.Class]bool)
	for _, op := range slices.Concat(portable.Ops(), quantized.Ops()) {
		used[op.Class] = true
	}
	for c := range opclass.Count {
		if c != opclass.None && (len(definitions()[c]) == 0 || !used[c]) {
			t.Errorf("class %v: %d calls define it, an operator has it: %v", c, len(definitions()[c]), used[c])
		}
	}
}
