package reduce

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/move"
	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// layout is a tensor as a reduction sees it: element (o, r, i) of outer × n × inner
// is element (o·n + r)·inner + i in memory, and r is reduced.
type layout struct{ outer, n, inner int }

// results is the number of elements that remain.
func (l layout) results() int { return l.outer * l.inner }

// minInner is the least inner size that is worth going row by row; shorter rows are
// brought together first.
const minInner = 8

// plan is the way from a tensor to the layout of its reduction and back.
type plan struct {
	layout
	run   move.Strided
	kept  [tensor.MaxRank]int // dimensions that remain, in the order of the results
	count int                 // of kept

	sizes, from, to [tensor.MaxRank]int
}

// set finds the layout for reducing the dimensions in the set of t, and gives t's
// elements in it: its own bytes, or a copy where kept and reduced dimensions
// alternate in memory.
func (p *plan) set(c *kernels.Ctx, t *tensor.Tensor, dims uint32) []byte {
	if p.see(t, dims) && (p.inner == 1 || p.inner >= minInner) {
		return t.Data
	}
	p.layout = layout{1, 1, 1}
	p.count = 0
	rank := 0
	for _, reduced := range [...]bool{false, true} {
		for d, size := range t.Sizes {
			if dims>>d&1 != 0 != reduced {
				continue
			}
			p.sizes[rank], p.from[rank] = size, t.Strides[d]
			rank++
			if reduced {
				p.n *= size
			} else {
				p.keep(d)
				p.outer *= size
			}
		}
	}
	rows := kernels.Scratch[uint8](c, t.NBytes())
	box := strided.Shape{Sizes: p.sizes[:rank], Dst: strided.DenseStrides(p.to[:], p.sizes[:rank]), Src: p.from[:rank]}
	p.run.Copy(c, t.DType.Size(), box, strided.Buffer{Data: rows}, strided.Buffer{Data: t.Data})
	return rows
}

// see finds the layout of t as it lies in memory, if it is one.
func (p *plan) see(t *tensor.Tensor, dims uint32) bool {
	p.layout = layout{1, 1, 1}
	p.count = 0
	reduced, behind := false, false // dimensions of either kind came by
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
			p.keep(int(d))
		default:
			p.outer *= size
			p.keep(int(d))
		}
	}
	return true
}

func (p *plan) keep(d int) {
	p.kept[p.count] = d
	p.count++
}

// write brings results, in the order of the layout and of out's type, into out, which
// has t's rank, or only the dimensions that are not reduced.
func (p *plan) write(c *kernels.Ctx, out, t *tensor.Tensor, dims uint32, results []byte) {
	keepdim := out.Rank() == t.Rank()
	for i, d := range p.kept[:p.count] {
		p.sizes[i] = t.Sizes[d]
		if !keepdim {
			d = place(d, dims)
		}
		p.to[i] = out.Strides[d]
	}
	box := strided.Shape{Sizes: p.sizes[:p.count], Dst: p.to[:p.count], Src: strided.DenseStrides(p.from[:], p.sizes[:p.count])}
	p.run.Copy(c, out.DType.Size(), box, strided.Buffer{Data: out.Data}, strided.Buffer{Data: results})
}

// place is where dimension d stands when those in the set are gone.
func place(d int, dims uint32) int {
	n := d
	for i := range d {
		n -= int(dims >> i & 1)
	}
	return n
}

// all is the set of every dimension of t.
func all(t *tensor.Tensor) uint32 { return 1<<t.Rank() - 1 }

// dimSet reads argument i, dimensions to reduce, as a set; none means all.
func dimSet(a kernels.Args, i int, t *tensor.Tensor) (set uint32, err error) {
	list := a.Ints(i)
	if len(list) == 0 {
		return all(t), nil
	}
	for _, v := range list {
		d, err := kernels.WrapDim(i, v, t.Rank())
		if err != nil {
			return 0, err
		}
		if set>>d&1 != 0 {
			return 0, kernels.Badf(i, "each dimension once", "%v", list)
		}
		set |= 1 << d
	}
	return set & all(t), nil // a tensor of rank 0 has no dimension 0
}

// oneDim reads argument i, the dimension to reduce, as a set.
func oneDim(a kernels.Args, i int, t *tensor.Tensor) (set uint32, err error) {
	d, err := kernels.WrapDim(i, a.Int(i), t.Rank())
	return 1 << d & all(t), err
}

// resize gives out argument i the sizes of argument 0 without the dimensions in the
// set, or with size 1 for them.
func resize(a kernels.Args, i int, dims uint32, keepdim bool) error {
	var buf [tensor.MaxRank]int
	sizes := buf[:0]
	for d, n := range a.Tensor(0).Sizes {
		switch {
		case dims>>d&1 == 0:
			sizes = append(sizes, n)
		case keepdim:
			sizes = append(sizes, 1)
		}
	}
	return kernels.ResizeOut(a, i, sizes)
}

// nonempty reports argument 0 if reducing the dimensions in the set leaves nothing to
// choose from.
func nonempty(a kernels.Args, dims uint32) error {
	for d, n := range a.Tensor(0).Sizes {
		if n == 0 && dims>>d&1 != 0 {
			return kernels.Bad(0, a.Tensor(0).String(), "elements along the reduced dimensions")
		}
	}
	return nil
}

// sameDType reports argument i, a dtype, if it is given and not that of out argument o.
func sameDType(a kernels.Args, i, o int) error {
	if d := a.OptInt(i, int64(a.Tensor(o).DType)); d != int64(a.Tensor(o).DType) {
		return kernels.Badf(i, "the out's type, "+a.Tensor(o).DType.String(), "%v", tensor.DType(d))
	}
	return nil
}
