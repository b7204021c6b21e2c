package graph

import (
	"slices"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Compilation is what is compiled: a planned graph and what the caller says of its calls. The engines share it.
type Compilation struct {
	Graph   *Graph
	Shapes  []Shape // at the declared sizes
	Args    []*delegate.ArgSpec
	Limits  delegate.Limits
	Scratch *delegate.Scratch
	Release func([]byte) bool // see delegate.Payload.Release
	Region  bool              // the graph was lowered from operators
	Shown   bool              // units expose intermediate values
	Unfused bool              // the graph keeps its nodes
	// DescribeOnly: units make no calls, see delegate.Payload.
	DescribeOnly bool
	// ThreadCount is the number of threads of the instances, 0 for the default.
	ThreadCount int
}

// HasDynamicArgs reports whether calls are known to have their own sizes.
func (c *Compilation) HasDynamicArgs() bool { return len(c.Args) > 0 && !AreStatic(c.Args) }

// InstanceThreads returns the number of threads of the units.
func (c *Compilation) InstanceThreads() int {
	if c.ThreadCount == 0 {
		return cpu.DefaultThreads()
	}
	return c.ThreadCount
}

// AreStatic reports whether all arguments always have the declared sizes.
func AreStatic(args []*delegate.ArgSpec) bool { return !slices.ContainsFunc(args, IsDynamic) }

// IsDynamic reports whether calls may have their own sizes of an argument.
func IsDynamic(a *delegate.ArgSpec) bool { return a == nil || a.Dynamism != tensor.Static }

// Engine is a graph that is compiled for one of the engines.
type Engine interface {
	Name() string // of the Engine
	Unit(delegate.Instance) (delegate.Unit, error)
	Needs() Needs
	Facts() [][2]string // for Info
	Close()
}

// Minimum MACs of a graph that is computed by several threads: in all, which is about 0.1 ms on one
// thread, and per node, since threads synchronize after each node. With 5e4 a model takes 1.3 times as long as on one
// thread, with 25e4 as long.
const (
	parallelCost     = 3e6
	parallelNodeCost = 2e5
)

// Parallel reports whether a call of that cost, of a graph with so many nodes, is large enough for
// several threads.
func Parallel(cost float64, nodes int) bool {
	return cost >= parallelCost && cost >= parallelNodeCost*float64(nodes)
}
