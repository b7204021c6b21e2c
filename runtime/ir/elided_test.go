package ir

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

func TestSameMemory(t *testing.T) {
	first, last := []uint8{0, 1, 2, 3}, []uint8{0, 2, 3, 1}
	for _, tt := range []struct {
		a, b   []int
		oa, ob []uint8
		same   bool
	}{
		{[]int{2, 3, 4, 5}, []int{2, 3, 4, 5}, last, last, true},
		{[]int{2, 3, 4, 5}, []int{2, 3, 4, 5}, last, first, false},
		{[]int{2, 3, 4, 5}, []int{6, 20}, first, nil, true},
		{[]int{2, 3, 4, 5}, []int{2, 3, 20}, last, nil, false},
		{[]int{2, 3, 4, 5}, []int{2, 3, 20}, last, []uint8{0, 2, 1}, true},
		{[]int{2, 3, 4, 5}, []int{1, 2, 3, 4, 5}, last, []uint8{0, 1, 3, 4, 2}, true},
		{[]int{2, 1, 4, 5}, []int{2, 20}, last, nil, true},
		{[]int{2, 3, 1, 1}, []int{6}, last, nil, true},
		{[]int{1, 3, 4, 1}, []int{3, 4}, last, nil, false},
		{nil, []int{1, 1}, nil, nil, true},
	} {
		a, b := &Tensor{Sizes: tt.a, DimOrder: tt.oa}, &Tensor{Sizes: tt.b, DimOrder: tt.ob}
		if got := sameMemory(a, b); got != tt.same || sameMemory(b, a) != got {
			t.Errorf("%v in order %v and %v in order %v: got %v", tt.a, tt.oa, tt.b, tt.ob, got)
		}
	}
}

// channelsLast returns a method of four values: an input, a channels-last value at the place of
// value 2, which is read but not written, and an output.
func channelsLast(code ...pte.Instruction) *pte.Method {
	m := &pte.Method{Values: planned(4), Inputs: []int{0}, Outputs: []int{3}, Chains: []pte.Chain{{Instructions: code}}}
	for v := range 4 {
		m.Values[v].Tensor.Sizes, m.Values[v].Tensor.DimOrder = []int{1, 2, 2, 2}, []uint8{0, 1, 2, 3}
	}
	m.Values[1].Tensor.DimOrder = []uint8{0, 2, 3, 1}
	m.Values[2].Tensor.Sizes, m.Values[2].Tensor.DimOrder = []int{2, 4}, []uint8{0, 1}
	m.Values[2].Tensor.Offset = m.Values[1].Tensor.Offset
	return m
}

// relays returns links with the operator that lays out views.
func relays(t *testing.T) Links {
	t.Helper()
	l := links(t)
	sig, err := kernels.ParseSchema("aten::view_copy.out(Tensor self, SymInt[] size, *, Tensor(a!) out)")
	if err != nil {
		t.Fatal(err)
	}
	l.View = &Operator{Op: &kernels.Op{Schema: "aten::view_copy.out"}, Sig: sig}
	return l
}

func TestElidedViewIsCopied(t *testing.T) {
	jump := func(cond, to int) pte.Instruction {
		return pte.Instruction{Kind: pte.JumpFalseCall, Index: cond, Target: to}
	}
	for _, tt := range []struct {
		name         string
		code         []pte.Instruction
		input        bool // the channels-last value is the input
		steps, lives string
	}{
		{"behind what writes it", []pte.Instruction{call(unary, 0, 1, 1), call(unary, 2, 3, 3)}, false,
			"[0 1 1] [1 7 2 2] [2 3 3]", "input[-1,0] activation[0,1] activation[1,2] activation[2,3]"},
		{"behind each of two", []pte.Instruction{jump(0, 3), call(unary, 0, 1, 1), jump(0, 4), call(unary, 0, 1, 1), call(unary, 2, 3, 3)}, false,
			"[0]→4 [0 1 1] [1 7 2 2] [0]→6 [0 1 1] [1 7 2 2] [2 3 3]", "input[-1,4] activation[1,5] activation[2,6] activation[6,7]"},
		{"of an input", []pte.Instruction{call(unary, 2, 3, 3)}, true,
			"[1 7 2 2] [2 3 3]", "activation[∞,-1] input[-1,0] activation[0,1] activation[1,2]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			src := channelsLast(tt.code...)
			if tt.input {
				src.Inputs = []int{1}
			}
			m, err := Build(src, relays(t))
			if err != nil {
				t.Fatal(err)
			}
			if steps, lives := text(m); steps != tt.steps || lives != withNever(tt.lives) {
				t.Errorf("got %s\n%s\nwant %s\n%s", steps, lives, tt.steps, withNever(tt.lives))
			}
			if fmt.Sprint(m.Relaid) != "["+(Relaid{2, 1}).String()+"]" || m.Storages[m.Values[2].Storage].Planned {
				t.Errorf("relaid %v, storage %+v", m.Relaid, m.Storages[m.Values[2].Storage])
			}
			if sizes := m.Values[7]; sizes.Kind != tensor.KindIntList || m.Values[sizes.Items()[0]].Int != 2 || m.Values[sizes.Items()[1]].Int != 4 {
				t.Errorf("sizes of the copy: %+v", sizes)
			}
		})
	}
}

// TestElidedViewIsRefused checks that views that a copy cannot repair reliably are refused, with
// the reason, unless the file is taken as written.
func TestElidedViewIsRefused(t *testing.T) {
	code := []pte.Instruction{call(unary, 0, 1, 1), call(unary, 2, 3, 3)}
	for name, change := range map[string]func(m *pte.Method, l *Links){
		"no operator aten::view_copy.out": func(_ *pte.Method, l *Links) { l.View = nil },
		"it has other elements":           func(m *pte.Method, _ *Links) { m.Values[2].Tensor.DType = tensor.Int32 },
		"its sizes vary":                  func(m *pte.Method, _ *Links) { m.Values[1].Tensor.Dynamism = tensor.DynamicBound },
		"value 1 is changed in part": func(m *pte.Method, _ *Links) {
			m.Chains[0].Instructions = []pte.Instruction{code[0], call(inPlace, 1, 0, 1), code[1]}
		},
	} {
		m, l := channelsLast(code...), relays(t)
		change(m, &l)
		_, err := Build(m, l)
		if !errors.Is(err, pte.ErrUnsupported) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "value 2 of sizes [2 4] shares the memory of value 1") {
			t.Errorf("%s: got %v", name, err)
		}
		l.AsWritten = true
		got, err := Build(m, l)
		if err != nil || got.Values[1].Storage != got.Values[2].Storage || len(got.Relaid) > 0 {
			t.Errorf("%s, as it is written: %v", name, err)
		}
	}
}

// TestElidedViewsAreBounded checks that hostile files cannot request millions of copies.
func TestElidedViewsAreBounded(t *testing.T) {
	const n = 2000
	m := channelsLast()
	for range n {
		m.Chains[0].Instructions = append(m.Chains[0].Instructions, call(unary, 0, 1, 1))
	}
	for range n {
		view := *m.Values[2].Tensor
		m.Values = append(m.Values, pte.Value{Kind: tensor.KindTensor, Tensor: &view})
		m.Chains[0].Instructions = append(m.Chains[0].Instructions, call(unary, len(m.Values)-1, 3, 3))
	}
	if _, err := buildTimed(t, m); !errors.Is(err, pte.ErrUnsupported) {
		t.Errorf("without the operator: got %v", err)
	}
	if _, err := Build(m, relays(t)); !errors.Is(err, pte.ErrLimit) {
		t.Errorf("got %v, want a limit", err)
	}
}
