package xnnpack

import (
	"reflect"
	"slices"
)

// dimLists returns the lists of sizes in a node's parameters.
func dimLists(n *node) []*[]int {
	switch p := n.Params.(type) {
	case *transposeParams:
		return []*[]int{&p.perm}
	case *reshapeParams:
		return []*[]int{&p.sizes}
	case *sliceParams:
		return []*[]int{&p.offsets, &p.sizes}
	case *padParams:
		return []*[]int{&p.before, &p.after}
	}
	return nil
}

// setScalar sets the number in a node's parameters, if there is one.
func setScalar(n *node, x float32) {
	switch p := n.Params.(type) {
	case *scalarParams:
		p.value = x
	case *padParams:
		p.value = x
	}
}

// resetParams sets the default parameters of type t after a change of the node's type.
func resetParams(t *nodeType, n *node) {
	n.Params = nil
	t.setParams(n)
}

// cloneParams returns a deep copy of a node's parameters.
func cloneParams(old any) any {
	if old == nil {
		return nil
	}
	fresh := reflect.New(reflect.TypeOf(old).Elem())
	fresh.Elem().Set(reflect.ValueOf(old).Elem())
	n := node{Params: fresh.Interface()}
	for _, list := range dimLists(&n) {
		*list = slices.Clone(*list)
	}
	return n.Params
}
