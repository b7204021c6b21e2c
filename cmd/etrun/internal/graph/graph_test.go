package graph

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/delegate/xnnpack"
)

// open opens a program of the module's tests, on engines available on every machine.
func open(t *testing.T, name string, more ...etrun.Option) *etrun.Program {
	t.Helper()
	more = append(more, etrun.WithConstants(), etrun.WithDelegates(append(all.Backends(), xnnpack.Backend{Engine: xnnpack.EngineGo, KeepConstants: true})...))
	p, err := etrun.OpenSource(t.Context(), etrun.File(filepath.Join("../../../../testdata", name)), more...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func describe(t *testing.T, name string, more ...etrun.Option) *Program {
	t.Helper()
	p, err := New(t.Context(), open(t, name, more...), name, false)
	if err != nil {
		t.Fatal(err)
	}
	check(t, p)
	return p
}

// check requires what the page relies on: indexes in range, each node on one sheet, and text that is JSON.
func check(t *testing.T, p *Program) {
	t.Helper()
	for _, m := range p.Methods {
		on := make([]int, len(m.Nodes))
		ids := make(map[string]bool)
		for k := range m.Sheets {
			s := &m.Sheets[k]
			if len(s.Rank) != len(s.Nodes) || len(s.X) != len(s.Nodes) {
				t.Fatalf("%s: sheet %d: %d nodes, %d ranks, %d positions", m.Name, k, len(s.Nodes), len(s.Rank), len(s.X))
			}
			for _, n := range s.Nodes {
				on[n]++
			}
			for _, e := range s.Edges {
				if e.From < 0 || e.To < 0 || e.From >= len(s.Nodes) || e.To >= len(s.Nodes) {
					t.Fatalf("%s: sheet %d: edge %+v of %d nodes", m.Name, k, e, len(s.Nodes))
				}
			}
		}
		for i := range m.Nodes {
			n := &m.Nodes[i]
			if on[i] != 1 || ids[n.ID] || n.Sheet >= len(m.Sheets) {
				t.Fatalf("%s: node %d (%s) is on %d sheets, its name is there %v, its sheet is %d", m.Name, i, n.ID, on[i], ids[n.ID], n.Sheet)
			}
			ids[n.ID] = true
			for _, c := range n.Constants {
				if c.At < 0 || c.At >= len(p.Constants) {
					t.Fatalf("%s: node %s: constant %d", m.Name, n.ID, c.At)
				}
			}
		}
	}
	if _, err := json.Marshal(p); err != nil {
		t.Fatal(err)
	}
}

// edges lists the edges of a method as text.
func edges(m *Method) string {
	var b strings.Builder
	for k := range m.Sheets {
		s := &m.Sheets[k]
		for _, e := range s.Edges {
			fmt.Fprintf(&b, "%s→%s%s ", m.Nodes[s.Nodes[e.From]].ID, m.Nodes[s.Nodes[e.To]].ID, e.Kind)
		}
	}
	return b.String()
}

// off is the program as it is in the file.
var off = []etrun.Option{etrun.WithLowering(etrun.LowerOff)}

func TestEdges(t *testing.T) {
	for _, tt := range []struct {
		name   string
		method int
		joined int
		want   string
	}{
		{"digits/portable.pte", 0, 0, "input0→0 0→1 1→2 2→3 3→4 4→5 5→6 6→7 7→8 8→9 9→10 10→12 11→12 12→output0 "},
		{"digits/xnnpack.pte", 0, 0, "input0→0 0→output0 0.input0→0.0 0.0→0.1 0.1→0.2 0.2→0.3 0.3→0.4 0.4→0.5 0.5→0.6 0.6→0.7 0.7→0.output0 "},
		{"ethosu/programs/digits.pte", 0, 0, "input0→0 0→1 1→2 2→output0 1.input0→1.0 1.0→1.1 1.1→1.2 1.2→1.3 1.3→1.4 1.4→1.output0 "},
		{"pte/map_loop.pte", 0, 0, "input0→0 input0→1 4→1 1→2 input1→2 2→3 3→3 4→3 4→4 4→5 0→5 5→6 4→7 0→7 3→output0 6→7true 6→1false "},
		// each branch of the first condition writes one of the operands of the sum
		{"pte/two_conds.pte", 0, 0, "input0→0 input2→1 1→2 input2→4 4→5 input1→6 input2→7 7→8 input2→10 10→11 5→12 2→12 11→12 8→12 12→output0 " +
			"0→1true 0→4false 3→4true 3→6false 6→7true 6→10false 9→10true 9→12false "},
		{"pte/external_weights.pte", 0, 0, "input0→1 0→1 1→output0 "}, // does not load here
		{"pte/two_methods.pte", 0, 0, "input0→0 0→2 1→2 0→3 2→output0 "},
		{"pte/dynamic_view.pte", 0, 1, "input0→0 0→1 input0→4 3→4 4→output0 "},
		{"pte/stack_traces.pte", 0, 0, "input0→0 0→1 1→2 2→3 1→4 3→4 4→5 5→7 6→7 7→output0 "},
	} {
		m := describe(t, tt.name, off...).Methods[tt.method]
		if got := edges(m); got != tt.want || m.Joined != tt.joined {
			t.Errorf("%s: %s with %d joined views, want %s with %d", tt.name, got, m.Joined, tt.want, tt.joined)
		}
	}
}
