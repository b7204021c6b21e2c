package page

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/bytesize"
	"github.com/etrun-go/etrun/cmd/etrun/internal/chart"
	"github.com/etrun-go/etrun/cmd/etrun/internal/profile"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/cmd/etrun/internal/timeline"
	"github.com/etrun-go/etrun/cmd/etrun/internal/valuetext"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/pte"
)

// New describes a program. A method that does not load here is described as it is in the file.
// The only error is that of ctx.
func New(ctx context.Context, prog *etrun.Program, model, version string) (*Page, error) {
	p := &Page{Name: filepath.Base(model), Version: version}
	spec := prog.Spec()
	p.Facts = []Fact{{"file", fmt.Sprintf("%s, %s, program version %d", valuetext.Cut(model), bytesize.Format(spec.Size), spec.Version)}}
	weights := newWeights(prog)
	for i := range spec.Methods {
		d := &describer{program: prog, spec: &spec.Methods[i]}
		m, err := d.describe(ctx)
		if err != nil {
			return nil, err
		}
		p.Methods = append(p.Methods, m)
		weights.add(d)
	}
	p.Weights = weights.list()
	for _, w := range prog.Warnings() {
		p.Notes = append(p.Notes, valuetext.Cut(w.Text))
	}
	return p, nil
}

// describer describes one method.
type describer struct {
	program *etrun.Program
	spec    *pte.Method
	ir      *ir.Method // nil if the method does not load
}

func (d *describer) describe(ctx context.Context) (*Method, error) {
	r := &Method{Name: d.spec.Name}
	m, err := d.program.Load(ctx, d.spec.Name)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		r.Fault = valuetext.Cut(session.WithHint(err).Error())
		for c := range d.spec.Chains {
			r.Instructions += len(d.spec.Chains[c].Instructions)
		}
	default:
		defer m.Close()
		d.ir = m.Report().Plan.Method
		d.asLoaded(r, m)
	}
	r.Facts = append(d.values(), r.Facts...)
	return r, nil
}

// values returns the inputs and outputs as facts.
func (d *describer) values() (facts []Fact) {
	meta, err := d.program.Meta(d.spec.Name)
	if err != nil {
		return nil
	}
	for _, list := range []struct {
		name   string
		values []etrun.ValueMeta
	}{{"inputs", meta.Inputs}, {"outputs", meta.Outputs}} {
		var texts []string
		for i := range list.values {
			v := &list.values[i]
			text := v.Kind.String()
			if v.Kind == tensor.KindTensor {
				text = v.DType.String() + " " + tensor.FormatSizes(v.Sizes)
			}
			if v.Dynamism != tensor.Static && v.Kind == tensor.KindTensor {
				text += " at most"
			}
			texts = append(texts, text)
		}
		facts = append(facts, Fact{list.name, valuetext.Cut(strings.Join(texts, "; "))})
	}
	return facts
}

// asLoaded describes the loaded method.
func (d *describer) asLoaded(r *Method, m *etrun.Method) {
	mp := m.Report().Plan
	scratch := int64(0)
	for _, info := range m.Delegates() {
		scratch, r.Nodes = scratch+info.Scratch, r.Nodes+len(info.Nodes)
	}
	r.Instructions = len(d.ir.Steps)
	r.Facts = []Fact{
		{"memory", fmt.Sprintf("%s planned (plan: %s), %s of state, %s of scratch", bytesize.Format(mp.Size()), mp.Source,
			bytesize.Format(mp.StateBytes), bytesize.Format(scratch))},
		{"repaired", strings.Join(m.Report().Repairs, "; ")},
		{"instructions", atLoad(m)},
	}
	r.Facts = slices.DeleteFunc(r.Facts, func(f Fact) bool { return f.Text == "" })
	t := timeline.New(m)
	drawing := t.Chart(d.spec.Name)
	for i := range drawing.Plans {
		r.Plans = append(r.Plans, Plan{drawing.Plans[i].Name, Markup(drawing.Panel(i))})
	}
	r.Legend = Markup(drawing.Legend())
	r.Peak, r.PeakBytes, r.AtPeak = t.Peak, t.PeakBytes, t.AtPeak()
}

// atLoad counts the changes made by lowering.
func atLoad(m *etrun.Method) string {
	var parts []string
	if n := len(m.Report().Folded); n > 0 {
		parts = append(parts, fmt.Sprintf("%d executed once at load", n))
	}
	if n := len(m.Report().Rewritten); n > 0 {
		parts = append(parts, fmt.Sprintf("%d removed or changed at load", n))
	}
	if report := m.Report().Lowered; report != nil {
		parts = append(parts, fmt.Sprintf("regions lowered to backends: %d", report.Accepted()))
	}
	return strings.Join(parts, ", ")
}

// Timed adds profiles to the methods.
func (p *Page) Timed(profiles []*profile.Profile) {
	for _, from := range profiles {
		for _, m := range p.Methods {
			if m.Name == from.Method {
				m.timed(from)
			}
		}
	}
}

func (m *Method) timed(from *profile.Profile) {
	var b strings.Builder
	chart.WriteArea(&b, from.FlameHeight(), chart.Width, from.Flame())
	m.Profile = &Profile{from.Runs, from.Median, from.Max, from.ByOperator(), Markup(b.String())}
}
