package pool

import (
	"fmt"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/kernels/window"
)

var columnOps = []kernels.Op{
	{Schema: "aten::col2im.out(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride, *, Tensor(a!) out)",
		Func: operand.SameType(operand.Typed(0, "a number type", columnsToImage[float32], columnsToImage[float64], columnsToImage[int64]), 0,
			6),
		DTypes: "integers, float16, bfloat16, float32, float64", Family: kernels.Sum},
}

// columns sums the elements of windows, the columns of a matrix, to an image: planes of points.
type columns[C tensor.Compute] struct {
	window.Shape
	planes int
	c      *kernels.Ctx
	x, y   []C
}

// columnsToImage is aten::col2im: out[c][p] is the sum of the elements of the columns of channel c that cover point p.
func columnsToImage[C tensor.Compute](c *kernels.Ctx, a kernels.Args) error {
	k := kernels.Keep[columns[C]](c)
	k.c = c
	self, out := a.Tensor(0), a.Tensor(6)
	if err := k.read(a); err != nil {
		return err
	}
	r, taps, windows := self.Rank(), int64(k.Kernel[1])*int64(k.Kernel[2]), int64(k.Out[1])*int64(k.Out[2])
	if r != 2 && r != 3 {
		return kernels.Badf(0, "2 or 3 dimensions", "%d", r)
	}
	rows, cols := int64(self.Sizes[r-2]), int64(self.Sizes[r-1])
	if rows == 0 || rows%taps != 0 || cols != windows {
		return kernels.Badf(0, fmt.Sprintf("sizes [channels · %d, %d]", taps, windows), "%v", self)
	}
	var buf [tensor.MaxRank]int
	sizes := append(append(buf[:0], self.Sizes[:r-2]...), int(rows/taps), k.In[1], k.In[2])
	if _, ok := tensor.Product(sizes); !ok {
		return kernels.Badf(1, "an out whose size fits", "%v", sizes)
	}
	if err := kernels.ResizeOut(a, 6, sizes); err != nil || out.Numel() == 0 {
		return err
	}
	k.planes = out.Numel() / window.Volume(k.In)
	k.x, k.y = operand.In[C](c, self), operand.Out[C](c, out)
	c.Parallel(k.planes, cpu.Grain(int(taps*windows), 3000), k)
	operand.Store(c, out, k.y)
	k.x, k.y = nil, nil
	return nil
}

// read reads the sizes of the image and the windows: output_size, kernel_size, dilation, padding and stride.
func (k *columns[C]) read(a kernels.Args) error {
	for i, p := range []struct {
		dst   *[3]int
		least int64
	}{{&k.In, 1}, {&k.Kernel, 1}, {&k.Dilate, 1}, {&k.Pad, 0}, {&k.Stride, 1}} {
		if err := window.Read(p.dst, a, i+1, 2, p.least, nil); err != nil {
			return err
		}
	}
	for d := range 3 {
		if k.Slide(d, false); k.Out[d] < 1 {
			return kernels.Badf(2, "a kernel that fits the image", "extent %d for size %d and padding %d", k.Extent(d), k.In[d], k.Pad[d])
		}
	}
	return nil
}

// Range sums planes lo to hi.
func (k *columns[C]) Range(_, lo, hi int) {
	image, windows := window.Volume(k.In), k.Out[1]*k.Out[2]
	taps, poll := k.Kernel[1]*k.Kernel[2], k.c.Poller()
	for p := lo; p < hi; p++ {
		plane := k.y[p*image:][:image]
		clear(plane)
		for t := range taps {
			poll.Done(windows)
			k.add(plane, k.x[(p*taps+t)*windows:][:windows], t/k.Kernel[2], t%k.Kernel[2])
		}
	}
}

// add adds a row of the matrix, tap (h, w) of all windows, to a plane.
func (k *columns[C]) add(plane, row []C, h, w int) {
	for i := range k.Out[1] {
		y := k.Start(1, i) + h*k.Dilate[1]
		if y < 0 || y >= k.In[1] {
			continue
		}
		line := plane[y*k.In[2]:][:k.In[2]]
		for j, v := range row[i*k.Out[2]:][:k.Out[2]] {
			if x := k.Start(2, j) + w*k.Dilate[2]; x >= 0 && x < k.In[2] {
				line[x] += v
			}
		}
	}
}
