package strided

import (
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// View is a view of elements: sizes and strides that need not be dense. Operators change a view instead of moving
// elements. The zero value is empty; Of and Dense initialize it.
type View struct {
	Buffer
	Elem    int // bytes per element
	Rank    int
	Sizes   [maxDims]int
	Strides [maxDims]int // in elements
}

// Of makes v a view of t.
func (v *View) Of(t *tensor.Tensor) {
	v.Buffer, v.Elem, v.Rank = Buffer{Data: t.Data}, t.DType.Size(), t.Rank()
	copy(v.Sizes[:], t.Sizes)
	copy(v.Strides[:], t.Strides)
}

// Dense makes v a view of data as a contiguous array.
func (v *View) Dense(data []byte, elem int, sizes []int) {
	v.Buffer, v.Elem, v.Rank = Buffer{Data: data}, elem, len(sizes)
	copy(v.Sizes[:], sizes)
	DenseStrides(v.Strides[:], sizes)
}

// Shape returns the sizes. They are valid until v changes.
func (v *View) Shape() []int { return v.Sizes[:v.Rank] }

// Insert inserts a dimension before dimension d.
func (v *View) Insert(d, size, stride int) {
	copy(v.Sizes[d+1:v.Rank+1], v.Sizes[d:v.Rank])
	copy(v.Strides[d+1:v.Rank+1], v.Strides[d:v.Rank])
	v.Sizes[d], v.Strides[d] = size, stride
	v.Rank++
}

// Remove removes dimension d; the view keeps its index 0.
func (v *View) Remove(d int) {
	copy(v.Sizes[d:v.Rank-1], v.Sizes[d+1:v.Rank])
	copy(v.Strides[d:v.Rank-1], v.Strides[d+1:v.Rank])
	v.Rank--
}

// Narrow selects n indices of dimension d: start, start+step, … A step of 0 repeats one index, a negative one goes
// backwards.
func (v *View) Narrow(d, start, n, step int) {
	if n > 0 { // an empty range may start at the end, beyond the last element
		v.Offset += start * v.Strides[d]
	}
	v.Sizes[d] = n
	v.Strides[d] *= step
}

// Split splits dimension d into one of size/inner and one of inner.
func (v *View) Split(d, inner int) {
	stride := v.Strides[d]
	v.Insert(d+1, inner, stride)
	v.Sizes[d] /= max(inner, 1)
	v.Strides[d] = stride * inner
}

// Swap exchanges two dimensions.
func (v *View) Swap(d, e int) {
	v.Sizes[d], v.Sizes[e] = v.Sizes[e], v.Sizes[d]
	v.Strides[d], v.Strides[e] = v.Strides[e], v.Strides[d]
}

// Move moves dimension d to position e; the order of the others stays.
func (v *View) Move(d, e int) {
	size, stride := v.Sizes[d], v.Strides[d]
	v.Remove(d)
	v.Insert(e, size, stride)
}

// Expand broadcasts v to sizes: it inserts leading dimensions and repeats those of size 1.
func (v *View) Expand(sizes []int) {
	for v.Rank < len(sizes) {
		v.Insert(0, 1, 0)
	}
	for d, n := range sizes {
		if v.Sizes[d] == 1 {
			v.Sizes[d], v.Strides[d] = n, 0
		}
	}
}

// View copies src to dst, a view of the same sizes. See [Copier.Copy] for what the strides may be.
func (s *Copier) View(c Threads, dst, src *View) {
	s.Copy(c, src.Elem, shapeOf(dst, src), dst.Buffer, src.Buffer)
}

// CopyView is [Copier.View] with a Copier that is idle.
func CopyView(c Threads, dst, src *View) {
	Copy(c, src.Elem, shapeOf(dst, src), dst.Buffer, src.Buffer)
}

// CopyTensor copies the elements of src, broadcast to the sizes of dst, which they fit. Dim orders may differ.
func CopyTensor(c Threads, dst, src *tensor.Tensor) {
	const plain = 32 << 10 // bytes that take longer to plan than to copy
	if n := dst.NBytes(); n <= plain && dst.IsContiguous() && src.IsContiguous() && slices.Equal(dst.Sizes, src.Sizes) {
		copy(dst.Data, src.Data)
		return
	}
	var from, to View
	from.Of(src)
	from.Expand(dst.Sizes)
	to.Of(dst)
	CopyView(c, &to, &from)
}

func shapeOf(dst, src *View) Shape {
	return Shape{Sizes: dst.Shape(), Dst: dst.Strides[:dst.Rank], Src: src.Strides[:dst.Rank]}
}
