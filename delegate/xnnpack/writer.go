package xnnpack

import (
	"cmp"
	"time"

	regions "github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/native"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Writer writes graphs as payloads for files. It accepts what all runtimes of ExecuTorch from 1.0 on execute.
type Writer struct{ Backend }

var (
	_ regions.Writer   = Writer{}
	_ regions.Selector = Writer{}
)

// Accepts implements lowering.Compiler.
func (w Writer) Accepts(g *regions.Graph, i int) string {
	l := lowerFor(g, true)
	defer l.Recycle()
	if err := l.Call(i); err != nil {
		return lowering.ReasonOf(err)
	}
	x, shapes, err := l.FinishCall(i)
	if err != nil {
		return lowering.ReasonOf(err)
	}
	if why := native.Refuses(x, shapes); why != "" {
		return why
	}
	varies := make([]bool, x.Inputs)
	for k := range varies {
		varies[k] = !x.Static
	}
	if _, err := x.Common(varies); err != nil {
		return lowering.ReasonOf(graph.InPayload(err))
	}
	return ""
}

// Estimate implements lowering.Compiler.
func (w Writer) Estimate(g *regions.Graph, share float64) (time.Duration, error) {
	t, err := w.Backend.Estimate(g, share)
	if err != nil {
		return 0, err
	}
	l := lowerFor(g, true)
	defer l.Recycle()
	_, _, err = commonGraph(l, g)
	return t, err
}

// Write implements lowering.Writer.
func (w Writer) Write(g *regions.Graph) (*regions.Written, error) {
	x, constants, err := commonGraph(lowerFor(g, false), g)
	if err != nil {
		return nil, err
	}
	out := &regions.Written{Payload: x.Payload(0)}
	for i := range constants {
		c := &constants[i]
		out.Constants = append(out.Constants, regions.GraphValue{Kind: tensor.KindTensor, DType: c.Tensor(), Sizes: c.Shape.Dims(), Data: c.Data})
	}
	return out, nil
}

// commonGraph lowers a graph to one for payloads, with the constants that are its last inputs.
func commonGraph(l *lowering.Lowering, in *regions.Graph) (*graph.Graph, []graph.Value, error) {
	g, err := l.LowerAll()
	if err != nil {
		return nil, nil, err
	}
	shapes, err := g.Repair()
	if err != nil {
		return nil, nil, err
	}
	if err := l.CheckOutputs(g, shapes, in.Outputs); err != nil {
		return nil, nil, err
	}
	if why := cmp.Or(native.PlanLimits(g, shapes), native.Refuses(g, shapes)); why != "" {
		return nil, nil, graph.Unsupported("", "%s", why)
	}
	for v := range g.Values { // repairs of a payload may have changed what its exporter declared
		g.Values[v].Shape = shapes[v]
	}
	varies := make([]bool, len(in.Inputs))
	for k, v := range in.Inputs {
		varies[k] = in.Values[v].Dynamism != tensor.Static
	}
	constants, err := g.Common(varies)
	return g, constants, graph.InPayload(err)
}
