package graph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// orderedGraph computes x·c + y and its transpose from two inputs, with results that depend on the place of each element.
func orderedGraph(sizes []int) *graph.Graph {
	m := graphtest.NewMaker(5)
	x, y := m.Input(graph.FP32, sizes...), m.Input(graph.FP32, sizes...)
	c, product, sum := m.Constant(graph.FP32, 0, sizes...), m.Value(graph.FP32, sizes...), m.Value(graph.FP32, sizes...)
	m.Node("Multiply", []int{x, c}, []int{product})
	m.Node("Add", []int{product, y}, []int{sum})
	perm := make([]int, len(sizes))
	for i := range perm {
		perm[i] = (i + 1) % len(sizes)
	}
	return m.Done(sum, m.TransposedLike(sum, perm))
}

// permutations returns all orders of n dimensions.
func permutations(n int) (list [][]uint8) {
	if n == 0 {
		return [][]uint8{nil}
	}
	for _, p := range permutations(n - 1) {
		for at := range n {
			list = append(list, slices.Insert(slices.Clone(p), at, uint8(n-1)))
		}
	}
	return list
}

// inLogicalOrder returns the offset in memory of each element of a tensor.
func inLogicalOrder(t *tensor.Tensor) (at []int) {
	stride := make([]int, t.Rank())
	for step, j := 1, t.Rank()-1; j >= 0; j-- {
		stride[t.DimOrder[j]] = step
		step *= t.Sizes[t.DimOrder[j]]
	}
	at = []int{0}
	for d, n := range t.Sizes {
		var next []int
		for _, from := range at {
			for i := range n {
				next = append(next, from+i*stride[d])
			}
		}
		at = next
	}
	return at
}

// ordered runs a payload whose arguments have these dim orders. It returns the outputs in logical order, and the graph.
func ordered(t *testing.T, data []byte, specs []*delegate.ArgSpec) (out [][]float32, g *graph.Graph) {
	t.Helper()
	g, err := graph.ReadPayload(&delegate.Payload{Data: data, Args: specs}, true)
	if err != nil {
		t.Fatal(err)
	}
	shapes, err := g.Repair()
	if err != nil {
		t.Fatal(err)
	}
	var args []*tensor.Value
	for i, a := range specs {
		x := tensor.Make(tensor.Float32, a.Sizes, a.DimOrder, tensor.Static)
		x.Bind(tensor.AlignedBytes(x.NBytes()))
		for k, at := range inLogicalOrder(x) {
			if i < 2 {
				tensor.View[float32](x.Data)[at] = float32(k*(i+1)%97) / 16
			}
		}
		args = append(args, new(tensor.TensorValue(x)))
	}
	if err := runGraph(t, g, shapes, args); err != nil {
		t.Fatal(err)
	}
	for _, a := range args[2:] {
		var list []float32
		for _, at := range inLogicalOrder(a.Tensor) {
			list = append(list, tensor.View[float32](a.Tensor.Data)[at])
		}
		out = append(out, list)
	}
	return out, g
}

// Arguments of every order are read and written in it, at load and as the repaired payload is written, which is not repaired again.
func TestArgumentOrders(t *testing.T) {
	repaired := 0
	for _, sizes := range [][]int{{5, 7}, {4, 4}, {2, 3, 5}, {3, 3, 3}, {2, 1, 5}, {1, 3, 3}, {2, 3, 4, 5}, {3, 3, 3, 3}, {2, 3, 1, 3}} {
		g := orderedGraph(sizes)
		want, _ := ordered(t, graphtest.Encode(g), specsOf(g))
		for k, order := range permutations(len(sizes)) {
			for arg := range 3 { // an input, an output, or all with several orders
				specs := specsOf(g)
				list := permutations(len(sizes))
				switch arg {
				case 0:
					specs[0].DimOrder = order
				case 1:
					specs[2].DimOrder = order
				default:
					for i := range specs {
						specs[i].DimOrder = list[(k+i*5)%len(list)]
					}
				}
				if slices.ContainsFunc(specs, isChannelsLast) {
					continue // the payload then has the sizes in that order
				}
				name := fmt.Sprintf("sizes %v, order %v, %d", sizes, order, arg)
				got, made := ordered(t, graphtest.Encode(g), specs)
				if !slices.EqualFunc(got, want, slices.Equal) {
					t.Fatalf("%s: got %v, want %v (%v)", name, got, want, made.Repaired)
				}
				if len(made.Repaired) == 0 {
					continue
				}
				if !strings.Contains(made.Repaired[0], "dim order") {
					t.Fatalf("%s: repairs %q", name, made.Repaired)
				}
				repaired++
				again, next := ordered(t, made.Payload(0), specs)
				if !slices.EqualFunc(again, want, slices.Equal) || len(next.Repaired) > 0 {
					t.Fatalf("%s: the repaired payload has repairs %q, got %v, want %v", name, next.Repaired, again, want)
				}
			}
		}
	}
	if repaired < 150 {
		t.Errorf("%d payloads were repaired, want more", repaired)
	}
}

// isChannelsLast reports whether an argument of four dimensions is in channels last order, which payloads know.
func isChannelsLast(a *delegate.ArgSpec) bool {
	order := slices.DeleteFunc(slices.Clone(a.DimOrder), func(d uint8) bool { return a.Sizes[d] == 1 })
	last := slices.DeleteFunc([]uint8{0, 2, 3, 1}, func(d uint8) bool { return len(a.Sizes) != 4 || a.Sizes[d] == 1 })
	return len(a.Sizes) == 4 && slices.Equal(order, last) && !slices.IsSorted(order)
}

// A payload that already has the sizes in memory order, and one that is to run as written, are unchanged.
func TestArgumentOrdersKept(t *testing.T) {
	g := orderedGraph([]int{2, 3, 5})
	specs := specsOf(g)
	for _, a := range specs {
		a.Sizes, a.DimOrder = []int{a.Sizes[1], a.Sizes[0], a.Sizes[2]}, []uint8{1, 0, 2}
	}
	if _, made := ordered(t, graphtest.Encode(g), specs); len(made.Repaired) > 0 {
		t.Errorf("sizes in memory order: repairs %q", made.Repaired)
	}
	g = orderedGraph([]int{3, 3, 3})
	specs = specsOf(g)
	specs[0].DimOrder = []uint8{2, 0, 1}
	_, repairs, err := runPayload(t, &delegate.Payload{Data: graphtest.Encode(g), Args: specs, AsWritten: true})
	if err != nil || len(repairs) > 0 {
		t.Errorf("as written: %v, repairs %q", err, repairs)
	}
}
