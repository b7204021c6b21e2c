package delegatetest

import (
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// check returns an error if a graph violates the rules of [lowering.Graph].
func check(g *lowering.Graph) error {
	known := make([]bool, len(g.Values))
	for v := range g.Values {
		known[v] = g.Values[v].Kind != tensor.KindTensor || g.Values[v].IsConst()
	}
	for i, v := range g.Inputs {
		if known[v] {
			return fmt.Errorf("input %d, value %d: not a tensor, a constant, or a duplicate", i, v)
		}
		known[v] = true
	}
	for i := range g.Calls {
		if err := checkCall(g, i, known); err != nil {
			return fmt.Errorf("call %d (%s, %s): %w", i, nameOf(&g.Calls[i]), g.Calls[i].Place, err)
		}
	}
	for i, v := range g.Outputs {
		if !known[v] || g.Writer(v) < 0 || slices.Contains(g.Outputs[:i], v) {
			return fmt.Errorf("output %d, value %d: not written by a call, or a duplicate", i, v)
		}
	}
	return nil
}

// checkCall checks that every value a call reads is known, and marks those it writes as known.
func checkCall(g *lowering.Graph, i int, known []bool) error {
	c := &g.Calls[i]
	if want := 2; c.View && len(c.Args) != want || !c.View && len(c.Args) != c.Sig.Slots() {
		return fmt.Errorf("%d arguments", len(c.Args))
	}
	for _, v := range g.Reads(nil, i) {
		if !known[v] {
			return fmt.Errorf("reads value %d before it is written", v)
		}
	}
	for _, v := range g.Writes(nil, i) {
		if known[v] {
			return fmt.Errorf("writes value %d a second time", v)
		}
		known[v] = true
	}
	if !c.View {
		return nil
	}
	from, to := &g.Values[c.Args[0]], &g.Values[c.Args[1]]
	if from.Dynamism != tensor.Static || to.Dynamism != tensor.Static || from.DType != to.DType || from.NBytes() != to.NBytes() {
		return fmt.Errorf("a view of %v %v as %v %v", from.DType, from.Sizes, to.DType, to.Sizes)
	}
	return nil
}
