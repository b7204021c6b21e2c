package xnnpack

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// dimLists returns the lists of sizes in a node's parameters.
func dimLists(n *graph.Node) []*[]int {
	switch p := n.Params.(type) {
	case *graph.TransposeParams:
		return []*[]int{&p.Perm}
	case *graph.ReshapeParams:
		return []*[]int{&p.Sizes}
	case *graph.SliceParams:
		return []*[]int{&p.Offsets, &p.Sizes}
	case *graph.PadParams:
		return []*[]int{&p.Before, &p.After}
	}
	return nil
}

// resetParams sets the default parameters of type t after a change of the node's type.
func resetParams(t *graph.NodeType, n *graph.Node) {
	n.Params = nil
	t.SetParams(n)
}

// cloneParams returns a deep copy of a node's parameters.
func cloneParams(old any) any {
	if old == nil {
		return nil
	}
	fresh := reflect.New(reflect.TypeOf(old).Elem())
	fresh.Elem().Set(reflect.ValueOf(old).Elem())
	n := graph.Node{Params: fresh.Interface()}
	for _, list := range dimLists(&n) {
		*list = slices.Clone(*list)
	}
	return n.Params
}

// cloneGraph returns a copy of a graph that shares only the bytes of constants.
func cloneGraph(g *graph.Graph) *graph.Graph {
	c := *g
	c.Args = slices.Clone(g.Args)
	c.Values = slices.Clone(g.Values)
	for v := range c.Values {
		q := &c.Values[v].Quant
		q.Scales, q.Blocks = slices.Clone(q.Scales), slices.Clone(q.Blocks)
	}
	c.Nodes = slices.Clone(g.Nodes)
	for i := range c.Nodes {
		n := &c.Nodes[i]
		n.In, n.Out, n.Params = slices.Clone(n.In), slices.Clone(n.Out), cloneParams(n.Params)
	}
	return &c
}

// encodeNamed is encode with the constants in named instead of in the payload, unless named is nil.
func encodeNamed(g *graph.Graph, named map[string][]byte) []byte {
	if named == nil {
		return graphtest.Encode(g)
	}
	with := *g
	with.Values = append([]graph.Value{}, g.Values...)
	for v := range with.Values {
		if x := &with.Values[v]; x.IsConst() {
			key := constantKey(len(named) + 1)
			named[key] = x.Data
			x.Found = &graph.FoundData{Key: key, Data: x.Data}
		}
	}
	return graphtest.Encode(&with)
}

// constantKey is the name of a payload's i-th constant among named data.
func constantKey(i int) string { return fmt.Sprint("constant ", i) }
