package graphtest

import (
	"reflect"
	"slices"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// DimLists returns the lists of sizes in a node's parameters.
func DimLists(n *graph.Node) []*[]int {
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

// SetScalar sets the number in a node's parameters, if there is one.
func SetScalar(n *graph.Node, x float32) {
	switch p := n.Params.(type) {
	case *graph.ScalarParams:
		p.Value = x
	case *graph.PadParams:
		p.Value = x
	}
}

// ResetParams sets the default parameters of type t after a change of the node's type.
func ResetParams(t *graph.NodeType, n *graph.Node) {
	n.Params = nil
	t.SetParams(n)
}

// CloneParams returns a deep copy of a node's parameters.
func CloneParams(old any) any {
	if old == nil {
		return nil
	}
	fresh := reflect.New(reflect.TypeOf(old).Elem())
	fresh.Elem().Set(reflect.ValueOf(old).Elem())
	n := graph.Node{Params: fresh.Interface()}
	for _, list := range DimLists(&n) {
		*list = slices.Clone(*list)
	}
	return n.Params
}
