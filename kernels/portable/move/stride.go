package move

import (
	"math/bits"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// asStrided is aten::as_strided_copy: any sizes, strides and offset within the tensor's elements in memory order.
func asStrided(v *strided.View, a kernels.Args) error {
	self, strides := a.Tensor(0), a.Ints(2)
	var buf [tensor.MaxRank]int
	sizes, err := kernels.Sizes(buf[:], 1, a.Ints(1))
	if err != nil {
		return err
	}
	if len(strides) != len(sizes) {
		return kernels.Badf(2, itoa(len(sizes))+" strides", "%v", strides)
	}
	at := a.OptInt(3, 0)
	if at < 0 {
		return kernels.Badf(3, "an offset of at least 0", "%d", at)
	}
	n, _ := tensor.Product(sizes)
	if n > 0 && !reaches(sizes, strides, at, int64(self.Numel())) {
		return kernels.Badf(2, "strides that stay within "+itoa(self.Numel())+" elements", "%v for sizes %v from %d", strides, a.Ints(1), at)
	}
	v.Dense(self.Data, self.DType.Size(), sizes)
	v.Offset = int(at)
	for i, stride := range strides {
		v.Strides[i] = int(stride)
	}
	return nil
}

// reaches reports whether every element of the view is below limit. No size is 0.
func reaches(sizes []int, strides []int64, at, limit int64) bool {
	if at >= limit {
		return false
	}
	for i, n := range sizes {
		if n == 1 {
			continue
		}
		if strides[i] < 0 || strides[i] > limit || strides[i] > 0 && int64(n-1) > limit/strides[i] {
			return false
		}
		if at += int64(n-1) * strides[i]; at >= limit {
			return false
		}
	}
	return true
}

// diagonal is aten::diagonal_copy: dimensions dim1 and dim2 become a last one that runs along both, offset indices to
// the right of the main diagonal.
func diagonal(v *strided.View, a kernels.Args) error {
	d, err := dimOf(a, 2, a.Tensor(0))
	if err != nil {
		return err
	}
	e, err := dimOf(a, 3, a.Tensor(0))
	if err != nil {
		return err
	}
	if d == e {
		return kernels.Badf(3, "another dimension than dim1", "%d", e)
	}
	n := startDiagonal(v, d, e, a.Int(1))
	stride := v.Strides[d] + v.Strides[e]
	v.Remove(max(d, e))
	v.Remove(min(d, e))
	v.Insert(v.Rank, n, stride)
	return nil
}

// startDiagonal moves the view to the start of a diagonal and returns its length.
func startDiagonal(v *strided.View, d, e int, offset int64) int {
	rows, cols := v.Sizes[d], v.Sizes[e]
	right := int(min(max(offset, 0), int64(cols)))
	down := int(min(max(-max(offset, -int64(rows)), 0), int64(rows)))
	n := min(rows-down, cols-right)
	if n > 0 {
		v.Offset += right*v.Strides[e] + down*v.Strides[d]
	}
	return max(n, 0)
}

// unfold is aten::unfold_copy: windows of size indices, step apart, with their indices in a new last dimension.
func unfold(v *strided.View, a kernels.Args) error {
	d, err := kernels.WrapDim(1, a.Int(1), v.Rank)
	if err != nil {
		return err
	}
	have, stride := int64(1), 1
	if v.Rank > 0 {
		have, stride = int64(v.Sizes[d]), v.Strides[d]
	}
	size, step := a.Int(2), a.Int(3)
	if size < 0 || size > have {
		return kernels.Badf(2, "a window of at most "+itoa(int(have)), "%d", size)
	}
	if step < 1 {
		return kernels.Badf(3, "a step of at least 1", "%d", step)
	}
	if v.Rank > 0 {
		v.Narrow(d, 0, int((have-size)/step+1), int(min(step, have+1)))
	}
	v.Insert(v.Rank, int(size), stride)
	return nil
}

// pixelShuffle is aten::pixel_shuffle, [C·r², H, W] as [C, H·r, W·r], or its inverse aten::pixel_unshuffle.
func pixelShuffle(inverse bool) kernels.Func {
	return func(c *kernels.Ctx, a kernels.Args) error {
		m := kernels.Keep[state](c)
		self := a.Tensor(0)
		k := self.Rank() - 3
		if k < 0 {
			return kernels.Badf(0, "at least 3 dimensions", "%d", self.Rank())
		}
		if v := a.Int(1); v < 1 || v >= 1<<(bits.UintSize/2-1) {
			return kernels.Badf(1, "a factor of at least 1", "%d", v)
		}
		r := int(a.Int(1))
		var buf [tensor.MaxRank]int
		sizes := append(buf[:0], self.Sizes...)
		s, channels, space := sizes[k:], &m.from, &m.to
		switch {
		case !inverse && s[0]%(r*r) != 0:
			return kernels.Badf(0, "a multiple of "+itoa(r*r)+" channels", "%v", self)
		case inverse && (s[1]%r != 0 || s[2]%r != 0):
			return kernels.Badf(0, "a height and width divisible by "+itoa(r), "%v", self)
		case inverse:
			channels, space = space, channels
			s[0], s[1], s[2] = saturate(s[0], r*r), s[1]/r, s[2]/r
		default:
			s[0], s[1], s[2] = s[0]/(r*r), saturate(s[1], r), saturate(s[2], r)
		}
		if err := m.resize(a, 2, sizes); err != nil {
			return err
		}
		m.from.Of(self)
		splitBlocks(channels, space, k, r)
		m.copy(c)
		return nil
	}
}

// splitBlocks splits both tensors of a pixel shuffle, from dimension k on, to [C, H, r, W, r]: channels is [C·r², H, W],
// space is [C, H·r, W·r].
func splitBlocks(channels, space *strided.View, k, r int) {
	space.Split(k+2, r)
	space.Split(k+1, r)
	channels.Split(k, r*r)
	channels.Split(k+1, r)
	channels.Move(k+2, k+4)
	channels.Swap(k+1, k+2)
}
