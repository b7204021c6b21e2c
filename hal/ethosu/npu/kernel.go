package npu

import (
	"github.com/etrun-go/etrun/hal/ethosu/isa"
	"github.com/etrun-go/etrun/internal/pack"
)

// functional computes the accumulators of an operation.
type functional interface {
	// accumulate fills acc with the accumulators of the pixels x0 to x1 of row y of
	// the OFM, channels innermost.
	accumulate(w *worker, y, x0, x1 int, acc []int64)
	// needs returns the working memory for tiles of the operation.
	needs() needs
}

// needs is the working memory of a thread, in elements.
type needs struct{ rows, slots, row, patch, aux, acc int }

func (n *needs) max(m needs) {
	n.rows, n.slots, n.row = max(n.rows, m.rows), max(n.slots, m.slots), max(n.row, m.row)
	n.patch, n.aux, n.acc = max(n.patch, m.patch), max(n.aux, m.aux), max(n.acc, m.acc)
}

// bytes returns the size in bytes; sizes that overflow exceed the limit anyway.
func (n *needs) bytes() int64 {
	return 4*(int64(n.rows)+int64(n.row)+int64(n.patch)) + 8*(int64(n.aux)+int64(n.acc)) + 16*int64(n.slots)
}

// accInput is the source of the initial accumulators.
type accInput uint8

const (
	accReset accInput = iota
	accKeep           // kept by the previous operation
	accIFM2           // a feature map
)

// kernelOp is an operation of the MAC array or the elementwise unit: a functional unit that
// computes accumulators, and the output stage.
type kernelOp struct {
	header
	ifm, ifm2 fmap
	window    window
	acc       accInput
	out       output
	unit      functional
	stored    *storedWeights // nil if it has none
	dynamic   bool           // weights are IFM2
	tile      int            // pixels computed at once
	staged    bool           // inputs and OFM overlap
}

func (o *kernelOp) tilesPerRow() int { return (o.out.w + o.tile - 1) / o.tile }

// run executes the operation with index i.
func (o *kernelOp) run(r *Run, i int) error {
	if c := o.out.perChannel; c != nil {
		c.load(&r.scales, r.mem[c.region], o.out.d, o.out.scale.rounding)
	}
	if o.out.table.kind != noTable {
		o.out.table.load(&r.lutValues, &r.lut)
	}
	switch {
	case o.dynamic:
		o.weightsFromMap(r)
	case o.stored != nil:
		w, err := r.net.weights(r.mem, o, i)
		if err != nil {
			return err
		}
		r.weights = w
	}
	r.walk(o)
	if o.staged {
		for y := range o.out.h {
			o.out.store(r.mem[o.out.ofm.region], r.staged[y*o.out.w*o.out.d:], y, 0, o.out.w)
		}
	}
	return nil
}

// compute runs the pixels x0 to x1 of row y through the unit and the output stage.
func (o *kernelOp) compute(w *worker, y, x0, x1 int) {
	r, out := w.run, &o.out
	acc := w.acc[:(x1-x0)*out.d]
	at := (y*out.w + x0) * out.d
	o.unit.accumulate(w, y, x0, x1, acc)
	switch o.acc {
	case accKeep:
		for i, v := range r.kept[at : at+len(acc)] {
			acc[i] += v
		}
	case accIFM2:
		o.ifm2.addWide(acc, r.mem[o.ifm2.region], y, x0, x1)
	}
	if out.disabled {
		copy(r.kept[at:], acc)
		return
	}
	out.finish(r, acc)
	switch {
	case out.ofm.storage == inChain:
		chain := r.chains[out.ofm.region][at:]
		for i, v := range acc {
			chain[i] = int32(v)
		}
	case out.ofm.storage == nowhere:
	case o.staged:
		copy(r.staged[at:], acc)
	default:
		out.store(r.mem[out.ofm.region], acc, y, x0, x1)
	}
}

// header contains the fields common to all operations.
type header struct {
	word     int
	code     isa.Code
	name     string
	param    uint16
	accesses []access
	work     int64 // in multiplications
	schedule schedule
	waits    waits
}

func (h *header) head() *header { return h }

// elementWork is the cost of an output element in MACs.
const elementWork = 16

// access is a range of memory that an operation reads or writes.
type access struct {
	span
	what  string
	write bool
}

func (h *header) reads(what string, s span)  { h.accesses = append(h.accesses, access{s, what, false}) }
func (h *header) writes(what string, s span) { h.accesses = append(h.accesses, access{s, what, true}) }

// readsMap records an input in memory.
func (h *header) readsMap(what string, f *fmap) {
	if f.storage == inMemory {
		h.reads(what, f.span())
	}
}

// errorf returns an error located at the operation.
func (h *header) errorf(reason error, format string, args ...any) error {
	return isa.StreamError(h.word, h.name, reason, format, args...)
}

// operation is one step of a program.
type operation interface {
	head() *header
	run(r *Run, index int) error
	describe() []string // human-readable lines: the operands
}

// weightsFromMap uses IFM2 as the weights of the current operation.
func (o *kernelOp) weightsFromMap(r *Run) {
	n := o.out.d * o.window.d
	r.matrix = pack.Grow(r.matrix, n)
	r.read(&o.ifm2, r.matrix, 0, 0, o.out.d)
	packInto(&r.dynamic, r.matrix, o.out.d, o.window.d, o.inputLimit())
	r.weights = &r.dynamic
}

// worker is the working memory of one thread.
type worker struct {
	run   *Run
	cache rowCache
	patch []int32
	aux   []int64
	acc   []int64
}

// schedule is the partition of an operation for the MAC unit. Sizes are those of the OFM.
type schedule struct {
	block      [3]int // h, w, d of the block accumulated at once
	micro      [3]int // of the part computed in 4 cycles, or in 4 cycles per input channel group
	wide       bool   // accumulators of 40 or 48 bits
	partKernel bool
}
