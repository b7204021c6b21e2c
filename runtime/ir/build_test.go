package ir

import (
	"fmt"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// The operators of the test programs.
const (
	unary = iota
	inPlace
	view
	copying // aten::copy_, of tests that add it
)

func links(t *testing.T) (l Links) {
	t.Helper()
	for _, schema := range []string{
		"test::unary.out(Tensor self, *, Tensor(a!) out)",
		"test::update_(Tensor(a!) self, Tensor src)",
		"test::view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
	} {
		sig, err := kernels.ParseSchema(schema)
		if err != nil {
			t.Fatal(err)
		}
		l.Operators = append(l.Operators, Operator{Op: &kernels.Op{Schema: schema}, Sig: sig})
	}
	return l
}

// planned returns n tensors, value i at offset i*64 of the only arena.
func planned(n int) []pte.Value {
	values := make([]pte.Value, n, n+1)
	for i := range values {
		values[i] = pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Float32, Sizes: []int{4}, DimOrder: []uint8{0},
			Storage: pte.Planned, Offset: int64(i) * 64}}
	}
	return append(values, pte.Value{Kind: tensor.KindIntList}) // value n: the view's size
}

func call(op int, args ...int) pte.Instruction {
	return pte.Instruction{Kind: pte.KernelCall, Index: op, Args: args}
}

func TestLifetimes(t *testing.T) {
	jump := func(cond, to int) pte.Instruction {
		return pte.Instruction{Kind: pte.JumpFalseCall, Index: cond, Target: to}
	}
	move := func(from, to int) pte.Instruction {
		return pte.Instruction{Kind: pte.MoveCall, Index: from, Target: to}
	}
	tests := []struct {
		name   string
		n      int
		place  map[int]int64 // offsets that differ from the values' own
		code   []pte.Instruction
		in     []int
		out    []int
		want   []string // per value: kind[first,last]
		shares [][2]int
	}{
		{
			name: "chain", n: 3, in: []int{0}, out: []int{2},
			code: []pte.Instruction{call(unary, 0, 1, 1), call(unary, 1, 2, 2)},
			want: []string{"input[-1,0]", "activation[0,1]", "activation[1,2]"},
		},
		{
			name: "read before written is state", n: 3, in: []int{0}, out: []int{2},
			code: []pte.Instruction{call(unary, 1, 2, 2), call(inPlace, 1, 0, 1)},
			want: []string{"input[-1,1]", "state[-1,2]", "activation[0,2]"},
		},
		{
			name: "pass-through", n: 2, in: []int{0}, out: []int{0, 1},
			code: []pte.Instruction{call(unary, 0, 1, 1)},
			want: []string{"input[-1,1]", "activation[0,1]"},
		},
		{
			name: "view keeps its base alive", n: 4, in: []int{0}, out: []int{3},
			code:   []pte.Instruction{call(unary, 0, 1, 1), call(view, 1, 4, 2), call(unary, 0, 3, 3), call(unary, 2, 3, 3)},
			want:   []string{"input[-1,2]", "activation[0,3]", "activation[0,3]", "activation[2,4]"},
			shares: [][2]int{{1, 2}},
		},
		{
			name: "elided view", n: 4, in: []int{0}, out: []int{3}, place: map[int]int64{2: 64},
			code:   []pte.Instruction{call(unary, 0, 1, 1), call(unary, 2, 3, 3)},
			want:   []string{"input[-1,0]", "activation[0,1]", "activation[0,1]", "activation[1,2]"},
			shares: [][2]int{{1, 2}},
		},
		{
			// if c: r = f(x) else: r = g(x); then a use of r
			name: "condition", n: 5, in: []int{0, 1}, out: []int{4},
			code: []pte.Instruction{jump(0, 4), call(unary, 1, 2, 2), move(2, 3), jump(0, 6), call(unary, 1, 2, 2), move(2, 3), call(unary, 3, 4, 4)},
			want: []string{"input[-1,3]", "input[-1,4]", "activation[1,5]", "activation[2,6]", "activation[6,7]"},
		},
		{
			// value 1 carries from one iteration of the loop to the next
			name: "loop", n: 4, in: []int{0}, out: []int{3},
			code: []pte.Instruction{call(unary, 0, 1, 1), call(unary, 1, 2, 2), call(unary, 2, 1, 1), jump(0, 1), call(unary, 1, 3, 3)},
			want: []string{"input[-1,3]", "activation[0,4]", "activation[1,2]", "activation[4,5]"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := &pte.Method{Values: planned(tt.n), Inputs: tt.in, Outputs: tt.out, Chains: []pte.Chain{{Instructions: tt.code}}}
			for v, offset := range tt.place {
				m.Values[v].Tensor.Offset = offset
			}
			f, err := Build(m, links(t))
			if err != nil {
				t.Fatal(err)
			}
			for v, want := range tt.want {
				s := f.Storages[f.Values[v].Storage]
				if got := fmt.Sprintf("%v[%d,%d]", s.Kind, s.First, s.Last); got != want {
					t.Errorf("value %d: got %s, want %s", v, got, want)
				}
			}
			for a := range tt.n {
				for b := range a {
					if got := f.Values[a].Storage == f.Values[b].Storage; got != joined(tt.shares, a, b) {
						t.Errorf("values %d and %d share bytes: %v", b, a, got)
					}
				}
			}
		})
	}
}

func joined(shares [][2]int, a, b int) bool {
	for _, s := range shares {
		if s == [2]int{a, b} || s == [2]int{b, a} {
			return true
		}
	}
	return false
}

func TestBuildRefusesWrongArity(t *testing.T) {
	m := &pte.Method{Values: planned(2), Chains: []pte.Chain{{Instructions: []pte.Instruction{call(unary, 0)}}}}
	_, err := Build(m, links(t))
	if err == nil {
		t.Fatal("a call without its out argument was accepted")
	}
}
