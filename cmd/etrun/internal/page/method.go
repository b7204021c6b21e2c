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
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/cmd/etrun/internal/timeline"
	"github.com/etrun-go/etrun/cmd/etrun/internal/valuetext"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// New describes a program. A method that does not load here is shown as it is in the file.
// The only error is that of ctx.
func New(ctx context.Context, prog *etrun.Program, model, version string) (*Page, error) {
	p := &Page{Name: filepath.Base(model), Version: version}
	spec := prog.Spec()
	p.Facts = []Fact{{"file", fmt.Sprintf("%s, %s, program version %d", valuetext.Cut(model), bytesize.Format(spec.Size), spec.Version)}}
	weights := newWeights(prog)
	nodes := maxNodes
	for i := range spec.Methods {
		d := &describer{program: prog, spec: &spec.Methods[i], nodes: &nodes}
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

func (d *describer) describe(ctx context.Context) (*Method, error) {
	r := &Method{Name: d.spec.Name}
	m, err := d.program.Load(ctx, d.spec.Name)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		r.Fault = valuetext.Cut(session.WithHint(err).Error())
		d.asInFile(r)
	default:
		defer m.Close()
		d.ir, d.infos = m.Plan().Method, m.Delegates()
		d.asLoaded(r, m)
	}
	r.Facts = append(d.values(), r.Facts...)
	for i := range r.Instructions {
		r.Nodes += len(r.Instructions[i].Nodes)
	}
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

// asLoaded shows the steps of the loaded method.
func (d *describer) asLoaded(r *Method, m *etrun.Method) {
	mp := m.Plan()
	scratch := int64(0)
	for i := range d.infos {
		scratch += d.infos[i].Scratch
	}
	r.Facts = []Fact{
		{"memory", fmt.Sprintf("%s planned (plan: %s), %s of state, %s of scratch", bytesize.Format(mp.Size()), mp.Source,
			bytesize.Format(mp.StateBytes), bytesize.Format(scratch))},
		{"repaired", strings.Join(m.Repairs(), "; ")},
		{"instructions", atLoad(m)},
	}
	r.Facts = slices.DeleteFunc(r.Facts, func(f Fact) bool { return f.Text == "" })
	steps := d.ir.Steps[:min(len(d.ir.Steps), maxInstructions)]
	r.Left = len(d.ir.Steps) - len(steps)
	for i := range steps {
		in := d.step(&steps[i])
		in.Step = i
		r.Instructions = append(r.Instructions, in)
	}
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
	if n := len(m.Folded()); n > 0 {
		parts = append(parts, fmt.Sprintf("%d executed once at load", n))
	}
	if n := len(m.Rewritten()); n > 0 {
		parts = append(parts, fmt.Sprintf("%d removed or changed at load", n))
	}
	if report := m.Lowered(); report != nil {
		parts = append(parts, fmt.Sprintf("regions lowered to backends: %d", report.Taken()))
	}
	return strings.Join(parts, ", ")
}

// step describes a step of the loaded method.
func (d *describer) step(s *ir.Step) Instruction {
	in := d.instruction(s.Origin.Chain, s.Origin.Index, stepKinds[s.Kind], d.ir.StepName(s))
	for i, v := range s.Args {
		in.Args = append(in.Args, Arg{valuetext.Argument(s, i), valuetext.Of(d.ir, v)})
	}
	for _, v := range s.Writes {
		if t := d.ir.Values[v].Tensor; t != nil && d.ir.Values[v].Kind == tensor.KindTensor {
			in.Bytes += t.NBytes()
			if in.Result == "" {
				in.Result = valuetext.Type(t.DType, t.Sizes)
			}
		}
	}
	if s.Kind == ir.DelegateCall && s.Delegate < len(d.infos) {
		d.unfold(&in, &d.infos[s.Delegate])
	}
	return in
}

var stepKinds = map[ir.StepKind]string{
	ir.KernelCall: "operator", ir.DelegateCall: "delegate", ir.MoveCall: "move", ir.JumpFalseCall: "jump", ir.FreeCall: "free",
}

// instruction returns an instruction with its source location in the file.
func (d *describer) instruction(chain, index int, kind, name string) Instruction {
	in := Instruction{At: fmt.Sprint(index), Kind: kind, Name: valuetext.Cut(name), Short: valuetext.Cut(chart.Short(name))}
	if chain > 0 {
		in.At = fmt.Sprintf("%d:%d", chain, index)
	}
	if chain < len(d.spec.Chains) && index < len(d.spec.Chains[chain].Stacks) {
		if frames := d.spec.Chains[chain].Stacks[index]; len(frames) > 0 {
			f := frames[len(frames)-1]
			in.Source = valuetext.Cut(fmt.Sprintf("%s:%d %s", f.File, f.Line, strings.TrimSpace(f.Context)))
		}
	}
	return in
}

// unfold adds the nodes of a delegate.
func (d *describer) unfold(in *Instruction, info *delegate.Info) {
	if info.Engine != "" {
		in.Facts = append(in.Facts, Fact{"engine", valuetext.Cut(info.Engine)})
	}
	in.Facts = append(in.Facts, Fact{"weights", bytesize.Format(info.WeightBytes)}, Fact{"scratch", bytesize.Format(info.Scratch)})
	for _, f := range info.Facts {
		in.Facts = append(in.Facts, Fact{valuetext.Cut(f[0]), valuetext.Cut(f[1])})
	}
	shown := info.Nodes[:min(len(info.Nodes), *d.nodes)]
	*d.nodes -= len(shown)
	for _, n := range shown {
		in.Nodes = append(in.Nodes, Node{Name: valuetext.Cut(n.Name), Detail: valuetext.Cut(n.Detail)})
	}
	if left := len(info.Nodes) - len(shown); left > 0 {
		in.Facts = append(in.Facts, Fact{"not shown", fmt.Sprintf("%d nodes", left)})
	}
}
