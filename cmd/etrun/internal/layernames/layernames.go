// Package layernames names instructions and nodes by modules of the model.
package layernames

import (
	"context"
	"strings"

	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/graph"
	"github.com/etrun-go/etrun/cmd/etrun/internal/layers"
	"github.com/etrun-go/etrun/cmd/etrun/internal/modules"
	"github.com/etrun-go/etrun/cmd/etrun/internal/profile"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/runtime/ir"
)

// Names names instructions and nodes by modules of the model, with the flag of the ETRecord.
type Names struct {
	Path  string
	names *modules.Names
}

// AddFlag adds the flag of the ETRecord.
func (n *Names) AddFlag(flags *pflag.FlagSet) {
	flags.StringVar(&n.Path, "etrecord", "", "name instructions by the modules in `FILE`, the ETRecord of the export")
}

// Read reads the names of a program, before anything runs.
func (n *Names) Read(ctx context.Context, s *session.Session, a *cli.App) (err error) {
	var record *modules.Record
	if n.Path != "" {
		if record, err = modules.Open(ctx, n.Path, s.InputLimit()); err != nil {
			return err
		}
		for _, part := range record.Damaged {
			a.Note("warning: %s: part %q differs from its checksum", n.Path, part)
		}
	}
	n.names, err = modules.New(s.Spec(), record)
	return err
}

// AddTo adds layers and results to the rows of a profile of one of a session's methods.
func (n *Names) AddTo(p *profile.Profile, s *session.Session) {
	m := methodOf(s, p.Method)
	if m == nil {
		return
	}
	results, infos, exported := resultsOf(m), m.Delegates(), len(session.MethodSpec(s.Program, p.Method).Delegates)
	for i := range p.Rows {
		r := &p.Rows[i]
		step, ok := results[ir.Origin{Chain: r.Chain, Index: r.Instruction}]
		if !ok {
			continue
		}
		if r.Result = step.types; step.delegate < exported { // a part that lowering made has the instructions of many layers
			r.Layer = n.names.Instruction(p.Method, r.Chain, r.Instruction)
		}
		if step.delegate >= 0 && step.delegate < len(infos) {
			n.addToNodes(p.Method, r.Parts, infos[step.delegate].Nodes)
		}
	}
}

func (n *Names) addToNodes(method string, rows []profile.Row, nodes []delegate.Node) {
	names := make([]string, len(nodes))
	for i := range nodes {
		names[i] = nodes[i].Name
	}
	for i, at := range graph.MatchNodes(rows, names) {
		if at >= 0 {
			_, rows[i].Result, _ = strings.Cut(nodes[at].Detail, " → ")
			rows[i].Layer = n.names.Node(method, nodes[at].DebugHandle)
		}
	}
}

// AddToPlace adds the layer of a value's place in a session's program; p may be nil.
func (n *Names) AddToPlace(p *layers.Place, s *session.Session) {
	if p == nil {
		return
	}
	if p.Node < 0 {
		p.Layer = n.names.Instruction(p.Method, p.Chain, p.Instruction)
		return
	}
	if m := methodOf(s, p.Method); m != nil && p.Delegate < len(m.Delegates()) {
		if nodes := m.Delegates()[p.Delegate].Nodes; p.Node < len(nodes) {
			p.Layer = n.names.Node(p.Method, nodes[p.Node].DebugHandle)
		}
	}
}

// methodOf returns a called method, nil if a session has not called it itself.
func methodOf(s *session.Session, name string) *etrun.Method {
	for _, st := range s.Steps {
		if m, ok := st.Callee.(*etrun.Method); ok && m.Name() == name {
			return m
		}
	}
	return nil
}

// stepResult is what a step writes, and its delegate, -1 for none.
type stepResult struct {
	types    string
	delegate int
}

// resultsOf returns the results of a method's steps by instruction.
func resultsOf(m *etrun.Method) map[ir.Origin]stepResult {
	method := m.Report().Plan.Method
	results := make(map[ir.Origin]stepResult, len(method.Steps))
	for i := range method.Steps {
		s := &method.Steps[i]
		r := stepResult{delegate: -1}
		if s.Kind == ir.DelegateCall {
			r.delegate = s.Delegate
		}
		var types []string
		for _, w := range s.Writes {
			types = append(types, layers.TypeName(&method.Values[w]))
		}
		r.types = strings.Join(types, ", ")
		results[s.Origin] = r
	}
	return results
}
