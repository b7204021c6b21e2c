package graph

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// changed describes a program of the module's tests after a change.
func changed(t *testing.T, name string, change func(*pte.Program)) *Program {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../../../testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	spec, err := pte.Parse(data, pte.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	change(spec)
	backends := append(all.Backends(), xnnpack.Backend{Engine: xnnpack.EngineGo, KeepConstants: true})
	prog, err := etrun.Parse(ptetest.Write(spec, ptetest.Layout{}), append(off, etrun.WithConstants(), etrun.WithDelegates(backends...))...)
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	p, err := New(t.Context(), prog, name, false)
	if err != nil {
		t.Fatal(err)
	}
	check(t, p)
	return p
}

// TestMissingOperator takes each operator of programs away: the graph stays connected as it was, with the delegates that
// compile unfolded, and the operator marked at each of its calls.
func TestMissingOperator(t *testing.T) {
	for _, name := range []string{"digits/portable.pte", "ethosu/programs/digits.pte", "pte/map_loop.pte", "pte/two_conds.pte", "pte/two_methods.pte",
		"pte/stack_traces.pte", "pte/dynamic_pair_xnnpack.pte", "pte/index_lists.pte", "pte/initial_state.pte"} {
		sound := changed(t, name, func(*pte.Program) {})
		for k, m := range sound.Methods {
			for _, op := range operatorsOf(m) {
				if strings.HasPrefix(op, "executorch_prim::") {
					continue // every runtime has them, and their calls do not tell what they do
				}
				p := changed(t, name, func(p *pte.Program) {
					for i := range p.Methods[k].Operators {
						if o := &p.Methods[k].Operators[i]; o.FullName() == op {
							o.Name = strings.Replace(o.Name, "::", "::no_", 1)
						}
					}
				})
				got := p.Methods[k]
				if want := edges(m); edges(got) != want {
					t.Errorf("%s without %s: %s\nwant %s", name, op, edges(got), want)
				}
				if !strings.Contains(got.Fault, "no_") {
					t.Errorf("%s without %s: fault %q", name, op, got.Fault)
				}
				for i := range got.Nodes {
					if n := &got.Nodes[i]; (n.Fault != "") != strings.Contains(n.Full, "::no_") {
						t.Errorf("%s without %s: node %s (%s): fault %q", name, op, n.ID, n.Full, n.Fault)
					}
				}
			}
		}
	}
}

func operatorsOf(m *Method) (list []string) {
	for i := range m.Nodes {
		if n := &m.Nodes[i]; n.Kind == kindOperator && !slices.Contains(list, n.Full) {
			list = append(list, n.Full)
		}
	}
	return list
}

// A delegate of a backend that is missing, or with a payload that is damaged, is drawn without its operations, as connected as it was.
func TestMissingBackend(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*pte.Delegate)
		fault  string
	}{
		{"backend", func(d *pte.Delegate) { d.ID = "NoBackend" }, "missing"},
		{"payload", func(d *pte.Delegate) { d.Data = d.Data[:len(d.Data)/2] }, "payload"},
	} {
		for _, name := range []string{"digits/xnnpack.pte", "pte/dynamic_pair_xnnpack.pte", "ethosu/programs/digits.pte"} {
			sound := changed(t, name, func(*pte.Program) {}).Methods[0]
			got := changed(t, name, func(p *pte.Program) { tt.change(&p.Methods[0].Delegates[0]) }).Methods[0]
			outer := func(m *Method) string { return edges(&Method{Nodes: m.Nodes, Sheets: m.Sheets[:1]}) }
			if outer(got) != outer(sound) {
				t.Errorf("%s, %s: %s\nwant %s", tt.name, name, outer(got), outer(sound))
			}
			at := slices.IndexFunc(got.Nodes, func(n Node) bool { return n.Kind == kindDelegate })
			if n := &got.Nodes[at]; !strings.Contains(n.Fault, tt.fault) || n.Sheet != 0 || got.Fault == "" {
				t.Errorf("%s, %s: fault %q, sheet %d, of the method %q", tt.name, name, n.Fault, n.Sheet, got.Fault)
			}
		}
	}
}

// A method whose instructions contradict each other is drawn in the order of its values.
func TestContradiction(t *testing.T) {
	m := changed(t, "digits/portable.pte", func(p *pte.Program) {
		in := &p.Methods[0].Chains[0].Instructions[3]
		in.Args = in.Args[:len(in.Args)-1]
	}).Methods[0]
	if m.Fault == "" || !strings.Contains(edges(m), "input0→0 0→1 1→2 2→3 3→4 ") || !strings.Contains(edges(m), "→output0") {
		t.Errorf("%q: %s", m.Fault, edges(m))
	}
}
