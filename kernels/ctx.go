package kernels

import (
	"math/rand/v2"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Ctx is the context of an operator: threads, scratch memory, random numbers and per-instruction
// state. It belongs to one method instance and is used by one goroutine at a time.
type Ctx struct {
	// Rand is the source of random numbers, seeded by the caller.
	Rand *rand.Rand
	// State points to the state of the calling instruction, see Keep. Call.Do sets it.
	State *any
	// Whole requires all elements of all outs, including those that no instruction reads: an
	// observer wants them.
	Whole bool

	pool    *cpu.Pool
	unread  uint64
	run     cpu.Run
	replay  Repeater
	scratch []byte
	used    int
	wanted  int
}

// StopWhen makes the loops of Parallel end with the panic [cpu.Stopped] once done is closed; nil means never.
// The caller of operators recovers it, and resets the call ([Call.Reset]).
func (c *Ctx) StopWhen(done <-chan struct{}) { c.run.StopWhen(done) }

// Poll ends the running operator as StopWhen says. Operators call it in loops that no Parallel divides, and in
// ranges of Parallel that may be long, once per PollBlock elements or less. It may be called on any thread.
func (c *Ctx) Poll() { c.run.Poll() }

// PollBlock is the number of elements that a loop processes between two calls of Poll: some milliseconds even at
// 100 ns for each.
const PollBlock = 1 << 16

// Blocks calls f for the ranges of [0, n) in order, of PollBlock elements or less, and polls before each.
func (c *Ctx) Blocks(n int, f func(lo, hi int)) {
	for lo := 0; lo < n; lo += PollBlock {
		c.Poll()
		f(lo, min(lo+PollBlock, n))
	}
}

// Poller polls once per PollBlock of the elements that Done counts.
type Poller struct {
	c    *Ctx
	done int
}

// Poller returns a Poller for a loop; each thread wants its own.
func (c *Ctx) Poller() Poller { return Poller{c: c} }

// Done counts n elements that the loop has processed.
func (p *Poller) Done(n int) {
	if p.done += n; p.done >= PollBlock {
		p.done = 0
		p.c.Poll()
	}
}

// NewCtx returns a context that uses the threads of pool; nil means one thread.
func NewCtx(pool *cpu.Pool) *Ctx {
	return &Ctx{pool: pool, State: new(any), Rand: rand.New(rand.NewPCG(0, 0))}
}

// Threads returns the number of threads that Parallel may use. Worker numbers are smaller.
func (c *Ctx) Threads() int {
	if c.pool == nil {
		return 1
	}
	return c.pool.Size()
}

// Parallel calls body.Range for ranges of at least grain that cover [0, n), on several threads if n
// allows. Choose grain so that a range takes about 20 µs. Range must not call Parallel or Scratch.
// To avoid allocations, body should be a struct returned by Keep.
func (c *Ctx) Parallel(n, grain int, body cpu.Body) { c.pool.Do(&c.run, n, grain, body) }

// Unread reports whether nothing reads the elements that the running call writes to argument i. The
// operator still resizes it, but need not write its elements.
func (c *Ctx) Unread(i int) bool { return c.unread>>i&1 != 0 && !c.Whole }

// Keep returns the state of the calling instruction: a zero T in the first call, and the same T in
// later calls of that instruction. Use it for the fields of loop bodies, for tables, and for
// constant arguments ([tensor.Tensor.Const]) in a precomputed form.
func Keep[T any](c *Ctx) *T {
	if t, ok := (*c.State).(*T); ok {
		return t
	}
	t := new(T)
	*c.State = t
	return t
}

// Scratch returns n elements of uninitialized memory, aligned to 64 bytes and valid until the
// operator returns. Only the first run allocates.
func Scratch[T tensor.Element](c *Ctx, n int) []T {
	var z [1]T
	size := n * len(tensor.BytesOf(z[:]))
	size = (size + tensor.Alignment - 1) &^ (tensor.Alignment - 1)
	c.wanted += size
	if c.used+size > len(c.scratch) {
		return tensor.View[T](tensor.AlignedBytes(size))[:n]
	}
	b := c.scratch[c.used : c.used+size]
	c.used += size
	return tensor.View[T](b)[:n]
}

// Release invalidates all scratch memory. The caller of an operator calls it after each call, as
// Call.Do does. The memory grows to the largest requirement of any call.
func (c *Ctx) Release() {
	if c.wanted > len(c.scratch) {
		c.scratch = tensor.AlignedBytes(c.wanted)
	}
	c.used, c.wanted = 0, 0
}

// ScratchBytes returns the size of the scratch memory.
func (c *Ctx) ScratchBytes() int { return len(c.scratch) }
