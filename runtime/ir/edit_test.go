package ir

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// build builds a method of n tensors; value 0 is its input.
func build(t *testing.T, n int, outputs []int, code ...pte.Instruction) *Method {
	t.Helper()
	m, err := Build(&pte.Method{Values: planned(n), Inputs: []int{0}, Outputs: outputs, Chains: []pte.Chain{{Instructions: code}}}, links(t))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// text lists the steps, with their jump targets, and the lifetimes of storages.
func text(m *Method) (steps, lives string) {
	for i := range m.Steps {
		s := &m.Steps[i]
		steps += fmt.Sprintf("%d", s.Args)
		if s.Kind == JumpFalseCall {
			steps += fmt.Sprintf("→%d", s.Target)
		}
		steps += " "
	}
	for i := range m.Storages {
		lives += fmt.Sprintf("%v[%d,%d] ", m.Storages[i].Kind, m.Storages[i].First, m.Storages[i].Last)
	}
	return strings.TrimSpace(steps), strings.TrimSpace(lives)
}

func vector() Tensor { return Tensor{DType: tensor.Float32, Sizes: []int{4}, DimOrder: []uint8{0}} }

func TestEdits(t *testing.T) {
	unaryStep := func(m *Method, args ...int) Step {
		return Step{Kind: KernelCall, Op: m.Steps[0].Op, Sig: m.Steps[0].Sig, Args: args}
	}
	jump := pte.Instruction{Kind: pte.JumpFalseCall, Index: 0, Target: 2}
	chain := []pte.Instruction{call(unary, 0, 1, 1), call(unary, 1, 2, 2), call(unary, 2, 3, 3)}
	loop := []pte.Instruction{call(unary, 0, 1, 1), call(unary, 1, 2, 2), call(unary, 2, 1, 1), jump, call(unary, 1, 3, 3)}
	tests := []struct {
		name         string
		code         []pte.Instruction
		edit         func(m *Method, e *Edit)
		steps, lives string // or, without steps, part of the error
	}{
		{"nothing", chain, func(*Method, *Edit) {}, "[0 1 1] [1 2 2] [2 3 3]", "input[-1,0] activation[0,1] activation[1,2] activation[2,3]"},
		{"a shorter way", chain, func(_ *Method, e *Edit) { e.SetArg(2, 0, 1); e.Drop(1) }, "[0 1 1] [1 3 3]",
			"input[-1,0] activation[0,1] activation[∞,-1] activation[1,2]"},
		{"a copy less", chain, func(_ *Method, e *Edit) { e.Drop(1); e.Join(1, 2) }, "[0 1 1] [2 3 3]",
			"input[-1,0] activation[0,1] activation[∞,-1] activation[1,2]"},
		{"what is joined is written", chain, func(_ *Method, e *Edit) { e.Join(1, 2) }, "", "out value 2 shares its bytes with argument value 1"},
		{"a constant", chain, func(_ *Method, e *Edit) { e.Drop(1); e.MakeConstant(2, make([]byte, 16)) }, "[0 1 1] [2 3 3]",
			"input[-1,0] activation[0,0] folded[-1,1] activation[1,2]"},
		{"a detour", chain, func(m *Method, e *Edit) {
			v := e.AddTensor(vector())
			e.Insert(2, unaryStep(m, 2, v, v))
			e.SetArg(2, 0, v)
		}, "[0 1 1] [1 2 2] [2 5 5] [5 3 3]", "input[-1,0] activation[0,1] activation[1,2] activation[3,4] activation[2,3]"},
		{"steps at both ends", chain, func(m *Method, e *Edit) {
			v := e.AddTensor(vector())
			e.Insert(0, unaryStep(m, 0, v, v))
			e.Insert(3, unaryStep(m, v, 2, 2))
		}, "[0 5 5] [0 1 1] [1 2 2] [2 3 3] [5 2 2]", "input[-1,1] activation[1,2] activation[2,4] activation[3,5] activation[0,4]"},
		{"a region for a delegate", chain, func(_ *Method, e *Edit) {
			e.Drop(0)
			e.Drop(1)
			e.Insert(0, Step{Kind: DelegateCall, Delegate: e.AddDelegate("test"), Inputs: 1, Args: []int{0, 2}})
		}, "[0 2] [2 3 3]", "input[-1,0] activation[∞,-1] activation[0,1] activation[1,2]"},
		{"steps in another order, one of them twice", loop, func(m *Method, e *Edit) {
			label := e.Label()
			for i := range m.Steps {
				e.Drop(i)
			}
			e.SetArg(1, 0, 0)
			e.Repeat(0, 1)
			e.Repeat(0, 0)
			e.Insert(0, Step{Kind: JumpFalseCall, Args: []int{0}, Target: label})
			e.Repeat(0, 1)
			e.Place(0, label)
			e.Repeat(0, 4)
		}, "[0 2 2] [0 1 1] [0]→4 [0 2 2] [1 3 3]", "input[-1,3] activation[1,4] activation[0,3] activation[4,5]"},
		{"a jump to a dropped step", loop, func(_ *Method, e *Edit) { e.SetArg(4, 0, 2); e.Drop(2) }, "[0 1 1] [1 2 2] [0]→2 [2 3 3]",
			"input[-1,2] activation[0,1] activation[1,3] activation[3,4]"},
		{"a jump to an inserted step", loop, func(m *Method, e *Edit) {
			v := e.AddTensor(vector())
			e.Insert(2, unaryStep(m, 2, v, v))
			e.SetArg(2, 0, v)
		}, "[0 1 1] [1 2 2] [2 5 5] [5 1 1] [0]→2 [1 3 3]", "input[-1,4] activation[0,5] activation[1,4] activation[5,6] activation[2,3]"},
		{"a definition is lost", chain, func(_ *Method, e *Edit) { e.Drop(1) }, "", "value 2 is read before it is written"},
		{"a definition is skipped", loop, func(_ *Method, e *Edit) { e.Drop(1) }, "", "value 2 is read before it is written"},
		{"a new value without one", chain, func(_ *Method, e *Edit) { e.SetArg(2, 0, e.AddTensor(vector())) }, "", "value 5 is read before it is written"},
		{"an out that is read", chain, func(m *Method, e *Edit) { e.Insert(3, unaryStep(m, 1, 1, 1)) }, "", "out value 1 shares its bytes with argument value 1"},
		{"a constant that is written", chain, func(_ *Method, e *Edit) { e.MakeConstant(2, make([]byte, 16)) }, "", "it would write a constant"},
		{"a call without its result", chain, func(m *Method, e *Edit) { e.Insert(1, unaryStep(m, 0, 1)) }, "", "got 2 argument slots"},
		{"a view of other bytes", append([]pte.Instruction{call(view, 0, 4, 1)}, chain[1:]...), func(_ *Method, e *Edit) { e.SetArg(0, 0, 3) }, "",
			"value 1 would be a view of value 3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := build(t, 4, []int{3}, tt.code...)
			stepsBefore, livesBefore := text(m)
			e := m.Edit()
			tt.edit(m, e)
			got, err := e.Apply()
			if steps, lives := text(m); steps != stepsBefore || lives != livesBefore {
				t.Errorf("the method that was edited changed: %s, %s", steps, lives)
			}
			if tt.steps == "" {
				if err == nil || !strings.Contains(err.Error(), tt.lives) {
					t.Errorf("got %v, want …%s…", err, tt.lives)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if steps, lives := text(got); steps != tt.steps || lives != withNever(tt.lives) {
				t.Errorf("got %s\n%s\nwant %s\n%s", steps, lives, tt.steps, withNever(tt.lives))
			}
		})
	}
}

// TestJoin checks that joined storages have the values and the output of both, also after another
// join, and that unused storages have no bytes until they are used again.
func TestJoin(t *testing.T) {
	m := build(t, 6, []int{3}, call(unary, 0, 1, 1), call(unary, 1, 2, 2), call(unary, 1, 3, 3), call(unary, 0, 4, 4), call(unary, 4, 5, 5))
	e := m.Edit()
	for _, i := range []int{1, 2, 3, 4} {
		e.Drop(i)
	}
	e.Join(1, 2)
	e.Join(1, 3)
	edited, err := e.Apply()
	if err != nil {
		t.Fatal(err)
	}
	if s := edited.Storages[1]; !slices.Equal(s.Values, []int{1, 2, 3}) || !s.Output || s.First != 0 || s.Last != 1 {
		t.Errorf("joined: %+v", s)
	}
	for v, want := range []int{0, 1, 1, 1, 4, 5} {
		if got := edited.Values[v].Storage; got != want {
			t.Errorf("value %d has storage %d, want %d", v, got, want)
		}
	}
	if got := []int64{edited.Storages[2].Bytes, edited.Storages[4].Bytes, m.Storages[2].Bytes}; !slices.Equal(got, []int64{0, 0, 16}) {
		t.Errorf("bytes %d, want none for what is not touched, in the new method", got)
	}
	if len(m.Storages[1].Values) != 1 || m.Values[2].Storage != 2 {
		t.Error("the method that was edited changed")
	}
	e = edited.Edit()
	e.Insert(1, Step{Kind: KernelCall, Op: m.Steps[0].Op, Sig: m.Steps[0].Sig, Args: []int{1, 4, 4}})
	if again, err := e.Apply(); err != nil || again.Storages[4].Bytes != 16 {
		t.Errorf("touched again: %v, %d bytes", err, again.Storages[4].Bytes)
	}
}

func TestWriters(t *testing.T) {
	m := build(t, 4, []int{3}, call(unary, 0, 1, 1), call(view, 1, 4, 2), call(inPlace, 2, 0, 2), call(unary, 1, 3, 3))
	want := map[int][]int{0: nil, 1: {0, 2}, 2: {0, 2}, 3: {3}}
	all := m.Writers()
	for v, w := range want {
		if got := all[m.Values[v].Storage]; !slices.Equal(got, w) {
			t.Errorf("value %d: got %d, want %d", v, got, w)
		}
	}
}

// TestViewOfTwo checks that a view of two tensors, which would merge their storages, is refused.
func TestViewOfTwo(t *testing.T) {
	src := &pte.Method{Values: planned(4), Inputs: []int{0, 3}, Chains: []pte.Chain{{Instructions: []pte.Instruction{
		{Kind: pte.JumpFalseCall, Index: 0, Target: 2}, call(view, 0, 4, 2), call(view, 3, 4, 2), call(unary, 2, 1, 1)}}}}
	if _, err := Build(src, links(t)); err == nil || !strings.Contains(err.Error(), "value 2, a view of value 3, is a view of another tensor too") {
		t.Errorf("got %v, want a refusal", err)
	}
}

// withNever replaces ∞ by the largest int, the step of an unused storage.
func withNever(lives string) string {
	return strings.ReplaceAll(lives, "∞", strconv.Itoa(math.MaxInt))
}
