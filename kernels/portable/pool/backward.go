package pool

import (
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/kernels/window"
)

// Arguments of max_pool2d_with_indices_backward.grad_input and the operator for 3 dimensions.
const (
	backCeil, backIndices, backOut = 6, 7, 8
	backDilation                   = 5
)

// maxPoolBackward adds each gradient to the element that was the maximum of its window.
func maxPoolBackward(dims int) kernels.Func {
	return func(c *kernels.Ctx, a kernels.Args) error {
		grad, x := a.Tensor(0), a.Tensor(1)
		if !x.DType.IsFloat() {
			return kernels.Bad(1, x.DType.String(), "a floating type")
		}
		for _, i := range []int{0, backOut} {
			if t := a.Tensor(i); t.DType != x.DType {
				return kernels.Bad(i, t.DType.String(), "the input's "+x.DType.String())
			}
		}
		if t := a.Tensor(backIndices); t.DType != tensor.Int64 {
			return kernels.Bad(backIndices, t.DType.String(), "int64")
		}
		var w pooling
		if err := w.backward(a, dims); err != nil {
			return err
		}
		if grad.DType == tensor.Float64 {
			return scatter[float64](c, a, &w)
		}
		return scatter[float32](c, a, &w)
	}
}

// backward checks the geometry of a backward pooling.
func (w *pooling) backward(a kernels.Args, dims int) error {
	x := a.Tensor(1)
	if err := w.input(1, x, dims); err != nil {
		return err
	}
	if err := w.slide(a, 2, backDilation, a.Bool(backCeil)); err != nil {
		return err
	}
	var dst [5]int
	sizes := w.sizes(&dst, x)
	for _, i := range []int{0, backIndices} {
		if t := a.Tensor(i); !slices.Equal(t.Sizes, sizes) {
			return kernels.Badf(i, "the pooling's output sizes", "%v", t)
		}
	}
	return kernels.ResizeOut(a, backOut, x.Sizes)
}

func scatter[T tensor.Compute](c *kernels.Ctx, a kernels.Args, w *pooling) error {
	out := a.Tensor(backOut)
	grad, index := operand.In[T](c, a.Tensor(0)), operand.In[int64](c, a.Tensor(backIndices))
	dst := operand.Out[T](c, out)
	clear(dst)
	points, outPoints := window.Volume(w.In), window.Volume(w.Out)
	poll := c.Poller()
	for i, at := range index {
		poll.Done(1)
		if at < 0 || at >= int64(points) {
			return kernels.Badf(backIndices, "indices into a plane of the input", "%d for %d elements", at, points)
		}
		dst[i/outPoints*points+int(at)] += grad[i]
	}
	operand.Store(c, out, dst)
	return nil
}
