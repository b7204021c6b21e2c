package npu

import (
	"context"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// Memory contains the bytes of each region, nil for unused ones.
type Memory [isa.NumRegions][]byte

// Run is a network with its own working memory. It is used by one goroutine at a time.
type Run struct {
	net  *Network
	pool *cpu.Pool
	loop cpu.Run

	ctx        context.Context
	mem        *Memory
	lut        [lutBytes]byte
	chains     [isa.NumRegions][]int32
	kept       []int64 // accumulators kept for the next operation
	staged     []int64 // results that are stored after all are computed
	operations uint64  // number of operations started in all runs

	op        *kernelOp // the current operation
	weights   *packedWeights
	scales    scaleTable
	lutValues lutValues
	dynamic   packedWeights // weights from a feature map
	matrix    []int32       // its elements
	workers   []worker
}

// Trace is called after each operation of an Execute with the operation's index in
// [Program.Operations].
type Trace func(index int, mem *Memory) error

// Execute runs the stream on mem, whose regions must have the sizes that the network was bound to.
// The constants region is not written. Only the first call allocates, unless weights change between
// runs. If ctx ends, Execute returns context.Cause(ctx). Errors in the stream are *isa.Error.
func (r *Run) Execute(ctx context.Context, mem *Memory, trace Trace) error {
	r.ctx, r.mem = ctx, mem
	defer func() { r.ctx, r.mem = nil, nil }()
	for i, op := range r.net.program.ops {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.operations++
		if err := op.run(r, i); err != nil {
			return err
		}
		if trace != nil {
			if err := trace(i, mem); err != nil {
				return err
			}
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// unitWork is the amount of work that a thread processes at once: about 30 µs.
const unitWork = 1 << 17

// walk runs a kernel operation: all tiles of all rows of its OFM, on several threads.
func (r *Run) walk(o *kernelOp) {
	r.op = o
	tiles := o.tilesPerRow()
	n := o.out.h * tiles
	grain := max(1, int(unitWork*int64(n)/o.work))
	r.pool.Do(&r.loop, n, grain, r)
}

// Range computes tiles lo to hi of the current operation ([cpu.Body]).
func (r *Run) Range(thread, lo, hi int) {
	o, w := r.op, &r.workers[thread]
	tiles := o.tilesPerRow()
	for i := lo; i < hi; i++ {
		if r.ctx.Err() != nil {
			return
		}
		x0 := i % tiles * o.tile
		o.compute(w, i/tiles, x0, min(x0+o.tile, o.out.w))
	}
}
