package xnnpack

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/etrun-go/etrun/delegate"
	regions "github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/native"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Writer writes graphs as payloads for files. It accepts what all runtimes of ExecuTorch from a release on execute, by default from
// 1.0 on.
type Writer struct {
	Backend
	Target Target
}

var (
	_ regions.Writer   = Writer{}
	_ regions.Selector = Writer{}
)

// noDims is why a call with a result without dimensions stays: in a payload it has one of size 1, and the runtimes do not return
// it as a tensor of none.
const noDims = "a result without dimensions"

// lacksDims reports whether one of some tensors has no dimensions.
func lacksDims(g *regions.Graph, values []int) bool {
	return slices.ContainsFunc(values, func(v int) bool { return len(g.Values[v].Sizes) == 0 })
}

// Accepts implements lowering.Compiler.
func (w Writer) Accepts(g *regions.Graph, i int) string {
	if lacksDims(g, g.Writes(nil, i)) {
		return noDims
	}
	return lowering.Reject(g, i, native.Refuses, func(x *graph.Graph) string {
		if _, err := x.Common(int(w.Target)); err != nil {
			return lowering.ReasonOf(graph.InPayload(err))
		}
		return ""
	})
}

// Measure implements lowering.Compiler.
func (w Writer) Measure(g *regions.Graph) (regions.Work, error) {
	work, err := w.Backend.Measure(g)
	if err != nil {
		return work, err
	}
	l := lowerFor(g, true)
	defer l.Recycle()
	_, _, err = w.commonGraph(l, g)
	return work, err
}

// Write implements lowering.Writer.
func (w Writer) Write(g *regions.Graph) (*regions.Written, error) {
	x, constants, err := w.commonGraph(lowerFor(g, false), g)
	if err != nil {
		return nil, err
	}
	return written(x, constants), nil
}

// written returns a graph of the common language as a payload.
func written(x *graph.Graph, constants []graph.Value) *regions.Written {
	keys := weightKeys(x)
	for v := range keys {
		if x.Values[v].IsNamed() { // constants of merged payloads remain what they were
			keys[v] = ""
		}
	}
	out := &regions.Written{Encode: func(named func(string) bool) [][]byte {
		for v, key := range keys {
			if key != "" && named(key) {
				x.Values[v].Found = &graph.FoundData{Key: key, Data: x.Values[v].Data}
			}
		}
		return x.Pieces(0)
	}}
	for v, key := range keys {
		if key != "" {
			out.Weights = append(out.Weights, regions.Weight{Key: key, Data: x.Values[v].Data})
		}
	}
	for i := range constants {
		c := &constants[i]
		out.Constants = append(out.Constants, regions.GraphValue{Kind: tensor.KindTensor, DType: c.Tensor(), Sizes: c.Shape.Dims(), Data: c.Data})
	}
	return out
}

// commonGraph lowers a graph to one for payloads, with the constants that are its last inputs.
func (w Writer) commonGraph(l *lowering.Lowering, in *regions.Graph) (*graph.Graph, []graph.Value, error) {
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
	if lacksDims(in, in.Outputs) {
		return nil, nil, graph.Unsupported("", noDims)
	}
	if why := cmp.Or(native.PlanLimits(g, shapes), native.Refuses(g, shapes)); why != "" {
		return nil, nil, graph.Unsupported("", "%s", why)
	}
	for v := range g.Values { // repairs of a payload may have changed what its exporter declared
		g.Values[v].Shape = shapes[v]
	}
	constants, err := g.Common(int(w.Target))
	return g, constants, graph.InPayload(err)
}

// weightKeys returns a key for each filter and bias, by value. It depends on all that the packed form depends on, as runtimes
// may keep that under the key: the node, the scales, and the quantization of the input.
func weightKeys(g *graph.Graph) []string {
	keys := make([]string, len(g.Values))
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if !n.Type.Weighted() {
			continue
		}
		filter := ""
		for k, v := range n.In[1:] {
			if v == graph.None || !g.Values[v].IsConst() {
				continue
			}
			x, in := &g.Values[v], &g.Values[n.In[0]]
			h := sha256.New()
			fmt.Fprintln(h, keys[v], filter, k, n.Type.Tag, n.Flags, in.Datatype, in.Quant.Scale, in.Quant.ZeroPoint, x.Datatype, x.Shape,
				x.Quant.Scale, x.Quant.ZeroPoint, x.Quant.ChannelDim, x.Quant.GroupSize, x.Quant.Scales, x.Quant.Blocks)
			if w := n.Window(); w != nil {
				fmt.Fprintln(h, *w)
			}
			h.Write(x.Data)
			keys[v] = hex.EncodeToString(h.Sum(nil))
			filter = keys[v]
		}
	}
	return keys
}

// Target is the oldest release of ExecuTorch whose runtime executes what a [Writer] writes, as its minor version: 0 is 1.0.
// All later releases known to this package execute it, too.
type Target int

// ParseTarget parses a release, such as 1.0. The error of one that is not known is a *TargetError.
func ParseTarget(release string) (Target, error) {
	minor, ok := strings.CutPrefix(release, "1.")
	n, err := strconv.ParseUint(minor, 10, 8)
	if t := Target(n); ok && err == nil && n <= graph.LastRelease && t.String() == release {
		return t, nil
	}
	return 0, &TargetError{release}
}

// String returns the release.
func (t Target) String() string { return graph.ReleaseName(int(t)) }

// TargetError reports a release that is not known. errors.Is finds [delegate.ErrUnsupported] in it.
type TargetError struct{ Release string }

func (e *TargetError) Error() string {
	return fmt.Sprintf("ExecuTorch %.20q, want a release from %s to %s", e.Release, graph.ReleaseName(0), graph.ReleaseName(graph.LastRelease))
}

// Unwrap returns delegate.ErrUnsupported.
func (e *TargetError) Unwrap() error { return delegate.ErrUnsupported }
