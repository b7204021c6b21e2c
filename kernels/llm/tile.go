package llm

import (
	"fmt"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/strided"
)

// tileCrop is preprocess::tile_crop.out: it splits an image [C, H, W] into tiles [H/size · W/size, C, size, size],
// row by row.
func tileCrop(c *kernels.Ctx, a kernels.Args) error {
	x, size, out := a.Tensor(0), a.Int(1), a.Tensor(2)
	if x.Rank() != 3 || out.Rank() != 4 || x.DType != out.DType {
		return kernels.Badf(0, "a picture of rank 3 and an out of rank 4, of one type", "%v and %v", x, out)
	}
	h, w := x.Sizes[1], x.Sizes[2]
	if size <= 0 || int64(h)%size != 0 || int64(w)%size != 0 {
		return kernels.Badf(1, fmt.Sprintf("a divisor of height %d and width %d", h, w), "%d", size)
	}
	n := int(size)
	if h == 0 || w == 0 {
		n = min(n, 1<<20) // of no tile; sizes stay within what a tensor has
	}
	if err := kernels.ResizeOut(a, 2, []int{(h / n) * (w / n), x.Sizes[0], n, n}); err != nil {
		return err
	}
	var tiles, rows strided.View // [down, across, C, size, size] of both
	rows.Of(x)
	rows.Split(2, n)
	rows.Split(1, n)
	rows.Move(3, 0)
	rows.Move(2, 0)
	tiles.Of(out)
	tiles.Split(0, w/n)
	strided.CopyView(c, &tiles, &rows)
	return nil
}

// fallback is llama::fallback.out, a copy.
func fallback(c *kernels.Ctx, a kernels.Args) error {
	x, out := a.Tensor(0), a.Tensor(1)
	if x.DType != out.DType {
		return kernels.Bad(1, out.DType.String(), x.DType.String())
	}
	if err := kernels.ResizeOut(a, 1, x.Sizes); err != nil {
		return err
	}
	strided.CopyTensor(c, out, x)
	return nil
}
