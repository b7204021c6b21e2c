package xnnpack

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/advice"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// image is a compiled payload.
type image struct {
	*graph.Compilation
	by        graph.Engine // runs the graph
	cost      float64
	whyGo     string                 // the rule that chose the Go engine; "" for none
	notNative string                 // why the native engine is not used; "" if it was not requested
	noLibrary *xnn.OpenError         // set if the reason is a missing library
	failure   atomic.Pointer[string] // of the library, after which the Go engine runs calls; nil for none
	cacheNote string                 // state of the weights file, if one is requested
	calls     int                    // the number of arguments of a call; observed values follow them
	repaired  *graph.Graph           // the graph before fusion, if exporter faults were repaired
}

// Unit creates an instance.
func (m *image) Unit(in delegate.Instance) (delegate.Unit, error) {
	u, err := m.by.Unit(in)
	if err != nil || !m.Shown {
		return u, err
	}
	return newViewed(m, u), nil
}

// fail stores an error of the library for Warnings.
func (m *image) fail(err error) {
	text := err.Error()
	m.failure.CompareAndSwap(nil, &text)
}

// Close frees the packed constants.
func (m *image) Close() error {
	m.by.Close()
	return nil
}

// Needs returns the requirements at the declared sizes.
func (m *image) Needs() delegate.Needs {
	n := m.by.Needs()
	return delegate.Needs{Inputs: m.Graph.Inputs, Scratch: n.Scratch, Shared: n.Shared, Profiling: n.Timed, PackedBytes: n.Weights}
}

// constantBytes returns the size of the constants that nodes use.
func constantBytes(g *graph.Graph) (n int64) {
	used := graph.UsedValues(g)
	for v := range g.Values {
		if x := &g.Values[v]; used[v] && x.IsConst() && !x.Lent {
			n += int64(len(x.Data) + 4*len(x.Quant.Scales) + 2*len(x.Quant.Blocks))
		}
	}
	return n
}

// withoutLibrary says what a missing library means, and how to install it.
func withoutLibrary(err *xnn.OpenError) string {
	reason := err.Error()
	if err.Reason == xnn.ErrAbsent { // the places that were searched are in Probe
		reason = err.Reason.Error()
	}
	if !xnn.DynamicLoading {
		return fmt.Sprintf("%s: %s; builds for Linux on amd64 and arm64 without the tag nodl can open it", reason, advice.GoEngine)
	}
	return fmt.Sprintf("%s: %s; %v", reason, advice.GoEngine, advice.Library)
}

// Warnings reports a missing library, an unused folder for weights, and repairs of the payload.
func (m *image) Warnings() (list []delegate.Warning) {
	if n := len(m.Graph.Repaired); n > 0 {
		list = append(list, delegate.Warning{Class: delegate.WarnRepair,
			Text: fmt.Sprintf("%s: %d faults of the exporter were repaired, the first: %s", ID, n, m.Graph.Repaired[0])})
	}
	if m.noLibrary != nil {
		list = append(list, delegate.Warning{Class: delegate.WarnEngine,
			Text: ID + ": " + withoutLibrary(m.noLibrary)})
	}
	if why := m.failure.Load(); why != nil {
		list = append(list, delegate.Warning{Class: delegate.WarnEngine,
			Text: fmt.Sprintf("%s: libXNNPACK failed, the engine in Go runs instead, or fewer threads: %s", ID, *why)})
	}
	if why, unused := strings.CutPrefix(m.cacheNote, graph.NotKept); unused {
		list = append(list, delegate.Warning{Class: delegate.WarnCache, Text: ID + ": packed weights are not kept: " + why})
	}
	return list
}

// Brief is Info without facts, operands and nodes, see [lowering.Brief].
func (m *image) Brief() delegate.Info {
	return delegate.Info{Engine: m.by.Name(), Needs: m.Needs(), WeightBytes: constantBytes(m.Graph), Repairs: m.Graph.Repaired}
}

