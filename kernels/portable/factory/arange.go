package factory

import (
	"math"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var rangeOps = []kernels.Op{
	{Schema: "aten::arange.out(Scalar end, *, Tensor(a!) out)", Func: arangeEnd, Numbers: opclass.Kept, DTypes: numbers, Family: kernels.Arith},
	{Schema: "aten::arange.start_out(Scalar start, Scalar end, Scalar step=1, *, Tensor(a!) out)", Func: arangeStart, Numbers: opclass.Kept, DTypes: numbers, Family: kernels.Arith},
}

func arangeEnd(c *kernels.Ctx, a kernels.Args) error {
	return arange(c, a, kernels.Scalar{Type: tensor.Int64}, 0, kernels.Scalar{Type: tensor.Int64, I: 1}, 1)
}

func arangeStart(c *kernels.Ctx, a kernels.Args) error {
	return arange(c, a, a.Scalar(0), 1, a.Scalar(2), 3)
}

// arange writes the numbers from start to the exclusive end, argument e, to out argument o. The count
// is computed in double from the untruncated numbers; as in PyTorch, integer outs then use
// truncated start and step.
func arange(c *kernels.Ctx, a kernels.Args, start kernels.Scalar, e int, step kernels.Scalar, o int) error {
	out, end := a.Tensor(o), a.Scalar(e)
	if s := step.Float(); s == 0 || s != s {
		return kernels.Badf(2, "a nonzero step", "%v", step)
	}
	n := math.Ceil((end.Float() - start.Float()) / step.Float())
	if !(n >= 0 && n < math.MaxInt>>7) {
		return kernels.Badf(e, "a finite end on the step's side of the start", "%v from %v by %v", end, start, step)
	}
	if err := kernels.ResizeOut(a, o, []int{int(n)}); err != nil {
		return err
	}
	switch d := out.DType; {
	case d.IsFloat():
		fillSteps(c, out, start.Float(), step.Float())
	case d.IsInt():
		fillSteps(c, out, start.Int(), step.Int())
	default:
		return kernels.Bad(o, d.String(), "a number type")
	}
	return nil
}

func fillSteps[C float64 | int64](c *kernels.Ctx, out *tensor.Tensor, start, step C) {
	fillBlocks(c, out, func(b []C, i int) {
		for j := range b {
			b[j] = start + C(step*C(i+j))
		}
	})
}

// fillBlocks stores what f writes for block after block of out, from element i on.
func fillBlocks[C float64 | int64](c *kernels.Ctx, out *tensor.Tensor, f func(b []C, i int)) {
	store, size := tensor.Storer[C](out.DType), out.DType.Size()
	buf := kernels.Scratch[C](c, 512)
	n := len(out.Data) / size
	for i := 0; i < n; i += len(buf) {
		c.Poll()
		b := buf[:min(len(buf), n-i)]
		f(b, i)
		store(out.Data[i*size:], b)
	}
}
