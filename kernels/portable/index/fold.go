package index

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
)

const (
	foldSum foldKind = iota
	foldProd
	foldMean // this one and those below depend on the order of numbers
	foldMax
	foldMin
)

// The names of the kinds, of aten::scatter_reduce and of aten::scatter.
var (
	reduceNames  = map[string]foldKind{"sum": foldSum, "prod": foldProd, "mean": foldMean, "amax": foldMax, "amin": foldMin}
	scatterNames = map[string]foldKind{"add": foldSum, "multiply": foldProd}
)

// scatterReduce is aten::scatter_reduce.two.
func scatterReduce(c *kernels.Ctx, a kernels.Args) error {
	k := kernels.Keep[state](c)
	how, ok := reduceNames[a.Str(4)]
	if !ok {
		return kernels.Badf(4, "sum, prod, mean, amax or amin", "%q", a.Str(4))
	}
	src, err := k.source(c, a)
	if err != nil {
		return err
	}
	k.fold = fold{how: how, includeSelf: a.Bool(5), each: 1}
	return k.scatterFold(c, a, src)
}

// scatterWith is aten::scatter.reduce and aten::scatter.value_reduce.
func scatterWith(c *kernels.Ctx, a kernels.Args) (err error) {
	k := kernels.Keep[state](c)
	how, ok := scatterNames[a.Str(4)]
	if !ok {
		return kernels.Badf(4, "add or multiply", "%q", a.Str(4))
	}
	k.fold = fold{how: how, includeSelf: true, each: 1}
	var src []byte
	if a[3].Kind == tensor.KindTensor {
		src, err = k.source(c, a)
	} else {
		k.fold.each = 0
		src, err = k.number(c, a)
	}
	if err != nil {
		return err
	}
	return k.scatterFold(c, a, src)
}

func (k *state) scatterFold(c *kernels.Ctx, a kernels.Args, src []byte) error {
	d := a.Tensor(0).DType
	add := operand.ByCompute(d, foldAlong[float32], foldAlong[float64], foldAlong[int64])
	switch {
	case add == nil:
		return kernels.Bad(0, d.String(), "a real type that operators compute on")
	case d == tensor.Bool && k.fold.how == foldMean:
		return kernels.Bad(0, d.String(), "a number type for a mean")
	case d == tensor.Uint64 && k.fold.how >= foldMean: // computed as int64, which orders them otherwise
		return kernels.Bad(0, d.String(), "a type that int64 represents")
	}
	return k.scatter(c, a, src, k.fold.each, add)
}

// foldAlong combines source elements with those of the table, and divides the sums of a mean.
func foldAlong[C tensor.Compute](k *state, c *kernels.Ctx, d tensor.DType, table, dense []byte) {
	accumulate(c, d, table, dense, func(sums, x []C) {
		counts := kernels.Scratch[int64](c, len(sums))
		start := int64(0)
		if k.fold.includeSelf {
			start = 1
		}
		for i := range counts {
			counts[i] = start
		}
		foldRows(k, folds[C](k.fold.how), sums, x, counts)
		if k.fold.how == foldMean {
			wrapTo(d, sums, table)
			c.Blocks(len(sums), func(lo, hi int) { divideMeans(sums[lo:hi], counts[lo:hi]) })
		}
	})
}

func foldRows[C tensor.Compute](k *state, f func(a, b C) C, sums, x []C, counts []int64) {
	step, next, each := k.row.step, k.row.next, k.fold.each
	k.row.eachRow(k.strides[:], each, func(indices []int64, base, with int) {
		for i, v := range indices {
			at := base + int(v)*step + i*next
			value := x[with+i*each]
			if counts[at] > 0 {
				value = f(sums[at], value)
			}
			sums[at] = value
			counts[at]++
		}
	})
}

// folds returns the function of a kind. NaN passes through all of them.
func folds[C tensor.Compute](how foldKind) func(a, b C) C {
	switch how {
	case foldProd:
		return func(a, b C) C { return a * b }
	case foldMax:
		return func(a, b C) C { return max(a, b) }
	case foldMin:
		return func(a, b C) C { return min(a, b) }
	}
	return func(a, b C) C { return a + b }
}

// wrapTo wraps the sums of integers narrower than C to type d, as PyTorch's are. table is a buffer for them.
func wrapTo[C tensor.Compute](d tensor.DType, sums []C, table []byte) {
	if d.IsInt() && d != tensor.TypeOf[C]() {
		tensor.Storer[C](d)(table, sums)
		tensor.Loader[C](d)(sums, table)
	}
}

// divideMeans divides sums by the number of their terms; integers are rounded down.
func divideMeans[C tensor.Compute](sums []C, counts []int64) {
	one, two := C(1), C(2)
	integral := one/two == 0
	for i, n := range counts {
		if n < 2 {
			continue
		}
		q := sums[i] / C(n)
		if integral && sums[i] < q*C(n) {
			q--
		}
		sums[i] = q
	}
}
