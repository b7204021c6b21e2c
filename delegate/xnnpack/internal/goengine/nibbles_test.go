package goengine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// fourBits describes products with 4-bit weights that read the same activations: rows of channels elements each.
type fourBits struct {
	rows, channels int
	filters        []fourBitFilter
}

// fourBitFilter is of a node that reads the activations in rows of k. group is 0 for one scale per column.
type fourBitFilter struct{ k, group, columns int }

func (f fourBits) graph(seed uint64) *graph.Graph {
	m := graphtest.NewMaker(seed)
	m.Lo, m.Hi = -1, 1
	x := m.Quantized(m.Input(graph.FP32, f.rows, f.channels), 1)
	var outputs []int
	for _, w := range f.filters {
		kind := graph.QBInt4
		if w.group == 0 {
			kind = graph.QCInt4
		}
		filter := m.Constant(kind, 0, w.columns, w.k)
		if w.group > 0 {
			regroup(m, filter, w.columns, w.k, w.group)
		}
		y := m.Value(graph.FP32, f.rows*f.channels/w.k, w.columns)
		m.Node("FullyConnected", []int{x, filter, m.Constant(graph.FP32, 0, w.columns)}, []int{y}, func(n *graph.Node) {
			if w.k != f.channels {
				n.Flags = graph.FlagReshape2D
			}
		})
		outputs = append(outputs, y)
	}
	return m.Done(outputs...)
}

var fourBitCases = []fourBits{
	{1, 64, []fourBitFilter{{64, 32, 48}, {64, 32, 17}, {64, 0, 16}, {64, 64, 1}}},
	{1, 37, []fourBitFilter{{37, 0, 130}, {37, 37, 65}}},
	{1, 512, []fourBitFilter{{512, 256, 257}, {512, 256, 31}}},
	{2, 30, []fourBitFilter{{30, 5, 33}, {30, 5, 15}, {30, 15, 16}, {30, 0, 1}}},
	{3, 512, []fourBitFilter{{512, 256, 33}, {512, 64, 33}, {512, 32, 100}}},
	{4, 96, []fourBitFilter{{96, 32, 300}}},
	{5, 52, []fourBitFilter{{52, 26, 64}, {52, 26, 79}, {52, 0, 80}}},
	{7, 64, []fourBitFilter{{64, 32, 161}, {64, 64, 3}}},
	{8, 320, []fourBitFilter{{320, 32, 128}, {320, 64, 144}, {320, 0, 16}}},
	{13, 8, []fourBitFilter{{8, 1, 20}, {8, 8, 20}, {8, 2, 20}}},
	{31, 33, []fourBitFilter{{33, 11, 50}, {33, 0, 50}}},
	{63, 64, []fourBitFilter{{64, 32, 70}}},
	{64, 40, []fourBitFilter{{40, 20, 1000}, {40, 40, 6}}},
	{65, 128, []fourBitFilter{{128, 128, 90}, {128, 32, 260}}},
	{70, 100, []fourBitFilter{{100, 0, 49}, {100, 25, 49}}},
	// the same elements in rows of other lengths
	{1, 128, []fourBitFilter{{128, 32, 32}, {64, 32, 32}, {32, 32, 32}}},
	{3, 128, []fourBitFilter{{64, 32, 20}, {128, 32, 20}, {64, 32, 24}}},
	{8, 60, []fourBitFilter{{60, 5, 30}, {15, 5, 30}}},
}

// TestFourBitProducts compares nodes that read the same activations with the plain loops, with one thread to four. A unit has the memory
// that it needs in its arena, and does not allocate once it has run.
func TestFourBitProducts(t *testing.T) {
	for threads := range 4 {
		pool := cpu.NewPool(threads + 1)
		defer pool.Close()
		for i, f := range fourBitCases {
			name := fmt.Sprintf("%d threads, %+v", threads+1, f)
			g := f.graph(uint64(i))
			if n := compareWithPlain(t, graphtest.Sample{Name: name, Graph: g}, pool); n != len(f.filters) {
				t.Errorf("%s: %d nodes have loops over bytes", name, n)
			}
			checkMemoryOf(t, name, g, pool)
		}
	}
}