// Info lists the nodes with the shapes of their outputs at the declared sizes.
func (m *image) Info() delegate.Info {
	info := m.Brief()
	if m.repaired != nil && m.Release == nil { // otherwise constants may have been released
		info.Repaired = m.repaired.Payload(0)
	}
	facts := slices.Concat([][2]string{{"schema", m.Graph.Version}, {"MACs", fmt.Sprintf("%.0f", m.cost)}, {"in Go", m.whyGo},
		{"not native", m.notNative}}, m.by.Facts(), [][2]string{{"weights file", m.cacheNote}})
	info.Facts = slices.DeleteFunc(facts, func(f [2]string) bool { return f[1] == "" })
	for v := range m.Graph.Values {
		x := &m.Graph.Values[v]
		info.Operands = append(info.Operands, delegate.Operand{Type: m.typeOf(v), Bytes: int64(x.Datatype.Bytes(m.Shapes[v])),
			Arg: x.Arg, Constant: x.IsConst(), Elements: x.Elements})
	}
	for i := range m.Graph.Nodes {
		info.Nodes = append(info.Nodes, m.describeNode(&m.Graph.Nodes[i]))
		cpu.Forget()
	}
	return info
}

// describeNode formats a node's values: "fp32 1x5x5x3, fp32 4x3x3x3 → fp32 1x3x3x4".
func (m *image) describeNode(n *graph.Node) delegate.Node {
	var sides [2]string
	var constants []*tensor.Tensor
	for i, list := range [2][]int{n.In, n.Out} {
		var values []string
		for _, v := range list {
			if v == graph.None {
				continue
			}
			values = append(values, m.typeOf(v))
			if x := &m.Graph.Values[v]; x.IsConst() && m.Release == nil {
				constants = append(constants, constantTensor(x).Tensor)
			}
		}
		sides[i] = strings.Join(values, ", ")
	}
	return delegate.Node{Name: n.Type.Name, Detail: sides[0] + " → " + sides[1], Attributes: m.Graph.Attributes(n), Constants: constants,
		Reads: present(n.In), Writes: present(n.Out), DebugHandle: n.DebugHandle}
}

// present returns a copy of a list of values without absent ones.
func present(list []int) []int {
	return slices.DeleteFunc(slices.Clone(list), func(v int) bool { return v == graph.None })
}

// typeOf formats a value's element type and sizes.
func (m *image) typeOf(v int) string {
	sizes := strings.ReplaceAll(strings.Trim(m.Shapes[v].String(), "[]"), " ", "x")
	return m.Graph.Values[v].Datatype.String() + " " + cmp.Or(sizes, "scalar")
}

// releaseCopied releases the constants of a region's calls that the image does not read, because it
// has its own copy of them.
func (m *image) releaseCopied(g *lowering.Graph) {
	read := m.Graph.ConstantsRead(m.Graph.Readers())
	if g.Release == nil || len(read) > graph.MaxReleaseConstants || len(g.Values) > 16*graph.MaxReleaseConstants {
		return
	}
	for i := range g.Values {
		v := &g.Values[i]
		if v.Kind == tensor.KindTensor && len(v.Data) >= graph.ReleaseBytes &&
			!slices.ContainsFunc(read, func(b []byte) bool { return cpu.Overlap(b, v.Data) }) {
			g.Release(v.Data)
		}
	}
}

func newViewed(m *image, u delegate.Unit) *viewed {
	w := &viewed{Unit: u, Profiler: u.(delegate.Profiler), graph: m.Graph}
	for _, v := range m.Graph.Args[m.calls:] {
		t := tensor.Make(m.Graph.Values[v].Datatype.Info().Tensor, m.Shapes[v].Dims(), nil, tensor.DynamicUnbound)
		t.Bind(tensor.AlignedBytes(t.NBytes()))
		value := tensor.TensorValue(t)
		w.shown = append(w.shown, &value)
	}
	return w
}

// Workspace implements lowering.Planned: in the Go engine, nodes are moments, each intermediate value
// has a block, and each part of the working memory of the nodes. Values that are shown are read
// after the call.
func (m *image) Workspace() *lowering.Workspace {
	if own, ok := m.by.(*goengine.Image); ok {
		return own.Workspace()
	}
	return nil
}

// Rows implements [lowering.RowWise].
func (m *image) Rows(n int, args []*tensor.Tensor, dims []int) (outputs []int, err error) {
	if m.Shown {
		return nil, errors.New("its values are observed")
	}
	return m.Graph.Rows(n, graph.NewArguments(m.Graph, m.Shapes, m.Args), args, dims)
}
