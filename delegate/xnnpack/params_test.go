package xnnpack

import (
	"reflect"
	"slices"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
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

// setScalar sets the number in a node's parameters, if there is one.
func setScalar(n *graph.Node, x float32) {
	switch p := n.Params.(type) {
	case *graph.ScalarParams:
		p.Value = x
	case *graph.PadParams:
		p.Value = x
	}
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
