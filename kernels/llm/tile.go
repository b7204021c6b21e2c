package llm

import (
	"fmt"

	"github.com/etrun-go/etrun/kernels"
)

// tileCrop is preprocess::tile_crop.out: it splits an image [C, H, W] into tiles [H/size · W/size, C, size, size],
// row by row.
func tileCrop(_ *kernels.Ctx, a kernels.Args) error {
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
	if !x.IsContiguous() || !out.IsContiguous() {
		return kernels.Badf(0, "contiguous tensors", "dim orders %v and %v", x.DimOrder, out.DimOrder)
	}
	cut(out.Data, x.Data, x.Sizes, n, n*x.DType.Size())
	return nil
}

// cut copies the tiles; row is the number of bytes in a row of a tile.
func cut(dst, src []byte, sizes []int, size, row int) {
	if len(src) == 0 {
		return
	}
	across, down := sizes[2]/size, sizes[1]/size
	for tile := range down * across {
		for c := range sizes[0] {
			for y := range size {
				at := ((c*sizes[1]+tile/across*size+y)*across + tile%across) * row
				copy(dst[:row], src[at:at+row])
				dst = dst[row:]
			}
		}
	}
}

// fallback is llama::fallback.out, a copy.
func fallback(_ *kernels.Ctx, a kernels.Args) error {
	x, out := a.Tensor(0), a.Tensor(1)
	if x.DType != out.DType {
		return kernels.Bad(1, out.DType.String(), x.DType.String())
	}
	if err := kernels.ResizeOut(a, 1, x.Sizes); err != nil {
		return err
	}
	for d, s := range x.Sizes {
		if s > 1 && x.Strides[d] != out.Strides[d] {
			return kernels.Badf(1, fmt.Sprintf("the input's dim order %v", x.DimOrder), "%v", out.DimOrder)
		}
	}
	copy(out.Data, x.Data)
	return nil
}
