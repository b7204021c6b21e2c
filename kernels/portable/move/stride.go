package move

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"math/bits"
)

// asStrided is aten::as_strided_copy: any sizes, strides and offset over the
// tensor's elements in memory order, checked to stay within them.
func asStrided(c *kernels.Ctx, a kernels.Args) error {
	m := kernels.Keep[mover](c)
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
	m.from.of(self)
	m.from.dense(self.Data, self.DType.Size(), sizes)
	m.from.at = int(at)
	for i, v := range strides {
		m.from.strides[i] = int(v)
	}
	return m.store(c, a, 4)
}

// reaches reports whether every element of the view lies below limit. No size is 0.
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

// diagonalCopy is aten::diagonal_copy: dimensions dim1 and dim2 become one at the
// end that runs along both, offset indices to the right of the main diagonal.
func diagonalCopy(c *kernels.Ctx, a kernels.Args) error {
	m := kernels.Keep[mover](c)
	v := &m.from
	v.of(a.Tensor(0))
	d, err := dimOf(2, a.Int(2), a.Tensor(0))
	if err != nil {
		return err
	}
	e, err := dimOf(3, a.Int(3), a.Tensor(0))
	if err != nil {
		return err
	}
	if d == e {
		return kernels.Badf(3, "another dimension than dim1", "%d", e)
	}
	n := diagonal(v, d, e, a.Int(1))
	stride := v.strides[d] + v.strides[e]
	v.remove(max(d, e))
	v.remove(min(d, e))
	v.insert(v.rank, n, stride)
	return m.store(c, a, 4)
}

// diagonal moves the view to the start of a diagonal and gives its length.
func diagonal(v *view, d, e int, offset int64) int {
	rows, cols := v.sizes[d], v.sizes[e]
	right := int(min(max(offset, 0), int64(cols)))
	down := int(min(max(-max(offset, -int64(rows)), 0), int64(rows)))
	n := min(rows-down, cols-right)
	if n > 0 {
		v.at += right*v.strides[e] + down*v.strides[d]
	}
	return max(n, 0)
}

// unfoldCopy is aten::unfold_copy: windows of size indices, step apart, their
// indices in a new last dimension.
func unfoldCopy(c *kernels.Ctx, a kernels.Args) error {
	m := kernels.Keep[mover](c)
	v := &m.from
	v.of(a.Tensor(0))
	d, err := kernels.WrapDim(1, a.Int(1), v.rank)
	if err != nil {
		return err
	}
	have, stride := int64(1), 1
	if v.rank > 0 {
		have, stride = int64(v.sizes[d]), v.strides[d]
	}
	size, step := a.Int(2), a.Int(3)
	if size < 0 || size > have {
		return kernels.Badf(2, "a window of at most "+itoa(int(have)), "%d", size)
	}
	if step < 1 {
		return kernels.Badf(3, "a step of at least 1", "%d", step)
	}
	if v.rank > 0 {
		v.narrow(d, 0, int((have-size)/step+1), int(min(step, have+1)))
	}
	v.insert(v.rank, int(size), stride)
	return m.store(c, a, 4)
}

// pixelShuffle is aten::pixel_shuffle: [C·r², H, W] as [C, H·r, W·r].
func pixelShuffle(c *kernels.Ctx, a kernels.Args) error {
	r, err := factor(a)
	if err != nil {
		return err
	}
	m := kernels.Keep[mover](c)
	self := a.Tensor(0)
	k := self.Rank() - 3
	if self.Sizes[k]%(r*r) != 0 {
		return kernels.Badf(0, "a multiple of "+itoa(r*r)+" channels", "%v", self)
	}
	var buf [tensor.MaxRank]int
	sizes := append(buf[:0], self.Sizes...)
	sizes[k], sizes[k+1], sizes[k+2] = sizes[k]/(r*r), saturate(sizes[k+1], r), saturate(sizes[k+2], r)
	if err := m.resize(a, 2, sizes); err != nil {
		return err
	}
	m.from.of(self)
	blocks(&m.from, &m.to, k, r)
	m.copy(c)
	return nil
}

// pixelUnshuffle is aten::pixel_unshuffle: [C, H·r, W·r] as [C·r², H, W].
func pixelUnshuffle(c *kernels.Ctx, a kernels.Args) error {
	r, err := factor(a)
	if err != nil {
		return err
	}
	m := kernels.Keep[mover](c)
	self := a.Tensor(0)
	k := self.Rank() - 3
	if self.Sizes[k+1]%r != 0 || self.Sizes[k+2]%r != 0 {
		return kernels.Badf(0, "a height and width divisible by "+itoa(r), "%v", self)
	}
	var buf [tensor.MaxRank]int
	sizes := append(buf[:0], self.Sizes...)
	sizes[k], sizes[k+1], sizes[k+2] = saturate(sizes[k], r*r), sizes[k+1]/r, sizes[k+2]/r
	if err := m.resize(a, 2, sizes); err != nil {
		return err
	}
	m.from.of(self)
	blocks(&m.to, &m.from, k, r)
	m.copy(c)
	return nil
}

// factor is the factor of pixel_shuffle and its inverse, whose tensors have at least
// three dimensions.
func factor(a kernels.Args) (int, error) {
	if a.Tensor(0).Rank() < 3 {
		return 0, kernels.Badf(0, "at least 3 dimensions", "%d", a.Tensor(0).Rank())
	}
	if r := a.Int(1); r > 0 && r < 1<<(bits.UintSize/2-1) {
		return int(r), nil
	}
	return 0, kernels.Badf(1, "a factor of at least 1", "%d", a.Int(1))
}

// blocks gives both tensors of a pixel shuffle the dimensions [C, H, r, W, r] from
// k on: channels is [C·r², H, W], space is [C, H·r, W·r].
func blocks(channels, space *view, k, r int) {
	space.split(k+2, r)
	space.split(k+1, r)
	channels.split(k, r*r)
	channels.split(k+1, r)
	channels.shift(k+2, k+4)
	channels.swap(k+1, k+2)
}