// checkMemoryOf checks that a unit's first run does not need more than its arena, and another run nothing.
func checkMemoryOf(t *testing.T, name string, g *graph.Graph, pool *cpu.Pool) {
	t.Helper()
	e := mustUnit(t, g, delegate.Instance{Pool: pool})
	args := graphtest.NewMaker(1).Arguments(e.Graph)
	mustExecute(t, e, args)
	if !cpu.Overlap(e.Staged, e.arena.bytes) {
		t.Errorf("%s: %d bytes of packed activations are outside of the arena", name, len(e.Staged))
	}
	structures := int64(2<<10) * int64(1+len(e.Graph.Nodes)) // of nodes and their values, which are not estimated
	if got, need := ownedBytes(e), needsOf(e.Graph, e.placement, pool.Size()); got > need.Scratch+need.Weights+structures {
		t.Errorf("%s: the unit holds %d bytes, estimated %d of scratch and %d of packed weights", name, got, need.Scratch, need.Weights)
	}
	if !graphtest.RaceDetector {
		if n := testing.AllocsPerRun(5, func() { e.Execute(context.Background(), args) }); n != 0 {
			t.Errorf("%s: got %v allocations per run, want 0", name, n)
		}
	}
}

// TestFourBitRowsAlone compares products of several rows with those of each row alone, which are of the same bits: texts that decode
// together have the results that they have apart.
func TestFourBitRowsAlone(t *testing.T) {
	for i, f := range fourBitCases {
		if slices.ContainsFunc(f.filters, func(w fourBitFilter) bool { return w.k != f.channels }) {
			continue
		}
		one := f
		one.rows = 1
		all := mustUnit(t, f.graph(uint64(i)), delegate.Instance{})
		single := mustUnit(t, one.graph(uint64(i)), delegate.Instance{})
		args, row := graphtest.NewMaker(3).Arguments(all.Graph), graphtest.NewMaker(3).Arguments(single.Graph)
		mustExecute(t, all, args)
		for r := range f.rows {
			copy(row[0].Tensor.Data, args[0].Tensor.Data[4*r*f.channels:])
			mustExecute(t, single, row)
			for k, w := range f.filters {
				sameRow(t, fmt.Sprintf("%+v, filter %d, row %d", f, k, r), args[1+k].Tensor, row[1+k].Tensor, r*w.columns)
			}
		}
	}
}

// sameRow compares the bits of all elements of want with those of got from an element on.
func sameRow(t *testing.T, name string, got, want *tensor.Tensor, from int) {
	t.Helper()
	x, y := tensor.View[uint32](got.Data)[from:], tensor.View[uint32](want.Data)
	for j := range y {
		if x[j] != y[j] {
			t.Fatalf("%s: column %d: got %#x, want %#x", name, j, x[j], y[j])
		}
	}
}

// stopsAfter is a context that ends after a number of checks.
type stopsAfter struct {
	context.Context
	checks int
}

func (c *stopsAfter) Err() error {
	if c.checks--; c.checks < 0 {
		return context.Canceled
	}
	return nil
}

// TestFourBitInterrupted runs units that share an arena, one after the other, each stopped before every node. A complete run, timed or
// not, has the results of a unit alone: no rows are left from another run.
func TestFourBitInterrupted(t *testing.T) {
	scratch := new(delegate.Scratch)
	defer scratch.Close()
	var units []*unit
	for i, f := range fourBitCases {
		units = append(units, mustUnit(t, f.graph(uint64(i)), delegate.Instance{Scratch: scratch}))
	}
	for i, f := range fourBitCases {
		g := f.graph(uint64(i))
		alone := mustUnit(t, g, delegate.Instance{})
		for nodes := range len(g.Nodes) {
			seed := uint64(7 + nodes)
			stopped := graphtest.NewMaker(seed + 1).Arguments(alone.Graph)
			args, want := graphtest.NewMaker(seed).Arguments(alone.Graph), graphtest.NewMaker(seed).Arguments(alone.Graph)
			if err := units[i].Execute(&stopsAfter{context.Background(), nodes}, stopped); !errors.Is(err, context.Canceled) {
				t.Fatalf("%+v, stopped before node %d: got %v", f, nodes, err)
			}
			other := (i + 1) % len(units)
			mustExecute(t, units[other], graphtest.NewMaker(seed).Arguments(units[other].Graph))
			if err := units[i].SetProfiling(nodes%2 == 1); err != nil {
				t.Fatal(err)
			}
			mustExecute(t, units[i], args)
			mustExecute(t, alone, want)
			for k := range f.filters {
				sameRow(t, fmt.Sprintf("%+v, stopped before node %d, filter %d", f, nodes, k), args[1+k].Tensor, want[1+k].Tensor, 0)
			}
		}
	}
}
