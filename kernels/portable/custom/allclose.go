// Package custom (no compatibility promise) contains operators that ExecuTorch adds to the ATen
// list.
package custom

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Ops returns the package's operators.
func Ops() []kernels.Op { return ops }

const numbers = "integers, floats, bool → bool"

var ops = []kernels.Op{
	{
		Schema: "aten::allclose.out(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False, bool dummy_param=False, *, Tensor(a!) out)",
		Func:   allclose, DTypes: numbers, Family: kernels.Exact, Note: "operands of one type and the same sizes",
	},
	{
		Schema: "aten::allclose.Tensor(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False, bool dummy_param=False) -> Tensor",
		Func:   allclose, DTypes: numbers, Family: kernels.Exact, Note: "operands of one type and the same sizes",
	},
}

// pairCost is the cost of a pair of elements in picoseconds.
const pairCost = 1200

// allclose is torch.allclose: whether every pair of elements is equal, or finite with
//
//	|self - other| ≤ atol + rtol · |other|
//
// or, with equal_nan, two NaNs. The result is a bool of one element.
func allclose(c *kernels.Ctx, a kernels.Args) error {
	x, y, out := a.Tensor(0), a.Tensor(1), a[6]
	if err := checkAllclose(x, y, out); err != nil {
		return err
	}
	if err := out.Tensor.Resize([]int{}); err != nil {
		return &kernels.OutError{Arg: 6, Err: err}
	}
	p := kernels.Keep[closeness](c)
	p.x, p.y, p.size, p.load = x.Data, y.Data, x.DType.Size(), tensor.Loader[float64](x.DType)
	p.rtol, p.atol, p.nan = a.Float(2), a.Float(3), a.Bool(4)
	p.apart.Store(false)
	p.block = kernels.Scratch[float64](c, 2*blockSize*c.Threads())
	c.Parallel(x.Numel(), cpu.Grain(1, pairCost), p)
	tensor.Data[bool](out.Tensor)[0] = !p.apart.Load()
	return nil
}

func checkAllclose(x, y *tensor.Tensor, out *tensor.Value) error {
	if tensor.Loader[float64](x.DType) == nil {
		return kernels.Bad(0, x.DType.String(), "numbers")
	}
	if y.DType != x.DType || !slices.Equal(x.Sizes, y.Sizes) {
		return kernels.Badf(1, fmt.Sprintf("as the first, %v", x), "%v", y)
	}
	for d, s := range x.Sizes {
		if s > 1 && x.Strides[d] != y.Strides[d] {
			return kernels.Badf(1, fmt.Sprintf("dim order %v", x.DimOrder), "%v", y.DimOrder)
		}
	}
	if out.Kind != tensor.KindTensor || out.Tensor.DType != tensor.Bool || out.Tensor.Numel() != 1 || len(out.Tensor.Data) != 1 {
		return kernels.Badf(6, "a bool tensor of one element", "%v", out.Kind)
	}
	return nil
}

const blockSize = 512

// closeness is the loop over pairs of elements.
type closeness struct {
	x, y       []byte
	size       int
	load       tensor.LoadFunc[float64]
	rtol, atol float64
	nan        bool
	apart      atomic.Bool
	block      []float64 // per thread: a block of each operand
}

// Range compares pairs [lo, hi).
func (p *closeness) Range(worker, lo, hi int) {
	block := p.block[2*blockSize*worker:][:2*blockSize]
	for at := lo; at < hi && !p.apart.Load(); at += blockSize {
		n := min(blockSize, hi-at)
		x, y := p.x[at*p.size:(at+n)*p.size], p.y[at*p.size:(at+n)*p.size]
		a, b := block[:n], block[blockSize:][:n]
		p.load(a, x)
		p.load(b, y)
		for i := range a {
			if !p.close(a[i], b[i]) {
				p.apart.Store(true)
				return
			}
		}
	}
}

func (p *closeness) close(x, y float64) bool {
	switch {
	case x == y:
		return true
	case x != x || y != y:
		return p.nan && x != x && y != y
	}
	return !math.IsInf(x, 0) && !math.IsInf(y, 0) && math.Abs(x-y) <= p.atol+p.rtol*math.Abs(y)
}
