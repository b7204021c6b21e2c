package reduce

import (
	"math/bits"
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// layout is the layout of a tensor for a reduction: element (o, r, i) of outer × n × inner is element (o·n + r)·inner
// + i in memory, and r is reduced.
type layout struct{ outer, n, inner int }

// results returns the number of remaining elements.
func (l layout) results() int { return l.outer * l.inner }

// minInner is the smallest inner size that is processed row by row; shorter rows are gathered first, unless they are so few
// that this takes longer.
const minInner, fewRows = 8, 64

// plan describes how a tensor is arranged for its reduction, and the results for the out.
type plan struct {
	layout
	dims  [tensor.MaxRank]int // that remain, in the order of the results
	count int                 // of dims
}

// set finds the layout for reducing the dimensions in the set of t, and returns t's elements in it: its own bytes, or a
// copy if remaining and reduced dimensions alternate in memory.
func (p *plan) set(c *kernels.Ctx, t *tensor.Tensor, dims uint32) []byte {
	if p.inMemory(t, dims) && (p.inner == 1 || p.inner >= minInner || p.outer*p.n <= fewRows) {
		return t.Data
	}
	p.layout, p.count = layout{1, 1, 1}, 0
	var src, dst strided.View
	src.Of(t)
	at := 0 // remaining dimensions come first
	for d, size := range t.Sizes {
		if dims>>d&1 != 0 {
			p.n *= size
			continue
		}
		p.add(d)
		p.outer *= size
		src.Move(d, at)
		at++
	}
	rows := kernels.Scratch[uint8](c, t.NBytes())
	dst.Dense(rows, src.Elem, src.Shape())
	strided.CopyView(c, &dst, &src)
	return rows
}

// inMemory finds the layout of t in memory; ok is false if it is none.
func (p *plan) inMemory(t *tensor.Tensor, dims uint32) (ok bool) {
	p.layout, p.count = layout{1, 1, 1}, 0
	reduced, behind := false, false // whether a reduced dimension, and a remaining one behind it, was seen
	for _, d := range t.DimOrder {
		size := t.Sizes[d]
		switch {
		case size == 1:
		case dims>>d&1 != 0:
			if behind {
				return false
			}
			reduced = true
			p.n *= size
		case reduced:
			behind = true
			p.inner *= size
			p.add(int(d))
		default:
			p.outer *= size
			p.add(int(d))
		}
	}
	return true
}

func (p *plan) add(d int) {
	p.dims[p.count] = d
	p.count++
}

// write stores results, in the order of the layout and of out's type, in out. Its dimensions are those of t, or only
// those that are not reduced.
func (p *plan) write(c *kernels.Ctx, out, t *tensor.Tensor, reduced uint32, results []byte) {
	if len(results) <= operand.PlainBytes && out.IsContiguous() && slices.IsSorted(p.dims[:p.count]) {
		copy(out.Data, results)
		return
	}
	keepdim := out.Rank() == t.Rank()
	var src, dst strided.View
	dst.Of(out)
	dst.Rank = p.count
	for i, d := range p.dims[:p.count] {
		dst.Sizes[i] = t.Sizes[d]
		if !keepdim {
			d -= bits.OnesCount32(reduced & (1<<d - 1))
		}
		dst.Strides[i] = out.Strides[d]
	}
	src.Dense(results, dst.Elem, dst.Shape())
	strided.CopyView(c, &dst, &src)
}

// dims are the dimensions that a call reduces.
type dims struct {
	set     uint32
	keepdim bool
	all     bool // no dimension was specified
}

// all is the set of every dimension of t.
func all(t *tensor.Tensor) uint32 { return 1<<t.Rank() - 1 }

// readDims reads argument 1, a dimension or a list of them, and argument 2, keepdim, of a call whose out is argument o.
// Calls with an earlier out, and those with None or an empty list, reduce all dimensions.
func readDims(a kernels.Args, o int) (d dims, err error) {
	t := a.Tensor(0)
	d.set, d.all = all(t), true
	if o < 3 {
		return d, nil
	}
	d.keepdim = a.Bool(2)
	if a[1].Kind == tensor.KindInt {
		dim, err := kernels.WrapDim(1, a.Int(1), t.Rank())
		d.set, d.all = 1<<dim&d.set, false
		return d, err
	}
	if list := a.Ints(1); len(list) > 0 {
		set, err := kernels.DimSet(1, list, t.Rank())
		d.set, d.all = set&d.set, false // a tensor of rank 0 has no dimension 0
		return d, err
	}
	return d, nil
}

// resize resizes out argument i to the sizes of argument 0 without the reduced dimensions, or with size 1 for them.
func (k *dims) resize(a kernels.Args, i int) error {
	var buf [tensor.MaxRank]int
	sizes := buf[:0]
	for d, n := range a.Tensor(0).Sizes {
		switch {
		case k.set>>d&1 == 0:
			sizes = append(sizes, n)
		case k.keepdim:
			sizes = append(sizes, 1)
		}
	}
	return kernels.ResizeOut(a, i, sizes)
}
