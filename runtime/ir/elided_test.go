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
			if fmt.Sprint(m.Relaid) != "["+(Relaid{Value: 2, From: 1}).String()+"]" || m.Storages[m.Values[2].Storage].Planned {
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

// TestElidedViewOfState checks which values are views of what the previous call wrote to their place.
func TestElidedViewOfState(t *testing.T) {
	jump := func(cond, to int) pte.Instruction {
		return pte.Instruction{Kind: pte.JumpFalseCall, Index: cond, Target: to}
	}
	for _, tt := range []struct {
		name string
		code []pte.Instruction // values 0: input, 1: state, 2 and 3: at its place, 4: output, 5: another activation
		set  func(m *pte.Method)
		want string // the storages of values 1 to 3
	}{
		{"a state that is written at the end", []pte.Instruction{call(unary, 2, 4, 4), call(inPlace, 1, 0, 1)}, nil, "state [1 2], activation [3]"},
		{"several views", []pte.Instruction{call(unary, 2, 4, 4), call(unary, 3, 5, 5), call(inPlace, 1, 0, 1)}, nil, "state [1 2 3]"},
		{"a view of a view that is read later", []pte.Instruction{call(inPlace, 2, 0, 2), call(unary, 3, 4, 4)}, nil, "activation [1], state [2 3]"},
		{"changed through a view", []pte.Instruction{call(unary, 1, 4, 4), call(inPlace, 2, 0, 2)}, nil, "state [1 2], activation [3]"},
		{"written completely through a view", []pte.Instruction{call(unary, 1, 4, 4), call(unary, 0, 2, 2)}, nil, "state [1 2], activation [3]"},
		{"changed by several", []pte.Instruction{call(inPlace, 1, 0, 1), call(inPlace, 2, 0, 2), call(unary, 3, 4, 4)}, nil, "state [1 2 3]"},
		{"in one branch", []pte.Instruction{jump(0, 2), call(unary, 2, 4, 4), call(inPlace, 1, 0, 1)}, nil, "state [1 2], activation [3]"},
		{"a loop's own value", []pte.Instruction{call(unary, 2, 5, 5), call(unary, 5, 3, 3), jump(0, 0), call(unary, 5, 4, 4)}, nil,
			"activation [1], state [2], activation [3]"},
		{"initial contents of a state that is not used", []pte.Instruction{call(unary, 2, 4, 4)}, func(m *pte.Method) {
			m.Values[1].Tensor.Storage, m.Values[1].Tensor.Data = pte.PlannedInit, make([]byte, 16)
		}, "state [1 2], activation [3]"},
		{"the name of a state that is not used", []pte.Instruction{call(unary, 2, 4, 4)}, func(m *pte.Method) { m.Values[1].Tensor.Name = "s" },
			"state [1 2], activation [3]"},
		{"views with initial contents", []pte.Instruction{call(unary, 2, 4, 4), call(inPlace, 1, 0, 1)}, func(m *pte.Method) {
			for _, v := range []int{1, 2} {
				m.Values[v].Tensor.Storage, m.Values[v].Tensor.Data = pte.PlannedInit, make([]byte, 16)
			}
		}, "state [1 2], activation [3]"},
		{"a view of an activation that is changed in place", []pte.Instruction{call(unary, 0, 1, 1), call(inPlace, 2, 0, 2), call(unary, 3, 4, 4)},
			nil, "activation [1 2 3]"},
		{"an output", []pte.Instruction{call(inPlace, 1, 0, 1), call(unary, 0, 4, 4)}, func(m *pte.Method) { m.Outputs = append(m.Outputs, 2) },
			"state [1 2], activation [3]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &pte.Method{Values: planned(6), Inputs: []int{0}, Outputs: []int{4}, Chains: []pte.Chain{{Instructions: tt.code}}}
			for v := 2; v <= 3; v++ {
				m.Values[v].Tensor.Offset = m.Values[1].Tensor.Offset
			}
			m.Values[2].Tensor.Sizes, m.Values[2].Tensor.DimOrder = []int{2, 2}, []uint8{0, 1}
			if tt.set != nil {
				tt.set(m)
			}
			f, err := Build(m, links(t))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range f.Storages {
				if s.Values[0] >= 1 && s.Values[0] <= 3 {
					got = append(got, fmt.Sprintf("%v %v", s.Kind, s.Values))
				}
			}
			if got := strings.Join(got, ", "); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// TestElidedViewOfStateIsCopied checks that a view of a state in another order is laid out at the start of each call.
func TestElidedViewOfStateIsCopied(t *testing.T) {
	src := channelsLast(call(unary, 2, 3, 3), call(copying, 1, 0, 1))
	l := relays(t)
	sig, err := kernels.ParseSchema("aten::copy_(Tensor(a!) self, Tensor src)")
	if err != nil {
		t.Fatal(err)
	}
	l.Operators = append(l.Operators, Operator{Op: &kernels.Op{Schema: "aten::copy_(Tensor(a!) self, Tensor src)"}, Sig: sig})
	m, err := Build(src, l)
	if err != nil {
		t.Fatal(err)
	}
	want := "[1 7 2 2] [2 3 3] [1 0 1] [1 7 2 2]"
	if steps, _ := text(m); steps != want || m.Storages[m.Values[1].Storage].Kind != State || m.Storages[m.Values[2].Storage].Kind != Activation {
		t.Errorf("got %s, want %s; storages %+v", steps, want, m.Storages)
	}
	// The contents of state 1 at the start are those of state 3 at the end, whichever is updated first.
	src = channelsLast(call(copying, 1, 0, 1), call(copying, 3, 2, 3))
	src.Values[1].Tensor.DimOrder, src.Values[3].Tensor.Sizes, src.Values[3].Tensor.DimOrder = nil, []int{2, 4}, nil
	if m, err = Build(src, l); err != nil {
		t.Fatal(err)
	}
	if steps, _ := text(m); steps != "[1 7 2 2] [1 0 1] [3 2 3]" || !strings.Contains(m.Relaid[0].String(), "read after the state's update") {
		t.Errorf("an old view: got %s, %v", steps, m.Relaid)
	}
	src = channelsLast(call(unary, 2, 3, 3), call(inPlace, 1, 0, 1))
	if _, err := Build(src, l); !errors.Is(err, pte.ErrUnsupported) || !strings.Contains(err.Error(), "value 1 is changed in part") {
		t.Errorf("a state that is changed in part: got %v", err)
	}
}

// TestScratchIsNoView checks that memory of which no element is read is no view of what is at its place before or afterwards.
func TestScratchIsNoView(t *testing.T) {
	l := links(t)
	sig, err := kernels.ParseSchema("test::works.out(Tensor self, Tensor output_scratch, *, Tensor(a!) out)")
	if err != nil {
		t.Fatal(err)
	}
	working := len(l.Operators)
	l.Operators = append(l.Operators, Operator{Op: &kernels.Op{Schema: "test::works.out"}, Sig: sig})
	for _, tt := range []struct {
		name string
		code []pte.Instruction // values 0: input, 1: activation, 2: scratch at its place, 3: output
		fail bool
	}{
		{"written before", []pte.Instruction{call(unary, 0, 1, 1), call(working, 1, 2, 3, 3)}, false},
		{"written afterwards", []pte.Instruction{call(working, 0, 2, 3, 3), call(unary, 3, 1, 1), call(unary, 1, 3, 3)}, false},
		{"also read", []pte.Instruction{call(working, 2, 2, 3, 3), call(unary, 3, 1, 1)}, true},
	} {
		src := channelsLast(tt.code...)
		src.Values[2].Tensor.DType, src.Values[2].Tensor.Sizes, src.Values[2].Tensor.DimOrder = tensor.Uint8, []int{32}, []uint8{0}
		m, err := Build(src, l)
		if (err != nil) != tt.fail || err == nil && (len(m.Relaid) > 0 || m.Values[1].Storage == m.Values[2].Storage) {
			t.Errorf("%s: got error %v", tt.name, err)
		}
	}
}
