package index

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// picker copies picked runs of elements between a contiguous tensor, the table, and
// a dense array of what was picked: run elements for each outer index, pick and
// rest, in this order, from o·stride + picks[p] + rests[r] of the table on.
type picker struct {
	outer  int
	stride int
	picks  []int64
	rests  []int64
	run    int

	elem         int
	table, dense []byte
}

var noRests = []int64{0}

// elements is the number of elements that are picked.
func (p *picker) elements() int { return p.outer * len(p.picks) * len(p.rests) * p.run }

// take copies from table to dense.
func (p *picker) take(c *kernels.Ctx, elem int, dense, table []byte) {
	p.elem, p.dense, p.table = elem, dense, table
	if p.elements() > 0 {
		c.Parallel(p.outer*len(p.picks), 32<<10/(p.run*len(p.rests)*elem), p)
	}
	p.dense, p.table = nil, nil
}

// Range takes picks lo to hi, counted through the outer indices.
func (p *picker) Range(_, lo, hi int) {
	strided.BySize(p.elem, take[uint8], take[uint16], take[uint32], take[uint64], take[complex128])(p, lo, hi)
}

func take[T tensor.Element](p *picker, lo, hi int) {
	table, n := tensor.View[T](p.table), len(p.picks)
	dense := tensor.View[T](p.dense)[lo*p.run*len(p.rests):]
	o, from := lo/n, lo%n
	for ; lo < hi; from = 0 {
		picks, rows := p.picks[from:min(n, from+hi-lo)], table[o*p.stride:]
		lo += len(picks)
		o++
		if p.run == 1 && len(p.rests) == 1 {
			row := dense[:len(picks)]
			for i, at := range picks {
				row[i] = rows[at]
			}
			dense = dense[len(picks):]
			continue
		}
		for _, at := range picks {
			for _, r := range p.rests {
				copy(dense[:p.run], rows[at+r:])
				dense = dense[p.run:]
			}
		}
	}
}

// put copies from dense to table; where picks meet, the last one stays.
func (p *picker) put(elem int, table, dense []byte) {
	bytes, at := p.run*elem, 0
	if p.elements() == 0 {
		return
	}
	for o := range p.outer {
		rows := table[o*p.stride*elem:]
		for _, i := range p.picks {
			for _, r := range p.rests {
				copy(rows[int(i+r)*elem:][:bytes], dense[at:])
				at += bytes
			}
		}
	}
}

// add adds dense to table.
func add[C tensor.Compute](p *picker, table, dense []C) {
	if p.elements() == 0 {
		return
	}
	for o := range p.outer {
		for _, i := range p.picks {
			for _, r := range p.rests {
				row := table[o*p.stride+int(i+r):][:p.run]
				for j := range row {
					row[j] += dense[j]
				}
				dense = dense[p.run:]
			}
		}
	}
}

// accumulator is a way to add in a compute type.
type accumulator[C tensor.Compute] func(k *keep, table, dense []C)

// accumulate adds dense to table, both of type d, in the type that d computes in.
func (k *keep) accumulate(c *kernels.Ctx, d tensor.DType, table, dense []byte, f32 accumulator[float32], f64 accumulator[float64], i64 accumulator[int64]) {
	switch compute, _ := tensor.ComputeType(d); compute {
	case tensor.Float32:
		accumulate(k, c, d, table, dense, f32)
	case tensor.Float64:
		accumulate(k, c, d, table, dense, f64)
	default:
		accumulate(k, c, d, table, dense, i64)
	}
}

func accumulate[C tensor.Compute](k *keep, c *kernels.Ctx, d tensor.DType, table, dense []byte, f accumulator[C]) {
	sums := widen[C](c, d, table)
	f(k, sums, widen[C](c, d, dense))
	if d != tensor.TypeOf[C]() {
		tensor.Storer[C](d)(table, sums)
	}
}

// widen gives elements of type d in a compute type: themselves where it is their own.
func widen[C tensor.Compute](c *kernels.Ctx, d tensor.DType, elements []byte) []C {
	if d == tensor.TypeOf[C]() {
		return tensor.View[C](elements)
	}
	wide := kernels.Scratch[C](c, len(elements)/d.Size())
	tensor.Loader[C](d)(wide, elements)
	return wide
}
