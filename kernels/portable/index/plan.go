package index

import (
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var noRest = []int64{0}

// elements returns the number of elements of the dense array.
func (p *gatherPlan) elements() int { return p.outer * len(p.offsets) * len(p.rest) * p.run }

// take copies from table to dense.
func (p *gatherPlan) take(c *kernels.Ctx, elem int, dense, table []byte) {
	p.elem, p.dense, p.table = elem, dense, table
	if p.elements() > 0 {
		c.Parallel(p.outer*len(p.offsets), cpu.Grain(p.run*len(p.rest)*elem, 600), p)
	}
	p.dense, p.table = nil, nil
}

// Range takes offsets lo to hi, counted through the outer indices.
func (p *gatherPlan) Range(_, lo, hi int) {
	strided.BySize(p.elem, take[uint8], take[uint16], take[uint32], take[uint64], take[complex128])(p, lo, hi)
}

func take[T tensor.Element](p *gatherPlan, lo, hi int) {
	table, n := tensor.View[T](p.table), len(p.offsets)
	dense := tensor.View[T](p.dense)[lo*p.run*len(p.rest):]
	o, from := lo/n, lo%n
	for ; lo < hi; from = 0 {
		offsets, rows := p.offsets[from:min(n, from+hi-lo)], table[o*p.stride:]
		lo += len(offsets)
		o++
		if p.run == 1 && len(p.rest) == 1 {
			row := dense[:len(offsets)]
			for i, at := range offsets {
				row[i] = rows[at]
			}
			dense = dense[len(offsets):]
			continue
		}
		for _, at := range offsets {
			for _, r := range p.rest {
				copy(dense[:p.run], rows[at+r:])
				dense = dense[p.run:]
			}
		}
	}
}

// put copies from dense to table; of equal offsets the last one wins.
func (p *gatherPlan) put(c *kernels.Ctx, elem int, table, dense []byte) {
	bytes, at := p.run*elem, 0
	if p.elements() == 0 {
		return
	}
	poll := c.Poller()
	for o := range p.outer {
		rows := table[o*p.stride*elem:]
		for _, i := range p.offsets {
			poll.Done(p.run * len(p.rest))
			for _, r := range p.rest {
				copy(rows[int(i+r)*elem:][:bytes], dense[at:])
				at += bytes
			}
		}
	}
}

// add adds dense to table.
func add[C tensor.Compute](c *kernels.Ctx, p *gatherPlan, table, dense []C) {
	if p.elements() == 0 {
		return
	}
	poll := c.Poller()
	for o := range p.outer {
		for _, i := range p.offsets {
			poll.Done(p.run * len(p.rest))
			for _, r := range p.rest {
				row := table[o*p.stride+int(i+r):][:p.run]
				for j := range row {
					row[j] += dense[j]
				}
				dense = dense[p.run:]
			}
		}
	}
}

// accumulator adds dense to table in a compute type.
type accumulator func(k *state, c *kernels.Ctx, d tensor.DType, table, dense []byte)

// accumulate calls add for elements of type d, which are computed as C.
func accumulate[C tensor.Compute](c *kernels.Ctx, d tensor.DType, table, dense []byte, add func(sums, x []C)) {
	sums := operand.Load[C](c, d, table)
	add(sums, operand.Load[C](c, d, dense))
	if d != tensor.TypeOf[C]() {
		tensor.Storer[C](d)(table, sums)
	}
}
