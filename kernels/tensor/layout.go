package tensor

// CopyLayout copies src into dst, which must have the same type and sizes. If the dim orders
// differ, the elements are rearranged. It is meant for inputs and MoveCalls; operators have faster
// implementations.
func CopyLayout(dst, src *Tensor) {
	if sameLayout(dst, src) {
		copy(dst.Data, src.Data)
		return
	}
	n := dst.Numel()
	if n == 0 {
		return
	}
	size := dst.DType.Size()
	var index [MaxRank]int
	to, from := 0, 0
	for range n {
		copy(dst.Data[to*size:(to+1)*size], src.Data[from*size:])
		for d := len(dst.Sizes) - 1; d >= 0; d-- {
			index[d]++
			to += dst.Strides[d]
			from += src.Strides[d]
			if index[d] < dst.Sizes[d] {
				break
			}
			to -= index[d] * dst.Strides[d]
			from -= index[d] * src.Strides[d]
			index[d] = 0
		}
	}
}

// Logical returns the elements in logical order: t's own bytes if they are in that order, else a copy.
func (t *Tensor) Logical() []byte {
	if t.IsContiguous() {
		return t.Data
	}
	c := New(t.DType, t.Sizes...)
	CopyLayout(c, t)
	return c.Data
}

// sameLayout reports whether the strides of all dimensions with more than one element are equal.
func sameLayout(a, b *Tensor) bool {
	for d, n := range a.Sizes {
		if n > 1 && a.Strides[d] != b.Strides[d] {
			return false
		}
	}
	return true
}
