package npu

import (
	"bytes"
	"hash/crc32"
	"sync/atomic"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/hal/ethosu/isa"
	"github.com/etrun-go/etrun/hal/ethosu/npu/weights"
)

// Footprint returns the end of the range that the program accesses in each region.
func (p *Program) Footprint() (size [isa.NumRegions]int64) {
	for _, op := range p.ops {
		for _, a := range op.head().accesses {
			size[a.region] = max(size[a.region], a.hi)
		}
	}
	return size
}

// Check checks all accesses of the program against the regions. Errors are *isa.Error.
func (p *Program) Check(regions *isa.Regions) error {
	for i := range regions {
		if r := &regions[i]; r.Kind == isa.Constants && int64(len(r.Data)) != r.Size {
			return isa.StreamError(0, "", isa.ErrMalformed, "region %d has %d bytes of constants, want %d", i, len(r.Data), r.Size)
		}
	}
	for _, op := range p.ops {
		if err := op.head().check(regions); err != nil {
			return err
		}
	}
	return nil
}

// The number of weights of a program is bounded by the size of its constants: a zero takes at least
// an eighth of a bit. Small programs are not limited.
const (
	zerosPerByte = 64
	fewWeights   = 1 << 24
)

// Bind checks a program and decodes its constant weights. The regions' data must not change during
// the network's lifetime. Errors are *isa.Error.
func (p *Program) Bind(regions *isa.Regions) (*Network, error) {
	if err := p.Check(regions); err != nil {
		return nil, err
	}
	n := &Network{program: p, ready: make([]atomic.Pointer[packedWeights], len(p.ops))}
	for i := range regions {
		n.budget += zerosPerByte * len(regions[i].Data)
	}
	n.budget = max(n.budget, fewWeights)
	reader := &weights.Decoder{Budget: n.budget}
	for i, op := range p.ops {
		o, ok := op.(*kernelOp)
		if !ok || o.stored == nil {
			continue
		}
		encoded, certain := p.constantWeights(regions, o.stored, i)
		if encoded == nil {
			continue
		}
		w, err := o.stored.decode(encoded, reader)
		switch {
		case err == nil:
			n.ready[i].Store(w)
		case certain:
			return nil, o.placed(err)
		}
	}
	return n, nil
}

// check checks an operation's accesses against the regions.
func (h *header) check(regions *isa.Regions) error {
	for _, a := range h.accesses {
		r := &regions[a.region]
		verb := "read"
		if a.write {
			verb = "written"
		}
		switch {
		case a.lo == a.hi:
		case r.Kind == isa.Unused:
			return h.errorf(isa.ErrMalformed, "%s %s in region %d, which has no memory", a.what, verb, a.region)
		case a.lo < 0 || a.hi > r.Size:
			return h.errorf(isa.ErrMalformed, "%s %s from %#x to %#x of region %d (%v), which has %#x bytes",
				a.what, verb, a.lo, a.hi, a.region, r.Kind, r.Size)
		case a.write && !r.Kind.Writable():
			return h.errorf(isa.ErrMalformed, "%s written to region %d, which has constants", a.what, a.region)
		}
	}
	return nil
}

func (h *header) placed(err error) error {
	return isa.Place(isa.CommandStream, h.word, h.name, err)
}

// constantWeights returns the encoded weights of operation i: from a constant region, or from the
// source of a DMA. In the latter case another operation may change them, so they are not certain.
func (p *Program) constantWeights(regions *isa.Regions, w *storedWeights, i int) (encoded []byte, certain bool) {
	if r := &regions[w.region]; r.Kind == isa.Constants {
		return w.gather(r.Data), true
	}
	var parts []byte
	for _, s := range w.streams {
		b := p.broughtBy(regions, s, i)
		if b == nil {
			return nil, false
		}
		parts = append(parts, b...)
	}
	return parts, false
}

// broughtBy returns the constants that the last plain DMA before operation i copies to s.
func (p *Program) broughtBy(regions *isa.Regions, s span, i int) []byte {
	for i--; i >= 0; i-- {
		o, ok := p.ops[i].(*dma)
		if !ok || o.dst.internal || o.src.internal || o.dst.region != s.region || o.rows*o.planes != 1 {
			continue
		}
		if to := o.dst.base; to <= s.lo && s.hi <= to+int64(o.length) && !o.src.indexed && !o.dst.indexed {
			if r := &regions[o.src.region]; r.Kind == isa.Constants {
				return r.Data[o.src.base+s.lo-to : o.src.base+s.hi-to]
			}
			return nil
		}
	}
	return nil
}

