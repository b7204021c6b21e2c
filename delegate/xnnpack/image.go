package xnnpack

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/advice"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// image is a compiled payload.
type image struct {
	*compilation
	by        engine // runs the graph
	cost      float64
	inGo      bool                   // the library does not pay off for the method's graphs, see survey
	estimates estimates              // used to choose the engine; zero if the choice did not need them
	notNative string                 // why the native engine is not used; "" if it was not requested
	noLibrary *xnn.OpenError         // set if the reason is a missing library
	failure   atomic.Pointer[string] // of the library, after which the Go engine runs calls; nil for none
	cacheNote string                 // state of the weights file, if one is requested
	calls     int                    // the number of arguments of a call; observed values follow them
	repaired  *graph                 // the graph before fusion, if exporter faults were repaired
}

// Unit creates an instance.
func (m *image) Unit(in delegate.Instance) (delegate.Unit, error) {
	u, err := m.by.unit(in)
	if err != nil {
		return nil, err
	}
	if m.shown {
		return newViewed(m, u), nil
	}
	return u, nil
}

// fail stores an error of the library for Warnings.
func (m *image) fail(err error) {
	text := err.Error()
	m.failure.CompareAndSwap(nil, &text)
}

// Close frees the packed constants.
func (m *image) Close() error {
	m.by.close()
	return nil
}

// Needs returns the requirements at the declared sizes.
func (m *image) Needs() delegate.Needs {
	n := m.by.needs()
	return delegate.Needs{Inputs: m.graph.Inputs, Scratch: n.scratch, Shared: n.shared, Profiling: n.timed, PackedBytes: n.weights}
}

// constantBytes returns the size of the constants that nodes use.
func constantBytes(g *graph) (n int64) {
	used := usedValues(g)
	for v := range g.Values {
		if x := &g.Values[v]; used[v] && x.isConst() {
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
	if n := len(m.graph.repaired); n > 0 {
		list = append(list, delegate.Warning{Class: delegate.WarnRepair,
			Text: fmt.Sprintf("%s: %d faults of the exporter were repaired, the first: %s", ID, n, m.graph.repaired[0])})
	}
	if m.noLibrary != nil {
		list = append(list, delegate.Warning{Class: delegate.WarnEngine,
			Text: ID + ": " + withoutLibrary(m.noLibrary)})
	}
	if why := m.failure.Load(); why != nil {
		list = append(list, delegate.Warning{Class: delegate.WarnEngine,
			Text: fmt.Sprintf("%s: libXNNPACK failed, the engine in Go runs instead, or fewer threads: %s", ID, *why)})
	}
	if why, unused := strings.CutPrefix(m.cacheNote, notKept); unused {
		list = append(list, delegate.Warning{Class: delegate.WarnCache, Text: ID + ": packed weights are not kept: " + why})
	}
	return list
}

// Info lists the nodes with the shapes of their outputs at the declared sizes.
func (m *image) Info() delegate.Info {
	info := delegate.Info{Engine: m.by.name(), Needs: m.Needs(), WeightBytes: constantBytes(m.graph), Repairs: m.graph.repaired}
	if m.repaired != nil && m.release == nil { // otherwise constants may have been released
		info.Repaired = m.repaired.payload(0)
	}
	info.Facts = append(info.Facts, [2]string{"schema", m.graph.Version}, [2]string{"MACs", fmt.Sprintf("%.0f", m.cost)})
	if m.estimates != (estimates{}) {
		info.Facts = append(info.Facts, [2]string{"estimated", m.estimates.String()})
	}
	if m.notNative != "" {
		info.Facts = append(info.Facts, [2]string{"not native", m.notNative})
	}
	info.Facts = append(info.Facts, m.by.facts()...)
	if m.cacheNote != "" {
		info.Facts = append(info.Facts, [2]string{"weights file", m.cacheNote})
	}
	for i := range m.graph.Nodes {
		info.Nodes = append(info.Nodes, m.describeNode(&m.graph.Nodes[i]))
	}
	return info
}

// describeNode formats a node's values: "fp32 1x5x5x3, fp32 4x3x3x3 → fp32 1x3x3x4".
func (m *image) describeNode(n *node) delegate.Node {
	var sides [2]string
	var constants []*tensor.Tensor
	for i, list := range [2][]int{n.In, n.Out} {
		var values []string
		for _, v := range list {
			if v == none {
				continue
			}
			x := &m.graph.Values[v]
			sizes := strings.ReplaceAll(strings.Trim(m.shapes[v].String(), "[]"), " ", "x")
			values = append(values, x.Datatype.String()+" "+cmp.Or(sizes, "scalar"))
			if x.isConst() && m.release == nil {
				constants = append(constants, constantTensor(x).Tensor)
			}
		}
		sides[i] = strings.Join(values, ", ")
	}
	return delegate.Node{Name: n.Type.name, Detail: sides[0] + " → " + sides[1], Constants: constants}
}

// releaseUnread releases the constants of a region's calls that the image does not read, because it
// has its own copy of them.
func (m *image) releaseUnread(g *delegate.Graph) {
	read := m.graph.constantsRead(m.graph.readers())
	if g.Release == nil || len(read) > maxReleaseConstants || len(g.Values) > 16*maxReleaseConstants {
		return
	}
	for i := range g.Values {
		v := &g.Values[i]
		if v.Kind == tensor.KindTensor && len(v.Data) >= releaseBytes &&
			!slices.ContainsFunc(read, func(b []byte) bool { return cpu.Overlap(b, v.Data) }) {
			g.Release(v.Data)
		}
	}
}
