package goengine

import (
	"cmp"
	"reflect"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/hal/cpu"
)

// TestReferenceNeeds runs units of the Go engine and adds up the memory that they refer to: it is at
// most the estimate, and all estimates together are not much larger.
func TestReferenceNeeds(t *testing.T) {
	const smallNode = 2 << 10 // structures of a node and its values, which are not estimated
	pool := cpu.NewPool(2)
	defer pool.Close()
	held, estimated := int64(0), int64(0)
	for _, s := range graphtest.Samples(1) {
		m, err := compile(t, s.Graph, nil)
		if err != nil {
			continue
		}
		e := newUnit(m, delegate.Instance{Pool: pool})
		mustExecute(t, e, graphtest.NewMaker(1).Arguments(m.Graph))
		got, need := ownedBytes(e), needsOf(e.Graph, e.placement, pool.Size())
		if want := need.Scratch + need.Weights; got > want+int64(smallNode*(1+len(m.Graph.Nodes))) {
			t.Errorf("%s: the unit holds %d bytes, estimated %d of scratch and %d of packed weights", s.Name, got, need.Scratch, need.Weights)
		}
		held, estimated = held+got, estimated+need.Scratch+need.Weights
	}
	t.Logf("held %d bytes, estimated %d", held, estimated)
	if 2*estimated > 3*held {
		t.Errorf("the units hold %d bytes, estimated %d: want at most half as many again", held, estimated)
	}
}

// memoryRange is a range of addresses.
type memoryRange struct{ from, to uintptr }

// ownedBytes returns the size of the memory that a unit refers to, except its arguments and the
// constants of the graph.
func ownedBytes(e *unit) (n int64) {
	w := walker{seen: make(map[uintptr]bool)}
	own := reflect.ValueOf(e).Elem()
	for i := range own.NumField() {
		if own.Type().Field(i).Name != "args" {
			w.walk(own.Field(i))
		}
	}
	var not walker
	for v, b := range e.Data {
		if e.Graph.Values[v].IsConst() || e.Graph.Values[v].Arg != graph.None {
			not.add(reflect.ValueOf(b))
		}
	}
	at := uintptr(0)
	slices.SortFunc(w.ranges, func(a, b memoryRange) int { return cmp.Compare(a.from, b.from) })
	for _, r := range w.ranges {
		if slices.ContainsFunc(not.ranges, func(x memoryRange) bool { return r.from >= x.from && r.from < x.to }) {
			continue
		}
		if r.to > at {
			n += int64(r.to - max(r.from, at))
			at = r.to
		}
	}
	return n
}

// walker collects the memory of slices that a value refers to.
type walker struct {
	seen   map[uintptr]bool
	ranges []memoryRange
}

func (w *walker) add(v reflect.Value) {
	if size := uintptr(v.Cap()) * v.Type().Elem().Size(); size > 0 {
		w.ranges = append(w.ranges, memoryRange{v.Pointer(), v.Pointer() + size})
	}
}

func (w *walker) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.Slice:
		w.add(v)
		for i := range v.Len() {
			if hasPointers(v.Type().Elem()) {
				w.walk(v.Index(i))
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			if hasPointers(v.Type().Elem()) {
				w.walk(v.Index(i))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			w.walk(v.Field(i))
		}
	case reflect.Interface:
		if !v.IsNil() {
			w.walk(v.Elem())
		}
	case reflect.Pointer:
		if v.IsNil() || w.seen[v.Pointer()] || slices.Contains(notOwned, v.Type()) {
			return
		}
		w.seen[v.Pointer()] = true
		w.walk(v.Elem())
	}
}

// notOwned are the types that belong to the graph or to the system.
var notOwned = []reflect.Type{reflect.TypeFor[*graph.Graph](), reflect.TypeFor[*graph.Node](), reflect.TypeFor[*graph.Window](), reflect.TypeFor[*cpu.Pool](),
	reflect.TypeFor[*cpu.Mapping](), reflect.TypeFor[*placement]()}

func hasPointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice, reflect.Struct, reflect.Interface, reflect.Pointer, reflect.Array:
		return true
	}
	return false
}
