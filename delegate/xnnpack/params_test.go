package xnnpack

import (
	"reflect"
	"slices"
)

// dimLists are the lists of sizes among a node's parameters, to be encoded or changed.
func (n *node) dimLists() []*[]int {
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

// setScalar sets the one number among a node's parameters, where it has one.
func (n *node) setScalar(x float32) {
	switch p := n.Params.(type) {
	case *scalarParams:
		p.value = x
	case *padParams:
		p.value = x
	}
}

// resetParams gives a node whose type has changed parameters of that type.
func (t *nodeType) resetParams(n *node) {
	n.Params = nil
	t.setParams(n)
}

// cloneParams is a copy that shares nothing.
func cloneParams(old any) any {
	if old == nil {
		return nil
	}
	fresh := reflect.New(reflect.TypeOf(old).Elem())
	fresh.Elem().Set(reflect.ValueOf(old).Elem())
	n := node{Params: fresh.Interface()}
	for _, list := range n.dimLists() {
		*list = slices.Clone(*list)
	}
	return n.Params
}
