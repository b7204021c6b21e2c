package index_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// BenchmarkIndex reports, besides ns per element of the result, the ratio to copying
// the result's bytes.
func BenchmarkIndex(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	table := tensor.New(tensor.Float32, 8192, 256)
	for i, d := 0, tensor.Data[float32](table); i < len(d); i++ {
		d[i] = r.Float32()
	}
	random := func(n int, sizes ...int) *tensor.Tensor {
		t := tensor.New(tensor.Int64, sizes...)
		for i, d := 0, tensor.Data[int64](t); i < len(d); i++ {
			d[i] = r.Int64N(int64(n))
		}
		return t
	}
	rows, along := random(8192, 512), random(256, 1024, 256)
	small := func(sizes ...int) *tensor.Tensor { return tensor.New(tensor.Float32, sizes...) }
	slot := func(t *tensor.Tensor) *tensor.Value { return new(tensor.TensorValue(t)) }
	number := func(i int64) *tensor.Value { return new(tensor.IntValue(i)) }
	flag := func(v bool) *tensor.Value { return new(tensor.BoolValue(v)) }
	indices := func(t ...*tensor.Tensor) *tensor.Value {
		var items []*tensor.Value
		for _, t := range t {
			items = append(items, slot(t))
		}
		return new(tensor.NewList(tensor.KindOptionalTensorList, items))
	}
	for _, c := range []struct {
		name, op string
		args     kernels.Args
		out      *tensor.Tensor
	}{
		{"embedding 512 rows", "aten::embedding.out", kernels.Args{slot(table), slot(rows), number(-1), flag(false), flag(false)}, small(512, 256)},
		{"rows", "aten::index_select.out", kernels.Args{slot(table), number(0), slot(rows)}, small(512, 256)},
		{"columns", "aten::index_select.out", kernels.Args{slot(table), number(1), slot(random(256, 64))}, small(8192, 64)},
		{"pairs", "aten::index.Tensor_out", kernels.Args{slot(table), indices(random(8192, 1<<16), random(256, 1<<16))}, small(1 << 16)},
		{"gather", "aten::gather.out", kernels.Args{slot(table), number(1), slot(along), flag(false)}, small(1024, 256)},
		{"scatter_add", "aten::scatter_add.out", kernels.Args{slot(small(1024, 256)), number(1), slot(along), slot(table)}, small(1024, 256)},
		{"write rows", "aten::index_put_", kernels.Args{slot(small(8192, 256)), indices(rows), slot(small(512, 256)), flag(false)}, small(512, 256)},
		{"sort rows of 256", "aten::sort.values", kernels.Args{slot(table), number(1), flag(false), slot(small(8192, 256)), slot(random(1, 8192, 256))}, nil},
		{"5 of 256", "aten::topk.values", kernels.Args{slot(table), number(5), number(1), flag(true), flag(true), slot(small(8192, 5)), slot(random(1, 8192, 5))}, nil},
	} {
		b.Run(c.name, func(b *testing.B) { benchCall(b, c.op, c.args, c.out) })
	}
}

func benchCall(b *testing.B, name string, a kernels.Args, out *tensor.Tensor) {
	op, sig, _, err := set.Lookup(name)
	if err != nil {
		b.Fatal(err)
	}
	if out == nil {
		out = a[0].Tensor
	} else if len(a) < len(sig.Args) {
		a = append(a, new(tensor.TensorValue(out)))
	}
	a = append(a, a[len(a)-1])
	pool := cpu.NewPool(2)
	defer pool.Close()
	c := kernels.NewCtx(pool)
	for b.Loop() {
		if err := op.Func(c, a); err != nil {
			b.Fatal(err)
		}
		c.Release()
	}
	other := make([]byte, out.NBytes())
	start := time.Now()
	for range b.N {
		copy(other, out.Data)
	}
	b.ReportMetric(float64(b.Elapsed())/float64(time.Since(start)), "x-memcpy")
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(out.Numel()), "ns/elem")
}
