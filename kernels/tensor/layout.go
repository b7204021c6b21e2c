package tensor

// CopyLayout copies src into dst, which has the same type and sizes, element by
// logical element: where the dim orders differ, the bytes are rearranged. It is
// meant for inputs and moves; operators have faster ways.
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

// sameLayout reports equal strides wherever a dimension has more than one element.
func sameLayout(a, b *Tensor) bool {
	for d, n := range a.Sizes {
		if n > 1 && a.Strides[d] != b.Strides[d] {
			return false
		}
	}
	return true
}
