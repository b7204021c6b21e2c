package index

import (
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/elementwise"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// bucketize runs (Tensor or Scalar self, Tensor boundaries, *, bool out_int32, bool right, out).
func bucketize(c *kernels.Ctx, a kernels.Args) error {
	b := &kernels.Keep[state](c).bucket
	if edges := a.Tensor(1); edges.Rank() != 1 {
		return kernels.Badf(1, "1 dimension", "%d", edges.Rank())
	}
	b.narrow, b.right, b.row = a.Bool(2), a.Bool(3), 0
	common, err := b.set(a, 0, 1, 4)
	if err != nil {
		return err
	}
	out, sizes := a.Tensor(4), []int(nil)
	if a[0].Kind == tensor.KindTensor {
		sizes = a.Tensor(0).Sizes
	}
	if err := kernels.ResizeOut(a, 4, sizes); err != nil {
		return err
	}
	b.edges = b.compared(c, a.Tensor(1), common)
	b.search(c, a, 0, common, out)
	return nil
}

// search finds the buckets of argument i, values of the common type, or a number.
func (b *bucketer) search(c *kernels.Ctx, a kernels.Args, i int, common tensor.DType, out *tensor.Tensor) {
	if a[i].Kind == tensor.KindTensor {
		b.values = b.compared(c, a.Tensor(i), common)
	} else {
		value := kernels.Scratch[uint8](c, common.Size())
		a.Scalar(i).Put(value, common)
		b.values = operand.Convert(c, value, common, b.compute)
	}
	b.out = operand.OutRows(c, out)
	c.Parallel(out.Numel(), cpu.Grain(1, 40_000), b)
	operand.StoreRows(c, out, b.out)
	b.values, b.edges, b.out = nil, nil, nil
}

// set checks the types of the arguments values, boundaries and out, and returns the common type of the values and the boundaries.
func (b *bucketer) set(a kernels.Args, values, boundaries, out int) (common tensor.DType, err error) {
	edges, types := a.Tensor(boundaries), elementwise.NewResultType()
	want := tensor.Int64
	if b.narrow {
		want = tensor.Int32
	}
	if err := kernels.WantDType(out, a.Tensor(out), want); err != nil {
		return 0, err
	}
	if types.Tensor(edges); a[values].Kind == tensor.KindTensor {
		types.Tensor(a.Tensor(values))
	} else {
		types.Number(a.Scalar(values))
	}
	compute, ok := tensor.ComputeType(types.Result())
	if common = types.Result(); !ok || common == tensor.Bool || common == tensor.Uint64 {
		return 0, kernels.Badf(values, "numbers to compare with "+edges.DType.String()+" boundaries", "common type %v", common)
	}
	b.compute = compute
	return common, nil
}

// compared returns the elements of t in logical order, rounded to the common type, as the type that they are compared in.
func (b *bucketer) compared(c *kernels.Ctx, t *tensor.Tensor, common tensor.DType) []byte {
	return operand.Convert(c, operand.Convert(c, operand.Rows(c, t), t.DType, common), common, b.compute)
}

// Range finds the buckets of values lo to hi.
func (b *bucketer) Range(_, lo, hi int) {
	find := operand.ByType(b.compute, bucketOf[float32], bucketOf[float64], bucketOf[int64])
	if b.row == 0 {
		find(b, b.edges, lo, hi)
		return
	}
	for lo < hi {
		r := lo / b.row
		end := min(hi, (r+1)*b.row)
		find(b, b.edges[r*b.rowSize:][:b.rowSize], lo, end)
		lo = end
	}
}

func bucketOf[T int64 | float32 | float64](b *bucketer, boundaries []byte, lo, hi int) {
	edges, right := tensor.View[T](boundaries), b.right
	for i, v := range tensor.View[T](b.values)[lo:hi] {
		first, end := 0, len(edges)
		for first < end {
			mid := int(uint(first+end) >> 1)
			if edge := edges[mid]; edge > v || !right && edge == v {
				end = mid
			} else {
				first = mid + 1
			}
		}
		b.put(lo+i, first)
	}
}

func (b *bucketer) put(i, bucket int) {
	if b.narrow {
		tensor.View[int32](b.out)[i] = int32(bucket)
	} else {
		tensor.View[int64](b.out)[i] = int64(bucket)
	}
}
