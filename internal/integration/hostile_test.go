package integration

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/exec/exectest"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Invalid uses of values are rejected at load.
func TestInstructionsRefused(t *testing.T) {
	tests := []struct {
		name string
		code []pte.Instruction
		want string // part of the message, empty if the program is valid
	}{
		{"add", []pte.Instruction{exectest.Call(exectest.OpAdd, exectest.VecA, exectest.Constant, exectest.VecB, exectest.VecB)}, ""},
		{"number", []pte.Instruction{exectest.Call(exectest.OpNumber, exectest.VecA, exectest.Number)}, ""},
		{"number to None", []pte.Instruction{exectest.Call(exectest.OpNumber, exectest.VecA, exectest.None)}, ""},
		{"numbers move", []pte.Instruction{exectest.Move(exectest.Number, exectest.None)}, ""},
		{"split", []pte.Instruction{exectest.Call(exectest.OpSplit, exectest.VecA, exectest.Lists, exectest.Lists)}, ""},
		{"a number in a tensor's slot", []pte.Instruction{exectest.Call(exectest.OpNumber, exectest.VecA, exectest.VecB)}, "result value 1 of kind tensor"},
		{"a view in a number's slot", []pte.Instruction{exectest.Call(exectest.OpView, exectest.VecA, exectest.Number)}, "result value 4 of kind int, want Tensor"},
		{"a number moved to a tensor", []pte.Instruction{exectest.Move(exectest.Number, exectest.VecB)}, "a move from int to tensor"},
		{"a constant moved to a slot, to be written there", []pte.Instruction{exectest.Move(exectest.Constant, exectest.None), exectest.Call(exectest.OpUpdate, exectest.None, exectest.VecA, exectest.None)}, "a move from tensor to none"},
		{"a list of constants moved to a slot", []pte.Instruction{exectest.Move(exectest.Constants, exectest.Lists), exectest.Call(exectest.OpSplit, exectest.VecA, exectest.Lists, exectest.Lists)}, "a move from tensor list to tensor list"},
		{"a constant moved onto", []pte.Instruction{exectest.Move(exectest.VecA, exectest.Constant)}, "it would write a constant"},
		{"a constant updated", []pte.Instruction{exectest.Call(exectest.OpUpdate, exectest.Constant, exectest.VecA, exectest.Constant)}, "it would write a constant"},
		{"constants in a list written", []pte.Instruction{exectest.Call(exectest.OpSplit, exectest.VecA, exectest.Constants, exectest.Constants)}, "it would write a constant"},
		{"a view of a constant updated", []pte.Instruction{exectest.Call(exectest.OpView, exectest.Constant, exectest.VecB), exectest.Call(exectest.OpUpdate, exectest.VecB, exectest.VecA, exectest.VecB)}, "it would write a constant"},
		{"out is an argument", []pte.Instruction{exectest.Call(exectest.OpAdd, exectest.VecB, exectest.VecA, exectest.VecB, exectest.VecB)}, "out value 1 shares its bytes with argument value 1"},
		{"out is a view of an argument", []pte.Instruction{exectest.Call(exectest.OpView, exectest.VecA, exectest.VecB), exectest.Call(exectest.OpAdd, exectest.VecA, exectest.Constant, exectest.VecB, exectest.VecB)}, "out value 1 shares its bytes with argument value 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := loadMethod(t, exectest.Small(tt.code...))
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (!errors.Is(err, etrun.ErrFormat) || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// Views of constants and of unbounded tensors share their initial bytes; the growth of unbounded
// tensors is limited for all of them together.
func TestUnboundedTensorsAreBoundedTogether(t *testing.T) {
	const n, each = 200, 1 << 20
	grow := kernels.Op{Schema: "test::grow.out(Tensor self, *, Tensor(a!) out)", Func: func(_ *kernels.Ctx, a kernels.Args) error {
		return a.Tensor(1).Resize([]int{each / 8})
	}}
	for name, made := range map[string]func(v int) []pte.Instruction{
		"grown": func(v int) []pte.Instruction { return []pte.Instruction{exectest.Call(0, exectest.VecA, v, v)} },
		"grown and freed": func(v int) []pte.Instruction {
			return []pte.Instruction{exectest.Call(0, exectest.VecA, v, v), {Kind: pte.FreeCall, Index: v}}
		},
	} {
		var code []pte.Instruction
		spec := exectest.Small()
		for range n {
			spec.Values = append(spec.Values, pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Int64, Sizes: []int{1},
				DimOrder: []uint8{0}, Dynamism: tensor.DynamicUnbound}})
			code = append(code, made(len(spec.Values)-1)...)
		}
		spec.Operators, spec.Chains = []pte.Operator{{Name: "test::grow", Overload: "out"}}, []pte.Chain{{Instructions: code}}
		for limit, fits := range map[int64]bool{n * each / 4: false, 2 * n * each: true} {
			m, err := loadMethod(t, spec, etrun.WithOperatorSet(kernels.NewSet([]kernels.Op{grow})), etrun.WithLimits(etrun.Limits{PlannedBytes: limit}))
			if err != nil {
				t.Fatal(err)
			}
			for range 3 { // the budget applies to each run
				if err := errors.Join(m.SetInput(0, tensor.New(tensor.Int64, exectest.Len)), m.Execute(context.Background())); (err == nil) != fits {
					t.Errorf("%s, limit %d: %v", name, limit, err)
				}
			}
		}
	}
}

func TestViewsOfConstantsShareTheirStart(t *testing.T) {
	spec := exectest.Small()
	code := []pte.Instruction{}
	for range 100 {
		spec.Values = append(spec.Values, pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Int64, Sizes: []int{1 << 17}, DimOrder: []uint8{0}}})
		code = append(code, exectest.Call(exectest.OpView, exectest.Constant, len(spec.Values)-1))
	}
	spec.Chains = []pte.Chain{{Instructions: code}}
	m, err := loadMethod(t, spec, etrun.WithLimits(etrun.Limits{PlannedBytes: 2 << 20}))
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Report().Plan.HeapBytes; got != 1<<20 {
		t.Errorf("%d bytes counted, want %d", got, 1<<20)
	}
}

// A long list of outs is compared with itself in one pass.
func TestLongListOfOuts(t *testing.T) {
	spec := exectest.Small(exectest.Call(exectest.OpSplit, exectest.VecA, exectest.Lists, exectest.Lists))
	spec.Values[exectest.VecB].Tensor.Sizes = []int{0}
	spec.Values[exectest.Lists].Items = make([]int, 400_000)
	for i := range spec.Values[exectest.Lists].Items {
		spec.Values[exectest.Lists].Items[i] = exectest.VecB
	}
	begun := time.Now()
	if _, err := loadMethod(t, spec); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("%v", took)
	}
}
