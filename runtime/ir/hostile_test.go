package ir

import (
	"errors"
	"testing"
	"time"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// maxTime is ample for the analysis of a hostile method on a busy machine; without its bounds each
// of these would take minutes.
const maxTime = 30 * time.Second

func buildTimed(t *testing.T, m *pte.Method) (*Method, error) {
	t.Helper()
	begun := time.Now()
	f, err := Build(m, links(t))
	if took := time.Since(begun); took > maxTime {
		t.Errorf("%v", took)
	}
	return f, err
}

// TestLadderOfJumps has nested backward jumps, each of which extends liveness in a sweep of its
// own.
func TestLadderOfJumps(t *testing.T) {
	const rungs = 60_000
	m := &pte.Method{Values: planned(300), Inputs: []int{0}}
	code := []pte.Instruction{call(unary, 0, 1, 1)}
	for i := range rungs {
		code = append(code, pte.Instruction{Kind: pte.JumpFalseCall, Index: 2, Target: i})
	}
	m.Chains = []pte.Chain{{Instructions: code}}
	f, err := buildTimed(t, m)
	if err != nil {
		t.Fatal(err)
	}
	for v := range 3 {
		if s := f.Storages[f.Values[v].Storage]; s.First > 0 || s.Last != len(code) {
			t.Errorf("value %d: alive in [%d,%d] only, of %d steps", v, s.First, s.Last, len(code))
		}
	}
	e := f.Edit() // without its jumps nothing hides that values are read before they are written
	for i := range rungs {
		e.Drop(1 + i)
	}
	if m, err := e.Apply(); !f.Coarse || err != nil || !m.Coarse {
		t.Errorf("coarse: %v; edited: %v", f.Coarse, err)
	}
}

// TestListsNamedOften checks that a list used by many instructions is not expanded for each.
func TestListsNamedOften(t *testing.T) {
	const n = 50_000
	m := &pte.Method{Values: planned(2)}
	list := pte.Value{Kind: tensor.KindTensorList, Items: make([]int, n)}
	m.Values = append(m.Values, list)
	code := make([]pte.Instruction, n)
	for i := range code {
		code[i] = call(unary, len(m.Values)-1, 1, 1)
	}
	m.Chains = []pte.Chain{{Instructions: code}}
	if _, err := buildTimed(t, m); !errors.Is(err, pte.ErrLimit) {
		t.Errorf("got %v, want a limit", err)
	}
}

// TestManyWritersAtOnePlace checks that values at one place with other sizes are not taken as
// operands of a dropped view.
func TestManyWritersAtOnePlace(t *testing.T) {
	const n = 100_000
	m := &pte.Method{Values: planned(2*n + 1), Inputs: []int{2 * n}}
	var code []pte.Instruction
	for v := range n {
		m.Values[v].Tensor.Offset, m.Values[n+v].Tensor.Offset = 0, 0
		m.Values[v].Tensor.Sizes = []int{5}
		code = append(code, call(unary, 2*n, v, v))
	}
	for v := range n {
		code = append(code, call(unary, n+v, 0, 0))
	}
	m.Chains = []pte.Chain{{Instructions: code}}
	f, err := buildTimed(t, m)
	if err != nil {
		t.Fatal(err)
	}
	if f.Values[n].Storage == f.Values[0].Storage {
		t.Error("a value was joined with one of another size")
	}
}
