package xnnpack

import (
	"slices"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// compilation is what is compiled: a planned graph and what the caller says of its calls. The engines share it.
type compilation struct {
	graph   *graph
	shapes  []shape // at the declared sizes
	args    []*delegate.ArgSpec
	limits  delegate.Limits
	scratch *delegate.Scratch
	release func([]byte) bool // see delegate.Payload.Release
	region  bool              // the graph was lowered from operators
	shown   bool              // units expose intermediate values
	// threadCount is the number of threads of the instances, 0 for the default.
	threadCount int
}

// hasDynamicArgs reports whether calls are known to have their own sizes.
func (c *compilation) hasDynamicArgs() bool { return len(c.args) > 0 && !areStatic(c.args) }

// instanceThreads returns the number of threads of the units.
func (c *compilation) instanceThreads() int {
	if c.threadCount == 0 {
		return cpu.DefaultThreads()
	}
	return c.threadCount
}

// areStatic reports whether all arguments always have the declared sizes.
func areStatic(args []*delegate.ArgSpec) bool { return !slices.ContainsFunc(args, isDynamic) }

func isDynamic(a *delegate.ArgSpec) bool { return a == nil || a.Dynamism != tensor.Static }

// engine is a graph that is compiled for one of the engines.
type engine interface {
	name() string // of the Engine
	unit(delegate.Instance) (delegate.Unit, error)
	needs() needs
	facts() [][2]string // for Info
	close()
}
