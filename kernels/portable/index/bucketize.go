package index

import (
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// bucketer finds the buckets of values among sorted boundaries: the first boundary that is not below a value or, for
// right, the first above it. As in ATen, NaN is above all boundaries, and a boundary that is NaN is above no value:
// its bucket depends on the search.
type bucketer struct {
	compute tensor.DType // that values and boundaries are compared in
	right   bool
	narrow  bool // the out is int32
	values  []byte
	edges   []byte
	out     []byte
}

// bucketize runs (Tensor self, Tensor boundaries, *, bool out_int32, bool right, out).
func bucketize(c *kernels.Ctx, a kernels.Args) error {
	k := kernels.Keep[state](c)
	self, edges := a.Tensor(0), a.Tensor(1)
	common, err := k.bucket.set(a, self.DType, self.Rank() == 0)
	if err != nil {
		return err
	}
	if err := kernels.ResizeOut(a, 4, self.Sizes); err != nil {
		return err
	}
	k.bucket.values, k.bucket.edges = k.bucket.compared(c, self, common), k.bucket.compared(c, edges, common)
	out := a.Tensor(4)
	k.bucket.out = operand.OutRows(c, out)
	c.Parallel(self.Numel(), cpu.Grain(1, 40_000), &k.bucket)
	operand.StoreRows(c, out, k.bucket.out)
	k.bucket.values, k.bucket.edges, k.bucket.out = nil, nil, nil
	return nil
}

// bucketizeScalar runs (Scalar self, Tensor boundaries, *, bool out_int32, bool right, out).
func bucketizeScalar(c *kernels.Ctx, a kernels.Args) error {
	k := kernels.Keep[state](c)
	number := a.Scalar(0)
	common, err := k.bucket.set(a, scalarType(number, a.Tensor(1).DType), true)
	if err != nil {
		return err
	}
	if err := kernels.ResizeOut(a, 4, nil); err != nil {
		return err
	}
	value := kernels.Scratch[uint8](c, 8)
	if number.IsFloat() {
		tensor.Put(value, common, number.F)
	} else {
		tensor.Put(value, common, number.I)
	}
	k.bucket.values = operand.Convert(c, value[:common.Size()], common, k.bucket.compute)
	k.bucket.edges, k.bucket.out = k.bucket.compared(c, a.Tensor(1), common), a.Tensor(4).Data
	k.bucket.Range(0, 0, 1)
	k.bucket.values, k.bucket.edges, k.bucket.out = nil, nil, nil
	return nil
}

// scalarType returns the type of a number for promotion with boundaries: a float is float32, PyTorch's default, among
// integers.
func scalarType(s kernels.Scalar, edges tensor.DType) tensor.DType {
	switch {
	case s.IsFloat() && !edges.IsFloat():
		return tensor.Float32
	case edges == tensor.Bool:
		return s.Type
	}
	return edges
}

// set checks the arguments and chooses the common type of the values' and the boundaries'.
// Values without dimensions do not widen it within a category.
func (b *bucketer) set(a kernels.Args, values tensor.DType, single bool) (tensor.DType, error) {
	edges := a.Tensor(1)
	if edges.Rank() != 1 {
		return 0, kernels.Badf(1, "1 dimension", "%d", edges.Rank())
	}
	b.narrow, b.right = a.Bool(2), a.Bool(3)
	want := tensor.Int64
	if b.narrow {
		want = tensor.Int32
	}
	if err := kernels.WantDType(4, a.Tensor(4), want); err != nil {
		return 0, err
	}
	common := edges.DType
	if !single || category(values) > category(common) {
		common = tensor.Promote(values, common)
	}
	compute, ok := tensor.ComputeType(common)
	if !ok || common == tensor.Bool || common == tensor.Uint64 || !tensor.CanCast(values, common) || !tensor.CanCast(edges.DType, common) {
		return 0, kernels.Badf(0, "numbers to compare", "%v, boundaries %v", values, edges.DType)
	}
	b.compute = compute
	return common, nil
}

// category orders types as PyTorch's type promotion does.
func category(d tensor.DType) int {
	switch {
	case d == tensor.Bool:
		return 0
	case d.IsInt():
		return 1
	}
	return 2
}

// compared returns the elements of t in logical order, rounded to the common type, as the type that they are compared in.
func (b *bucketer) compared(c *kernels.Ctx, t *tensor.Tensor, common tensor.DType) []byte {
	return operand.Convert(c, operand.Convert(c, operand.Rows(c, t), t.DType, common), common, b.compute)
}

// Range finds the buckets of values lo to hi.
func (b *bucketer) Range(_, lo, hi int) {
	operand.ByType(b.compute, bucketOf[float32], bucketOf[float64], bucketOf[int64])(b, lo, hi)
}

func bucketOf[T int64 | float32 | float64](b *bucketer, lo, hi int) {
	edges, right := tensor.View[T](b.edges), b.right
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
