package ir

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/runtime/pte"
)

// flowText lists the definitions: the step and the first value of the storage, the uses, the next
// definition, and whether it is live.
func flowText(m *Method) string {
	var b strings.Builder
	for _, d := range m.Flow().Defs {
		fmt.Fprintf(&b, "%d:%d%v", d.Step, m.Storages[d.Storage].Values[0], d.Uses)
		if d.Next != None {
			fmt.Fprintf(&b, ">%d", d.Next)
		}
		if !d.Whole {
			b.WriteByte('+')
		}
		if d.Live {
			b.WriteByte('*')
		}
		b.WriteByte(' ')
	}
	return strings.TrimSpace(b.String())
}

func TestFlow(t *testing.T) {
	move := func(from, to int) pte.Instruction {
		return pte.Instruction{Kind: pte.MoveCall, Index: from, Target: to}
	}
	jump := pte.Instruction{Kind: pte.JumpFalseCall, Index: 0, Target: 1}
	for _, tt := range []struct {
		name string
		code []pte.Instruction
		want string // definitions: step:value[uses as {step value}]>next, + in part, * live
	}{
		{"a chain", []pte.Instruction{call(unary, 0, 1, 1), call(unary, 1, 3, 3)}, "-1:0[{0 0}]* 0:1[{1 1}] 1:3[]*"},
		{"two readers", []pte.Instruction{call(unary, 0, 1, 1), call(unary, 1, 2, 2), call(unary, 1, 3, 3)},
			"-1:0[{0 0}]* 0:1[{1 1} {2 1}] 1:2[] 2:3[]*"},
		{"written twice", []pte.Instruction{call(unary, 0, 1, 1), call(unary, 1, 3, 3), call(unary, 0, 1, 1), call(unary, 1, 3, 3)},
			"-1:0[{0 0} {2 0}]* 0:1[{1 1}]>3 1:3[]>4 2:1[{3 1}] 3:3[]*"},
		{"a view", []pte.Instruction{call(unary, 0, 1, 1), call(view, 1, 4, 2), call(unary, 2, 3, 3)}, "-1:0[{0 0}]* 0:1[{1 1} {2 2}] 2:3[]*"},
		{"an update", []pte.Instruction{call(unary, 0, 1, 1), call(inPlace, 1, 0, 1), call(unary, 1, 3, 3)},
			"-1:0[{0 0} {1 0}]* 0:1[{1 1}]>2 1:1[{2 1}]+ 2:3[]*"},
		{"state", []pte.Instruction{call(unary, 1, 3, 3), call(unary, 0, 1, 1)}, "-1:1[{0 1}]>3 0:3[]* -1:0[{1 0}]* 1:1[]*"},
		{"a move", []pte.Instruction{move(0, 1), move(1, 3)}, "-1:0[{0 0}]* 0:1[{1 1}] 1:3[]*"},
		{"read by another block", []pte.Instruction{call(unary, 0, 1, 1), call(unary, 0, 2, 2), jump, call(unary, 1, 3, 3)},
			"-1:0[{0 0}]* 0:1[]* -1:0[{1 0} {2 0}]* 1:2[] -1:1[{3 1}]* 3:3[]*"},
	} {
		if got := flowText(build(t, 4, []int{3}, tt.code...)); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

// TestUnread finds unread outs: bit 1 is the out of a unary operator.
func TestUnread(t *testing.T) {
	for _, tt := range []struct {
		name string
		code []pte.Instruction
		want []uint64 // of each step
	}{
		{"a chain", []pte.Instruction{call(unary, 0, 1, 1), call(unary, 1, 3, 3)}, []uint64{0, 0}},
		{"no reader", []pte.Instruction{call(unary, 0, 1, 1), call(unary, 1, 2, 2), call(unary, 1, 3, 3)}, []uint64{0, 2, 0}},
		{"written again", []pte.Instruction{call(unary, 0, 1, 1), call(unary, 0, 1, 1), call(unary, 1, 3, 3)}, []uint64{0, 0, 0}},
		{"a view is read", []pte.Instruction{call(unary, 0, 1, 1), call(view, 1, 4, 2), call(unary, 2, 3, 3)}, []uint64{0, 0, 0}},
		{"a view that nothing reads", []pte.Instruction{call(unary, 0, 1, 1), call(view, 1, 4, 2), call(unary, 0, 3, 3)}, []uint64{0, 0, 0}},
		{"state", []pte.Instruction{call(unary, 1, 3, 3), call(unary, 0, 1, 1)}, []uint64{0, 0}},
		{"updated", []pte.Instruction{call(unary, 0, 1, 1), call(inPlace, 1, 0, 1), call(unary, 0, 3, 3)}, []uint64{0, 0, 0}},
	} {
		m := build(t, 4, []int{3}, tt.code...)
		for i, want := range tt.want {
			if got := m.Unread(i); got != want {
				t.Errorf("%s, step %d: got outs %b unread, want %b", tt.name, i, got, want)
			}
		}
	}
}

// randomMethod returns a method of calls, updates, views, moves and jumps in both directions.
func randomMethod(t *testing.T, r *rand.Rand) *Method {
	t.Helper()
	const values = 8
	pick := func() int { return r.IntN(values) }
	var code []pte.Instruction
	n := 4 + r.IntN(20)
	for len(code) < n {
		switch a, b := pick(), pick(); {
		case a == b:
		case r.IntN(6) == 0:
			code = append(code, pte.Instruction{Kind: pte.JumpFalseCall, Index: a, Target: r.IntN(n)})
		case r.IntN(6) == 0:
			code = append(code, pte.Instruction{Kind: pte.MoveCall, Index: a, Target: b})
		case r.IntN(4) == 0:
			code = append(code, call(inPlace, a, b, a))
		case r.IntN(8) == 0:
			code = append(code, call(view, 0, values, values-1))
		default:
			code = append(code, call(unary, a, b, b))
		}
	}
	src := &pte.Method{Values: planned(values), Inputs: []int{0, 1}, Outputs: []int{pick()}, Chains: []pte.Chain{{Instructions: code}}}
	m, err := Build(src, links(t))
	if err != nil {
		return nil // an out that is also read, through the view
	}
	return m
}

// walker executes a method with random jumps, and records the writer of each storage.
type walker struct {
	t      *testing.T
	m      *Method
	f      *Flow
	last   []int // by storage: the current definition
	inside []int // by storage: the visit of a block in which it was made
	visit  int
}

// TestFlowOfRandomMethods compares the definitions read on random walks through methods with the
// computed ones.
func TestFlowOfRandomMethods(t *testing.T) {
	walked := 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := randomMethod(t, r)
		if m == nil {
			continue
		}
		w := &walker{t: t, m: m, f: m.Flow(), last: make([]int, len(m.Storages)), inside: make([]int, len(m.Storages))}
		for s := range w.last {
			w.last[s] = None
		}
		at := 0
		for range 100 {
			if at == len(m.Steps) {
				break
			}
			at = w.step(at, r.IntN(2) == 0)
			walked++
		}
		if t.Failed() {
			t.Fatalf("seed %d: %s", seed, flowText(m))
		}
	}
	if walked < 10_000 {
		t.Errorf("only %d steps walked: the test shows nothing", walked)
	}
}

// step executes one step and returns the next.
func (w *walker) step(i int, jump bool) int {
	s, flow := &w.m.Steps[i], &w.f.Steps[i]
	if b := w.f.Blocks[flow.Block]; i == b.From {
		w.visit++
	} else if i < b.From || i >= b.To {
		w.t.Errorf("step %d is not in its block %v", i, b)
	}
	for k, v := range append(append([]int(nil), s.Reads...), s.Updates...) {
		w.read(i, v, flow.Reads[k])
	}
	for k, v := range append(append([]int(nil), s.Writes...), s.Updates...) {
		if d := flow.Makes[k]; d != None {
			storage := w.m.Values[v].Storage
			w.last[storage], w.inside[storage] = d, w.visit
		}
	}
	if s.Kind == JumpFalseCall && jump {
		return s.Target
	}
	return i + 1
}

func (w *walker) read(i, v, def int) {
	storage := w.m.Values[v].Storage
	d := w.f.Defs[def]
	if d.Storage != storage || d.Block != w.f.Steps[i].Block {
		w.t.Errorf("step %d, value %d: definition %+v", i, v, d)
	}
	there := w.last[storage]
	switch {
	case there != None && w.inside[storage] == w.visit && there != def:
		w.t.Errorf("step %d reads definition %d of value %d, not %d", i, there, v, def)
	case there != None && w.inside[storage] != w.visit && (d.Step != Entry || !w.f.Defs[there].Live):
		w.t.Errorf("step %d reads definition %d of value %d from another block: %+v is not live, or %+v is not that of an entry", i, there, v, w.f.Defs[there], d)
	case there == None && d.Step != Entry:
		w.t.Errorf("step %d reads definition %d of value %d before it is made", i, def, v)
	}
}