// gather concatenates the streams.
func (w *storedWeights) gather(mem []byte) []byte {
	var out []byte
	for _, s := range w.streams {
		out = append(out, mem[s.lo:s.hi]...)
	}
	return out
}

// same reports whether memory contains the streams that were decoded.
func (w *storedWeights) same(encoded, mem []byte) bool {
	for _, s := range w.streams {
		n := s.hi - s.lo
		if !bytes.Equal(encoded[:n], mem[s.lo:s.hi]) {
			return false
		}
		encoded = encoded[n:]
	}
	return true
}

// weights returns the decoded weights of operation i. Weights in writable memory are decoded again
// when they have changed.
func (n *Network) weights(mem *Memory, o *kernelOp, i int) (*packedWeights, error) {
	ready := n.ready[i].Load()
	bytes := mem[o.stored.region]
	if ready != nil && o.stored.same(ready.encoded, bytes) {
		return ready, nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	w, err := o.stored.decode(o.stored.gather(bytes), &weights.Decoder{Budget: n.budget})
	if err != nil {
		return nil, o.placed(err)
	}
	n.ready[i].Store(w)
	return w, nil
}

// NewRun allocates the working memory for runs on the threads of pool, nil for one thread.
func (n *Network) NewRun(pool *cpu.Pool) *Run {
	p, threads := n.program, 1
	if pool != nil {
		threads = pool.Size()
	}
	if p.workingBytes(threads) > maxWorking {
		pool, threads = nil, 1
	}
	r := &Run{net: n, pool: pool, workers: make([]worker, threads)}
	need := &p.needs
	for i := range r.workers {
		r.workers[i] = worker{run: r, patch: make([]int32, need.patch), aux: make([]int64, need.aux), acc: make([]int64, need.acc),
			cache: rowCache{rows: make([]int32, need.rows), tags: make([]rowTag, need.slots), zero: make([]int32, need.row)}}
	}
	for i, size := range p.chains {
		r.chains[i] = make([]int32, size)
	}
	r.kept, r.staged = make([]int64, p.kept), make([]int64, p.staged)
	r.scales.channels = make([]channelScale, p.scales)
	return r
}

// Operation describes one operation of a program.
type Operation struct {
	Word   int      // index of its command in the stream
	Name   string   // "NPU_OP_CONV"
	Detail string   // its fields: " pooling_mode=AVERAGE"
	Work   int64    // cost in MACs
	Maps   []string // human-readable operands
	Reads  []Range
	Writes []Range
}

// Checksum returns the CRC-32 (IEEE) of all bytes in the ranges that the operation writes,
// including gaps between rows. mem is the argument of a [Trace].
func (o *Operation) Checksum(mem *Memory) uint32 {
	sum := uint32(0)
	for _, w := range o.Writes {
		sum = crc32.Update(sum, crc32.IEEETable, mem[w.Region][w.Lo:w.Hi])
	}
	return sum
}

// detail formats the command's fields.
func (h *header) detail(f isa.Family) string {
	s := isa.Step{Command: isa.Lookup(f, h.code), Word: h.word, Param: h.param}
	return string(s.Format(nil)[len(h.name):])
}

// Range is a range of bytes of a region, [Lo, Hi).
type Range struct {
	What   string // "IFM", "weights", …
	Region int
	Lo, Hi int64
}

// Operations returns the operations in execution order.
func (p *Program) Operations() []Operation {
	out := make([]Operation, len(p.ops))
	for i, op := range p.ops {
		h := op.head()
		out[i] = Operation{Word: h.word, Name: h.name, Detail: h.detail(p.Config.Family), Work: h.work, Maps: op.describe()}
		for _, a := range h.accesses {
			r := Range{a.what, a.region, a.lo, a.hi}
			if a.write {
				out[i].Writes = append(out[i].Writes, r)
			} else {
				out[i].Reads = append(out[i].Reads, r)
			}
		}
	}
	return out
}

// Len returns the number of operations.
func (p *Program) Len() int { return len(p.ops) }
