//go:build linux

package xnnpack

import (
	"errors"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/cbindings/xnn/xnnguard"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/internal/campaign"
)

// faults are changes to the library's functions that attack.run must detect.
var faults = []struct {
	kind  string
	plant func(lib *xnn.Library)
}{
	{"", func(*xnn.Library) {}},
	{"difference", func(lib *xnn.Library) { // another operator
		define := lib.DefineUnary
		lib.DefineUnary = func(s xnn.Subgraph, _ int32, p *xnn.UnaryParams, in, out, flags uint32) xnn.Status {
			return define(s, lib.Soname.Unary[xnn.Square], p, in, out, flags)
		}
	}},
	{"foreign", func(lib *xnn.Library) { // an input read from one element too far
		setup := lib.SetupRuntime
		lib.SetupRuntime = func(r xnn.Runtime, n uint, values *xnn.ExternalValue) xnn.Status {
			values.Data += 4
			return setup(r, n, values)
		}
	}},
	{"leak", func(lib *xnn.Library) { lib.DeleteRuntime = func(xnn.Runtime) xnn.Status { return xnn.Success } }},
	{"execute", func(lib *xnn.Library) { lib.InvokeRuntime = func(xnn.Runtime) xnn.Status { return xnn.InvalidState } }},
}

// TestAttackFindsFaults checks that attack.run reports each injected fault with the right kind.
func TestAttackFindsFaults(t *testing.T) {
	a := newAttack(t)
	sound := a.lib.Functions
	guarded := xnnguard.Install(a.lib) == nil
	for _, f := range faults {
		if f.kind == "leak" && !guarded {
			continue // without the guarded heap, the library's allocations are not counted
		}
		f.plant(a.lib)
		m := graphtest.NewMaker(1)
		x, y := m.Input(graph.FP32, 3, 5), m.Value(graph.FP32, 3, 5)
		m.Node("Abs", []int{x}, []int{y})
		g := m.Done(y)
		for seed := range uint64(5) {
			var found *campaign.Finding
			err := a.run(g, seed)
			if got := errors.As(err, &found); got != (f.kind != "") || got && found.Kind != f.kind {
				t.Errorf("seed %d: got %v, want kind %q", seed, err, f.kind)
			}
		}
		a.lib.Functions = sound
	}
}

// TestIntact checks that intact detects a changed byte next to an argument.
func TestIntact(t *testing.T) {
	edges := [][2][]byte{{{7, 7}, {7}}, {nil, {7, 7, 7}}}
	if err := intact(edges, 7); err != nil {
		t.Error(err)
	}
	edges[1][1][2] = 8
	if err := intact(edges, 7); err == nil {
		t.Error("no error for a changed byte after argument 1")
	}
}
