package graph

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/chart"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/cmd/etrun/internal/valuetext"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// New describes a program: lowered as it runs, else as it is in the file, as every method that does not load here. The only
// error is that of ctx.
func New(ctx context.Context, prog *etrun.Program, path string, lowered bool) (*Program, error) {
	return newProgram(ctx, prog, &Program{lowered: lowered, Name: valuetext.Cut(filepath.Base(path)), Methods: []*Method{}, Constants: []Constant{}})
}

func newProgram(ctx context.Context, prog *etrun.Program, p *Program) (*Program, error) {
	spec := prog.Spec()
	nodes, seen := maxNodes, make(map[*byte]int)
	for i := range spec.Methods {
		b := &builder{prog: prog, p: p, lowered: p.lowered, spec: &spec.Methods[i], out: &Method{Name: valuetext.Cut(spec.Methods[i].Name)}, left: &nodes, seen: seen}
		if err := b.build(ctx); err != nil {
			return nil, err
		}
		p.Methods = append(p.Methods, b.out)
	}
	return p, nil
}

func (b *builder) build(ctx context.Context) error {
	m, err := b.prog.Load(ctx, b.spec.Name)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		b.out.Fault = valuetext.Cut(session.WithHint(err).Error())
	default:
		defer m.Close()
		b.plan = m.Report().Plan
	}
	if b.plan != nil && b.lowered {
		b.m, b.infos = b.plan.Method, m.Delegates()
		b.dataflow()
	} else if o, err := b.prog.Outline(ctx, b.spec.Name); err == nil {
		defer o.Close()
		b.m, b.infos, b.outline = o.IR, o.Delegates, o
		b.dataflow()
	} else {
		b.inFile()
	}
	b.draw()
	return nil
}

// item returns the item of the memory plan that holds a value, -1 for none. The value is of the method of the plan, or of
// the file's, of which the plan's keeps the values.
func (b *builder) item(v int) int {
	if b.plan == nil || v >= len(b.plan.Method.Values) {
		return -1
	}
	return b.plan.Method.Values[v].Storage
}

// dataflow describes the steps of a method.
func (b *builder) dataflow() {
	b.live = live(b.plan)
	flow := b.m.Flow()
	inputs := make([]int, len(b.m.Inputs))
	for k, v := range b.m.Inputs {
		inputs[k] = b.add(b.end(kindInput, fmt.Sprintf("input%d", k), k, v), 0)
	}
	b.steps = make([]int, len(b.m.Steps))
	for i := range b.m.Steps {
		b.steps[i] = -1
		switch s := &b.m.Steps[i]; {
		case s.IsView():
			b.out.Joined++
		case s.Kind == ir.FreeCall: // no value depends on it
		case *b.left <= 0:
			b.out.Left++
		default:
			b.steps[i] = b.add(b.step(i), flow.Steps[i].Block)
		}
	}
	b.connect(flow, inputs)
	b.blocks(flow)
}

// end describes input or output k of the method, or of a delegate.
func (b *builder) end(kind, id string, k, v int) Node {
	n := Node{ID: id, Kind: kind, Name: fmt.Sprintf("%s %d", kind, k)}
	if v < 0 {
		return n
	}
	n.Result = b.valueType(v)
	if s := b.m.Values[v].Storage; s >= 0 {
		n.Bytes = b.m.Storages[s].Bytes
		n.Items = b.items(n.Items, v)
	}
	if c := b.constantOf(v, id, "", nil); c >= 0 {
		n.Constants = []Use{{"", c}}
	}
	return n
}

// items adds the item of the plan that holds a value.
func (b *builder) items(list []int, v int) []int {
	if k := b.item(v); k >= 0 {
		list = append(list, k)
	}
	return list
}

// step describes a step.
func (b *builder) step(i int) Node {
	s := &b.m.Steps[i]
	name := b.m.StepName(s)
	n := Node{ID: fmt.Sprint(i), Kind: stepKinds[s.Kind], Name: valuetext.Cut(chart.Short(name)), Full: valuetext.Cut(name), At: s.Origin.String(), Live: b.live[s.Origin]}
	n.Class = classOf(n.Name)
	b.locate(&n, s.Origin)
	b.arguments(&n, s)
	for _, v := range slices.Concat(s.Writes, s.Updates) {
		value := &b.m.Values[v]
		if value.Kind != tensor.KindTensor {
			continue
		}
		n.Bytes += value.Tensor.NBytes()
		n.Items = b.items(n.Items, v)
		if n.Result == "" {
			n.Result, n.size = b.valueType(v), value.Tensor.NBytes()
		}
	}
	n.sign = n.Full + " " + n.Result + fmt.Sprint(n.Args)
	if s.Kind == ir.DelegateCall && s.Delegate < len(b.infos) {
		if b.plan != nil {
			from, to := b.plan.Blocks(s.Delegate)
			for k := from; k < to; k++ {
				n.Items = append(n.Items, k)
			}
		}
		b.unfold(&n, s, len(b.out.Nodes))
	}
	if o := b.outline; o != nil {
		switch {
		case s.Kind == ir.KernelCall && o.Missing[name]:
			n.Fault = "operator missing in this build"
		case s.Kind == ir.DelegateCall && o.Faults[s.Delegate] != nil:
			n.Name, n.Fault = valuetext.Cut(b.infos[s.Delegate].Backend), valuetext.Cut(o.Faults[s.Delegate].Error())
		}
	}
	return n
}

var stepKinds = map[ir.StepKind]string{
	ir.KernelCall: kindOperator, ir.DelegateCall: kindDelegate, ir.MoveCall: kindMove, ir.JumpFalseCall: kindJump, ir.SizesJump: kindJump, ir.FreeCall: kindFree,
}

// locate adds the location in the program that was exported.
func (b *builder) locate(n *Node, o ir.Origin) {
	if o.Chain >= len(b.spec.Chains) || o.Index >= len(b.spec.Chains[o.Chain].Stacks) {
		return
	}
	if frames := b.spec.Chains[o.Chain].Stacks[o.Index]; len(frames) > 0 {
		f := frames[len(frames)-1]
		n.Source = valuetext.Cut(fmt.Sprintf("%s:%d %s", f.File, f.Line, f.Context))
	}
}

// arguments lists the arguments of a step: constants apart from the others.
func (b *builder) arguments(n *Node, s *ir.Step) {
	for i, v := range s.Args {
		if i == maxArgs {
			n.Args = append(n.Args, Fact{"", fmt.Sprintf("%d more", len(s.Args)-i)})
			break
		}
		name := valuetext.Argument(s, i)
		if s.Kind == ir.KernelCall && i >= len(s.Sig.Args) {
			continue // results repeat arguments
		}
		if c := b.constantOf(v, n.ID, name, b.elements(s, i)); c >= 0 {
			n.Constants = append(n.Constants, Use{name, c})
			continue
		}
		n.Args = append(n.Args, Fact{name, valuetext.Of(b.m, v)})
	}
}
