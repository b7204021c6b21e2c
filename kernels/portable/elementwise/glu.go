package elementwise

import (
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// halves is the state of glu: the two halves of its operand, and the loop over them.
type halves struct {
	a, b  tensor.Tensor
	sizes [tensor.MaxRank]int
	loop  any
}

// glu multiplies the first half along a dimension by the sigmoid of the second.
func glu(c *kernels.Ctx, a kernels.Args) error {
	self := a.Tensor(0)
	dim, err := kernels.WrapDim(1, a.Int(1), self.Rank())
	if err != nil {
		return err
	}
	if self.Rank() == 0 || self.Sizes[dim]%2 != 0 {
		return kernels.Badf(0, "an even size in the dimension", "%v", self)
	}
	h := kernels.Keep[halves](c)
	h.split(self, dim)
	cl := call{in: [maxIn + 1]arg{{Tensor: &h.a}, {Tensor: &h.b}}, out: outArg(a)}
	if err := cl.resolve(fractional, false); err != nil {
		return err
	}
	own := c.State
	c.State = &h.loop
	err = gated.run(c, a, &cl)
	c.State = own
	return err
}

// split sets the halves to parts of self's memory.
func (h *halves) split(self *tensor.Tensor, dim int) {
	sizes := h.sizes[:copy(h.sizes[:], self.Sizes)]
	sizes[dim] /= 2
	h.a = tensor.Tensor{DType: self.DType, Sizes: sizes, Strides: self.Strides, Data: self.Data}
	h.b = h.a
	if len(self.Data) > 0 {
		h.b.Data = self.Data[sizes[dim]*self.Strides[dim]*self.DType.Size():]
	}
}

func glu32(k *block[float32]) {
	simd.Sigmoid(k.out, k.b)
	simd.Mul(k.out, k.out, k.a)
}

func glu64(k *block[float64]) {
	map2(k, func(x, y float64) float64 { return x * sigmoid(y) })
}
