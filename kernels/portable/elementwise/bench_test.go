package elementwise

import (
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// args makes the slots of a call from tensors, scalars and outs, the last one
// repeated as the result.
func args(values ...any) kernels.Args {
	var a kernels.Args
	for _, v := range values {
		switch v := v.(type) {
		case *tensor.Tensor:
			a = append(a, new(tensor.TensorValue(v)))
		case int:
			a = append(a, new(tensor.IntValue(int64(v))))
		case float64:
			a = append(a, new(tensor.DoubleValue(v)))
		}
	}
	return append(a, a[len(a)-1])
}

func BenchmarkOperators(b *testing.B) {
	f32, i8, f16 := tensor.Float32, tensor.Int8, tensor.Float16
	for _, c := range []struct {
		name, op string
		args     kernels.Args
	}{
		{"add/16", "aten::add.out", args(tensor.New(f32, 16), tensor.New(f32, 16), 1, tensor.New(f32, 16))},
		{"add/16K", "aten::add.out", args(tensor.New(f32, 1<<14), tensor.New(f32, 1<<14), 1, tensor.New(f32, 1<<14))},
		{"add/1M", "aten::add.out", args(tensor.New(f32, 1<<20), tensor.New(f32, 1<<20), 1, tensor.New(f32, 1<<20))},
		{"add/rows of 64", "aten::add.out", args(tensor.New(f32, 256, 64), tensor.New(f32, 64), 1, tensor.New(f32, 256, 64))},
		{"add/rows of 3", "aten::add.out", args(tensor.New(f32, 4096, 3), tensor.New(f32, 3), 1, tensor.New(f32, 4096, 3))},
		{"add/channels", "aten::add.out", args(tensor.New(f32, 8, 48, 48), tensor.New(f32, 8, 1, 1), 1, tensor.New(f32, 8, 48, 48))},
		{"add/scaled", "aten::add.out", args(tensor.New(f32, 1<<14), tensor.New(f32, 1<<14), 2.5, tensor.New(f32, 1<<14))},
		{"add/scalar", "aten::add.Scalar_out", args(tensor.New(f32, 1<<14), 2.5, 1, tensor.New(f32, 1<<14))},
		{"add/int8", "aten::add.out", args(tensor.New(i8, 1<<14), tensor.New(i8, 1<<14), 1, tensor.New(i8, 1<<14))},
		{"add/float16", "aten::add.out", args(tensor.New(f16, 1<<14), tensor.New(f16, 1<<14), 1, tensor.New(f16, 1<<14))},
		{"eq/16K", "aten::eq.Tensor_out", args(tensor.New(f32, 1<<14), tensor.New(f32, 1<<14), tensor.New(tensor.Bool, 1<<14))},
		{"logical_and/bool", "aten::logical_and.out", args(tensor.New(tensor.Bool, 1<<14), tensor.New(tensor.Bool, 1<<14), tensor.New(tensor.Bool, 1<<14))},
		{"maximum/16K", "aten::maximum.out", args(tensor.New(f32, 1<<14), tensor.New(f32, 1<<14), tensor.New(f32, 1<<14))},
		{"relu/16K", "aten::relu.out", args(tensor.New(f32, 1<<14), tensor.New(f32, 1<<14))},
		{"abs/16K", "aten::abs.out", args(tensor.New(f32, 1<<14), tensor.New(f32, 1<<14))},
		{"floor/16K", "aten::floor.out", args(tensor.New(f32, 1<<14), tensor.New(f32, 1<<14))},
		{"sqrt/16K", "aten::sqrt.out", args(tensor.New(f32, 1<<14), tensor.New(f32, 1<<14))},
		{"exp/16K", "aten::exp.out", args(tensor.New(f32, 1<<14), tensor.New(f32, 1<<14))},
		{"sigmoid/16K", "aten::sigmoid.out", args(tensor.New(f32, 1<<14), tensor.New(f32, 1<<14))},
		{"tanh/16K", "aten::tanh.out", args(tensor.New(f32, 1<<14), tensor.New(f32, 1<<14))},
		{"erf/16K", "aten::erf.out", args(tensor.New(f32, 1<<14), tensor.New(f32, 1<<14))},
		{"log/16K", "aten::log.out", args(tensor.New(f32, 1<<14), tensor.New(f32, 1<<14))},
		{"sin/16K", "aten::sin.out", args(tensor.New(f32, 1<<14), tensor.New(f32, 1<<14))},
	} {
		op, _, _, _ := set.Lookup(c.op)
		in := tensor.Data[float32](c.args.Tensor(0))
		for i := range in {
			in[i] = float32(i%997-498) / 100
		}
		b.Run(c.name, func(b *testing.B) {
			ctx := kernels.NewCtx(nil)
			b.ReportAllocs()
			for b.Loop() {
				if err := op.Func(ctx, c.args); err != nil {
					b.Fatal(err)
				}
				ctx.Release()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(c.args.Tensor(len(c.args)-1).Numel()), "ns/elem")
		})
	}
}
