package move

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// view is a way to read or write a tensor's elements: sizes and strides that need
// not be dense. An operator changes a view where another library would move
// elements.
type view struct {
	data    []byte
	elem    int // bytes of an element
	at      int // offset of the first element, in elements
	rank    int
	sizes   [strided.MaxDims]int
	strides [strided.MaxDims]int
}

// of sees t as it is.
func (v *view) of(t *tensor.Tensor) {
	v.data, v.elem, v.at, v.rank = t.Data, t.DType.Size(), 0, t.Rank()
	copy(v.sizes[:], t.Sizes)
	copy(v.strides[:], t.Strides)
}

// dense sees data as a contiguous array.
func (v *view) dense(data []byte, elem int, sizes []int) {
	v.data, v.elem, v.at, v.rank = data, elem, 0, len(sizes)
	copy(v.sizes[:], sizes)
	strided.DenseStrides(v.strides[:], sizes)
}

// insert puts a dimension before dimension d.
func (v *view) insert(d, size, stride int) {
	copy(v.sizes[d+1:v.rank+1], v.sizes[d:v.rank])
	copy(v.strides[d+1:v.rank+1], v.strides[d:v.rank])
	v.sizes[d], v.strides[d] = size, stride
	v.rank++
}

// remove takes dimension d away: the view keeps its index 0.
func (v *view) remove(d int) {
	copy(v.sizes[d:v.rank-1], v.sizes[d+1:v.rank])
	copy(v.strides[d:v.rank-1], v.strides[d+1:v.rank])
	v.rank--
}

// narrow keeps n indices of dimension d: start, start+step, …. A step of 0 repeats
// one index, a negative one goes backwards.
func (v *view) narrow(d, start, n, step int) {
	if n > 0 { // an empty range may start at the end, where no element is
		v.at += start * v.strides[d]
	}
	v.sizes[d] = n
	v.strides[d] *= step
}

// split makes two dimensions of dimension d: one of size/inner and one of inner.
func (v *view) split(d, inner int) {
	stride := v.strides[d]
	v.insert(d+1, inner, stride)
	v.sizes[d] /= max(inner, 1)
	v.strides[d] = stride * inner
}

// swap exchanges two dimensions.
func (v *view) swap(d, e int) {
	v.sizes[d], v.sizes[e] = v.sizes[e], v.sizes[d]
	v.strides[d], v.strides[e] = v.strides[e], v.strides[d]
}

// shift moves dimension d to place e, the ones between by one place.
func (v *view) shift(d, e int) {
	size, stride := v.sizes[d], v.strides[d]
	v.remove(d)
	v.insert(e, size, stride)
}

func (v *view) buffer() strided.Buffer { return strided.Buffer{Data: v.data, Offset: v.at} }

// mover is what an instruction of this package keeps: where its elements come from,
// where they go, the engine between, and the walks that it does again at each execute.
type mover struct {
	from, to view
	run      Strided
	cuts     []cut     // by dimension, where pieces are put together
	value    [2]uint64 // one element of any type

	plans strided.Plans
	fresh bool // an execute does more than the plans
}

// moving makes an operator that only copies elements, from places that its arguments'
// shapes decide, do without deciding again while these stay.
func moving(f kernels.Func) kernels.Func {
	return func(c *kernels.Ctx, a kernels.Args) error {
		m := kernels.Keep[mover](c)
		m.plans.Reset()
		m.fresh = false
		if err := f(c, a); err != nil {
			return err
		}
		if !m.fresh {
			c.Repeat(m)
		}
		return nil
	}
}

// Repeat copies between the same places again.
func (m *mover) Repeat(c *kernels.Ctx) error {
	m.plans.Repeat(c)
	return nil
}

// copy moves from to to; the two have the same sizes.
func (m *mover) copy(c *kernels.Ctx) {
	shape := strided.Shape{Sizes: m.to.sizes[:m.to.rank], Dst: m.to.strides[:m.to.rank], Src: m.from.strides[:m.to.rank]}
	if !m.plans.Copy(c, &m.run.Copier, m.from.elem, shape, m.to.buffer(), m.from.buffer()) {
		m.fresh = true
	}
}

// scratch is memory for what an execute computes before it copies.
func (m *mover) scratch(c *kernels.Ctx, bytes int) []byte {
	m.fresh = true
	return scratch(c, bytes)
}

// store gives out argument i the sizes of m.from and copies it there. argument 0 is
// the tensor that m.from looks at.
func (m *mover) store(c *kernels.Ctx, a kernels.Args, i int) error {
	if err := m.resize(a, i, m.from.sizes[:m.from.rank]); err != nil {
		return err
	}
	m.copy(c)
	return nil
}

// resize gives out argument i its sizes and sets m.to to it. Its element type must
// be that of argument 0.
func (m *mover) resize(a kernels.Args, i int, sizes []int) error {
	out := a.Tensor(i)
	if err := kernels.WantDType(i, out, a.Tensor(0).DType); err != nil {
		return err
	}
	if err := kernels.ResizeOut(a, i, sizes); err != nil {
		return err
	}
	m.to.of(out)
	return nil
}

// load sets m.from to t, converted to type d in scratch memory where it is another.
// i is the argument's index, for the error.
func (m *mover) load(c *kernels.Ctx, i int, t *tensor.Tensor, d tensor.DType) error {
	m.from.of(t)
	if t.DType == d {
		return nil
	}
	if !tensor.CanCast(t.DType, d) {
		return kernels.Bad(i, t.DType.String(), "a type that casts to "+d.String())
	}
	n := t.Numel()
	m.from.data, m.from.elem = m.scratch(c, n*d.Size()), d.Size()
	if !tensor.CastBytes(m.from.data, d, t.Data, t.DType, n) {
		return kernels.Bad(i, t.DType.String(), "a type that casts to "+d.String())
	}
	return nil
}

func scratch(c *kernels.Ctx, bytes int) []byte { return kernels.Scratch[uint8](c, bytes) }
