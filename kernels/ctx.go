package kernels

import (
	"math/rand/v2"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Ctx is what an operator has besides its arguments: threads, scratch memory, a
// random source and a place of its own. It belongs to one method instance and is
// used by one goroutine at a time.
type Ctx struct {
	// Rand is the source of random operators, seeded by the caller.
	Rand *rand.Rand
	// State is the calling instruction's own place, see Keep. Call.Do points it there.
	State *any

	pool    *cpu.Pool
	run     cpu.Run
	again   Repeater
	scratch []byte
	used    int
	wanted  int
}

// NewCtx returns a context on the given thread budget; nil means one thread.
func NewCtx(pool *cpu.Pool) *Ctx {
	return &Ctx{pool: pool, State: new(any), Rand: rand.New(rand.NewPCG(0, 0))}
}

// Threads is the number of threads that Parallel may use, and so of worker numbers.
func (c *Ctx) Threads() int {
	if c.pool == nil {
		return 1
	}
	return c.pool.Size()
}

// Parallel calls body.Range over [0, n) in ranges of at least grain, on several
// threads where that is worth it. grain is the caller's threshold: choose it so
// that a range takes about 20 µs. Range must not call Parallel or Scratch. body is
// best a struct from Keep, so that nothing is allocated.
func (c *Ctx) Parallel(n, grain int, body cpu.Body) { c.pool.Do(&c.run, n, grain, body) }

// Keep returns the calling instruction's own T, zero at the first call and the same
// one at every later execute of that instruction: the place for a loop body's
// fields, for tables, and for forms of constant arguments ([tensor.Tensor.Const])
// that are worth computing once.
func Keep[T any](c *Ctx) *T {
	if t, ok := (*c.State).(*T); ok {
		return t
	}
	t := new(T)
	*c.State = t
	return t
}

// Scratch returns n elements of working memory, not zeroed, aligned to 64 bytes,
// valid until the operator returns. After the first execute it allocates nothing.
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

// Release ends the validity of all scratch memory; whoever calls an operator calls it
// afterwards, as Call.Do does. Memory grows to what the largest instruction wanted.
func (c *Ctx) Release() {
	if c.wanted > len(c.scratch) {
		c.scratch = tensor.AlignedBytes(c.wanted)
	}
	c.used, c.wanted = 0, 0
}

// ScratchBytes is the size of the working memory that the context keeps.
func (c *Ctx) ScratchBytes() int { return len(c.scratch) }
