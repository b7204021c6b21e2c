package factory

import (
	"math"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var rangeOps = []kernels.Op{
	{Schema: "aten::arange.out(Scalar end, *, Tensor(a!) out)", Func: arangeEnd, DTypes: numbers, Family: kernels.Arith},
	{Schema: "aten::arange.start_out(Scalar start, Scalar end, Scalar step=1, *, Tensor(a!) out)", Func: arangeStart, DTypes: numbers, Family: kernels.Arith},
}

// steps is the state of arange: the loop's numbers and its buffers.
type steps struct {
	sizes [1]int
	start kernels.Scalar
	step  kernels.Scalar
}

func arangeEnd(c *kernels.Ctx, a kernels.Args) error {
	s := kernels.Keep[steps](c)
	s.start, s.step = kernels.Scalar{Type: tensor.Int64}, kernels.Scalar{Type: tensor.Int64, I: 1}
	return s.run(c, a, 0, 1)
}

func arangeStart(c *kernels.Ctx, a kernels.Args) error {
	s := kernels.Keep[steps](c)
	s.start, s.step = a.Scalar(0), a.Scalar(2)
	return s.run(c, a, 1, 3)
}

// run writes the numbers from start to the exclusive end, argument e, to out argument o. The count
// is computed in double from the untruncated numbers; as in PyTorch, integer outs then use
// truncated start and step.
func (s *steps) run(c *kernels.Ctx, a kernels.Args, e, o int) error {
	n, err := s.count(a.Scalar(e), e)
	if err != nil {
		return err
	}
	s.sizes[0] = n
	if err := kernels.ResizeOut(a, o, s.sizes[:]); err != nil {
		return err
	}
	out := a.Tensor(o)
	switch d := out.DType; {
	case d.IsFloat():
		return fillSteps(c, out, s.start.Float(), s.step.Float())
	case d.IsInt():
		return fillSteps(c, out, s.start.Int(), s.step.Int())
	default:
		return kernels.Bad(o, d.String(), "a number type")
	}
}

func (s *steps) count(end kernels.Scalar, e int) (int, error) {
	step := s.step.Float()
	if step == 0 || step != step {
		return 0, kernels.Badf(2, "a nonzero step", "%v", s.step)
	}
	n := math.Ceil((end.Float() - s.start.Float()) / step)
	if !(n >= 0 && n < math.MaxInt>>7) {
		return 0, kernels.Badf(e, "a finite end on the step's side of the start", "%v from %v by %v", end, s.start, s.step)
	}
	return int(n), nil
}

func fillSteps[C float64 | int64](c *kernels.Ctx, out *tensor.Tensor, start, step C) error {
	store, size := tensor.Storer[C](out.DType), out.DType.Size()
	buf := kernels.Scratch[C](c, 512)
	n := len(out.Data) / size
	for i := 0; i < n; i += len(buf) {
		b := buf[:min(len(buf), n-i)]
		for j := range b {
			b[j] = start + C(step*C(i+j))
		}
		store(out.Data[i*size:], b)
	}
	return nil
}
