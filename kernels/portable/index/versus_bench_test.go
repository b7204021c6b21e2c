package index_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// BenchmarkSort reports ns per element, and the ratio to the standard library's stable
// sort of indices or, for topk, to one pass for each of the k.
func BenchmarkSort(b *testing.B) {
	for _, rows := range [][2]int{{8192, 16}, {512, 256}, {4, 1 << 15}} {
		benchSort[float32](b, rows[0], rows[1])
	}
	benchSort[int8](b, 4, 1<<15)
	benchSort[int32](b, 4, 1<<15)
	benchSort[int64](b, 4, 1<<15)
	for _, k := range []int{1, 5, 40} {
		benchTopK(b, 512, 1000, k)
	}
	benchTopK(b, 1, 1<<17, 50)
}

// filled is a tensor of random elements, most of them different.
func filled[T int8 | int32 | int64 | float32](sizes ...int) *tensor.Tensor {
	r := rand.New(rand.NewPCG(1, 1))
	t := tensor.New(tensor.TypeOf[T](), sizes...)
	for i, d := 0, tensor.Data[T](t); i < len(d); i++ {
		d[i] = T(r.Int32N(1<<24)-1<<23) / 5
	}
	return t
}

func benchSort[T int8 | int32 | int64 | float32](b *testing.B, rows, n int) {
	x, y, index := filled[T](rows, n), filled[T](rows, n), tensor.New(tensor.Int64, rows, n)
	xs, ys, at := tensor.Data[T](x), tensor.Data[T](y), tensor.Data[int64](index)
	c := kerneltest.Case{Name: fmt.Sprintf("sort/%v/%d rows of %d", x.DType, rows, n), Op: "aten::sort.values", Args: []any{x, 1, false}, Outs: []any{y, index}}
	kerneltest.VersusCase(b, set, c, rows*n, func() {
		for r := range rows {
			row, order := xs[r*n:][:n], at[r*n:][:n]
			for i := range order {
				order[i] = int64(i)
			}
			slices.SortStableFunc(order, func(i, j int64) int { return cmp.Compare(row[i], row[j]) })
			for i, v := range order {
				ys[r*n+i] = row[v]
			}
		}
	})
}

func benchTopK(b *testing.B, rows, n, k int) {
	x, y, index := filled[float32](rows, n), filled[float32](rows, k), tensor.New(tensor.Int64, rows, k)
	xs, ys, at := tensor.Data[float32](x), tensor.Data[float32](y), tensor.Data[int64](index)
	c := kerneltest.Case{Name: fmt.Sprintf("topk/%d of %d rows of %d", k, rows, n), Op: "aten::topk.values", Args: []any{x, k, 1, true, true}, Outs: []any{y, index}}
	kerneltest.VersusCase(b, set, c, rows*n, func() {
		for r := range rows {
			row := xs[r*n:][:n]
			for i := range k {
				best := -1
				for j, v := range row {
					if (best < 0 || v > row[best]) && !slices.Contains(at[r*k:][:i], int64(j)) {
						best = j
					}
				}
				ys[r*k+i], at[r*k+i] = row[best], int64(best)
			}
		}
	})
}

// BenchmarkPick reports ns per element of what is picked and the ratio to loops that
// copy element by element.
func BenchmarkPick(b *testing.B) {
	const rows, n, picks = 4096, 128, 512
	r := rand.New(rand.NewPCG(3, 3))
	table, x := filled[float32](rows, n), filled[float32](picks, n)
	random := func(limit int64, sizes ...int) *tensor.Tensor {
		t := tensor.New(tensor.Int64, sizes...)
		for i, d := 0, tensor.Data[int64](t); i < len(d); i++ {
			d[i] = r.Int64N(limit)
		}
		return t
	}
	at, along := random(rows, picks), random(rows, picks, n)
	ts, xs, is, as := tensor.Data[float32](table), tensor.Data[float32](x), tensor.Data[int64](at), tensor.Data[int64](along)
	column := random(n, 16)
	cs := tensor.Data[int64](column)
	versus := func(name, op string, units int, args, outs []any, naive func()) {
		kerneltest.VersusCase(b, set, kerneltest.Case{Name: name, Op: op, Args: args, Outs: outs}, units, naive)
	}
	eachRow := func(f func(to, from int)) func() {
		return func() {
			for i, v := range is {
				for j := range n {
					f(i*n+j, int(v)*n+j)
				}
			}
		}
	}
	take := eachRow(func(to, from int) { xs[to] = ts[from] })
	put := eachRow(func(from, to int) { ts[to] = xs[from] })
	versus("embedding", "aten::embedding.out", picks*n, []any{table, at, -1, false, false}, []any{x}, take)
	versus("index_select rows", "aten::index_select.out", picks*n, []any{table, 0, at}, []any{x}, take)
	versus("index rows", "aten::index.Tensor_out", picks*n, []any{table, []*tensor.Tensor{at}}, []any{x}, take)
	versus("index_put_ rows", "aten::index_put_", picks*n, []any{table, []*tensor.Tensor{at}, x, false}, []any{}, put)
	versus("index_put_ adds rows", "aten::index_put_", picks*n, []any{table, []*tensor.Tensor{at}, x, true}, []any{}, eachRow(func(from, to int) { ts[to] += xs[from] }))
	versus("index_select columns", "aten::index_select.out", rows*16, []any{table, 1, column}, []any{tensor.New(tensor.Float32, rows, 16)}, func() {
		for i := range rows {
			for j, v := range cs {
				xs[i*16+j] = ts[i*n+int(v)]
			}
		}
	})
	eachPlace := func(f func(i, place int)) func() {
		return func() {
			for i := range picks {
				for j := range n {
					f(i*n+j, int(as[i*n+j])*n+j)
				}
			}
		}
	}
	versus("gather", "aten::gather.out", picks*n, []any{table, 0, along, false}, []any{x}, eachPlace(func(i, place int) { xs[i] = ts[place] }))
	y := filled[float32](rows, n)
	ys := tensor.Data[float32](y)
	versus("scatter", "aten::scatter.src_out", picks*n, []any{table, 0, along, x}, []any{y}, func() {
		copy(ys, ts)
		eachPlace(func(i, place int) { ys[place] = xs[i] })()
	})
	versus("scatter_add", "aten::scatter_add.out", picks*n, []any{table, 0, along, x}, []any{y}, func() {
		copy(ys, ts)
		eachPlace(func(i, place int) { ys[place] += xs[i] })()
	})
}
