package elementwise

import (
	"fmt"
	"testing"
	"time"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/strided"
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
		case string:
			a = append(a, new(tensor.StringValue(v)))
		}
	}
	return append(a, a[len(a)-1])
}

// BenchmarkLayouts measures small calls and operands that are broadcast.
func BenchmarkLayouts(b *testing.B) {
	f32 := func(sizes ...int) *tensor.Tensor { return tensor.New(tensor.Float32, sizes...) }
	for _, c := range []struct {
		name, op string
		args     kernels.Args
	}{
		{"add/16", "aten::add.out", args(f32(16), f32(16), 1, f32(16))},
		{"add/rows of 64", "aten::add.out", args(f32(256, 64), f32(64), 1, f32(256, 64))},
		{"add/rows of 3", "aten::add.out", args(f32(4096, 3), f32(3), 1, f32(4096, 3))},
		{"add/channels", "aten::add.out", args(f32(8, 48, 48), f32(8, 1, 1), 1, f32(8, 48, 48))},
		{"eq/16", "aten::eq.Tensor_out", args(f32(16), f32(16), tensor.New(tensor.Bool, 16))},
	} {
		op, _, _, _ := set.Lookup(c.op)
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

// streams are the calls of BenchmarkBandwidth: operators, and the conversion that
// copies make. Types are letters, see below.
var streams = []struct {
	op    string
	types []string // of each, the operands and the result
	more  []any    // numbers between the operands and the result
}{
	{"aten::add.out", []string{"fff", "hhh", "bbb", "ddd", "111", "uuu", "222", "444", "888"}, []any{1}},
	{"aten::add.Scalar_out", []string{"ff", "44"}, []any{3, 1}},
	{"aten::sub.out", []string{"fff", "444"}, []any{2}},
	{"aten::mul.out", []string{"fff", "hhh", "bbb", "ddd", "111", "uuu", "222", "444", "888"}, nil},
	{"aten::div.out", []string{"fff", "hhh"}, nil},
	{"aten::floor_divide.out", []string{"fff", "444"}, nil},
	{"aten::remainder.Scalar_out", []string{"ff", "88"}, []any{3}},
	{"aten::maximum.out", []string{"fff", "hhh", "111", "444", "888"}, nil},
	{"aten::minimum.out", []string{"fff", "uuu"}, nil},
	{"aten::relu.out", []string{"ff", "hh", "11", "44"}, nil},
	{"aten::clamp.out", []string{"ff", "hh", "bb", "11", "44", "88"}, []any{-1, 6}},
	{"aten::hardtanh.out", []string{"ff", "hh"}, []any{0.0, 6.0}},
	{"aten::leaky_relu.out", []string{"ff"}, []any{0.1}},
	{"aten::abs.out", []string{"ff", "hh", "11", "44"}, nil},
	{"aten::neg.out", []string{"ff", "hh", "44"}, nil},
	{"aten::sign.out", []string{"ff", "44"}, nil},
	{"aten::floor.out", []string{"ff", "hh"}, nil},
	{"aten::ceil.out", []string{"ff"}, nil},
	{"aten::round.out", []string{"ff", "bb"}, nil},
	{"aten::trunc.out", []string{"ff"}, nil},
	{"aten::reciprocal.out", []string{"ff"}, nil},
	{"aten::sqrt.out", []string{"ff"}, nil},
	{"aten::rsqrt.out", []string{"ff"}, nil},
	{"aten::eq.Tensor_out", []string{"ff?", "hh?", "11?", "uu?", "44?", "88?", "???"}, nil},
	{"aten::lt.Tensor_out", []string{"ff?", "dd?", "44?", "88?"}, nil},
	{"aten::ge.Tensor_out", []string{"ff?", "44?"}, nil},
	{"aten::gt.Scalar_out", []string{"f?", "8?"}, []any{1}},
	{"aten::isnan.out", []string{"f?"}, nil},
	{"aten::logical_and.out", []string{"???", "ff?"}, nil},
	{"aten::logical_not.out", []string{"??"}, nil},
	{"aten::bitwise_and.Tensor_out", []string{"???", "111", "444", "888"}, nil},
	{"aten::bitwise_not.out", []string{"??", "44"}, nil},
	{"aten::bitwise_left_shift.Tensor_Scalar_out", []string{"44"}, []any{3}},
	{"aten::where.self_out", []string{"?fff", "?hhh", "?111", "?444", "?888"}, nil},
	{"aten::masked_fill.Scalar_out", []string{"f?f", "h?h"}, []any{-1}},
	{"aten::exp.out", []string{"ff", "hh"}, nil},
	{"aten::expm1.out", []string{"ff"}, nil},
	{"aten::sigmoid.out", []string{"ff", "hh"}, nil},
	{"aten::tanh.out", []string{"ff"}, nil},
	{"aten::gelu.out", []string{"ff", "bb"}, []any{"none"}},
	{"aten::silu.out", []string{"ff", "bb"}, nil},
	{"aten::hardswish.out", []string{"ff", "bb"}, nil},
	{"aten::erf.out", []string{"ff"}, nil},
	{"aten::elu.out", []string{"ff"}, []any{1, 1, 1}},
	{"aten::log.out", []string{"ff", "hh"}, nil},
	{"aten::log1p.out", []string{"ff"}, nil},
	{"aten::sin.out", []string{"ff"}, nil},
	{"aten::cos.out", []string{"ff"}, nil},
	{"aten::atan.out", []string{"ff"}, nil},
	{"aten::tan.out", []string{"ff"}, nil},
	{"aten::pow.Tensor_Scalar_out", []string{"ff", "hh"}, []any{2}},
	{"aten::pow.Tensor_Scalar_out", []string{"ff"}, []any{1.7}},
	{"aten::pow.Tensor_Tensor_out", []string{"fff"}, nil},
	{"copy", []string{"ff", "f4", "4f", "f8", "8f", "48", "84", "f1", "1f", "fu", "uf", "f?", "?f", "fh", "hf", "fb", "bf", "hb", "fd", "df", "14", "41", "?8", "8?", "4h", "h4"}, nil},
}

var letters = map[rune]tensor.DType{
	'f': tensor.Float32, 'd': tensor.Float64, 'h': tensor.Float16, 'b': tensor.BFloat16, '?': tensor.Bool,
	'1': tensor.Int8, 'u': tensor.Uint8, '2': tensor.Int16, '4': tensor.Int32, '8': tensor.Int64,
}

// BenchmarkBandwidth measures every operator on tensors that stay in the second-level
// cache and on such that exceed every cache, on one thread and on two, in turns with
// a copy of as many bytes: what is read and written. It reports the rate and how much
// of the copy's that is, both of the best turn.
func BenchmarkBandwidth(b *testing.B) {
	memory, spare := tensor.AlignedBytes(96<<20), tensor.AlignedBytes(96<<20)
	for i := range spare {
		spare[i] = byte(i) // pages that nobody wrote would all be the same zeros, in the cache
	}
	for threads := 1; threads <= 2; threads++ {
		pool := cpu.NewPool(threads)
		defer pool.Close()
		for _, s := range streams {
			for _, types := range s.types {
				b.Run(fmt.Sprintf("%s/%s/cache/threads=%d", s.op, types, threads), func(b *testing.B) {
					stream(b, kernels.NewCtx(pool), s.op, types, s.more, memory, spare, 1<<14)
				})
				b.Run(fmt.Sprintf("%s/%s/memory/threads=%d", s.op, types, threads), func(b *testing.B) {
					stream(b, kernels.NewCtx(pool), s.op, types, s.more, memory, spare, 0)
				})
			}
		}
	}
}

// stream measures an operator on tensors of n elements, or as many as memory has room
// for, which lie in it one after the other.
func stream(b *testing.B, c *kernels.Ctx, name, types string, more []any, memory, spare []byte, n int) {
	bytes := 0
	for _, l := range types {
		bytes += letters[l].Size()
	}
	if n == 0 {
		n = (len(memory)/bytes - 64) &^ 63
	}
	var values []any
	rest := memory
	for i, l := range types {
		if i == len(types)-1 {
			values = append(values, more...)
		}
		d := letters[l]
		t := &tensor.Tensor{DType: d, Sizes: []int{n}, Strides: []int{1}, DimOrder: []uint8{0}, Data: rest[:n*d.Size()]}
		rest = rest[(n*d.Size()+63)&^63:]
		pattern(t, i)
		values = append(values, t)
	}
	a := args(values...)
	run := func() error {
		return Convert(c, values[len(values)-1].(*tensor.Tensor), 1, values[0].(*tensor.Tensor), 0)
	}
	if op, _, ok, _ := set.Lookup(name); ok {
		run = func() error { return op.Func(c, a) }
	}
	plain := &copying{dst: spare[:n*bytes/2], src: spare[len(spare)/2:][:n*bytes/2]}
	best, copied := time.Hour, time.Hour
	for b.Loop() {
		start := time.Now()
		if err := run(); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(start))
		c.Release()
		start = time.Now()
		c.Parallel(len(plain.dst), 1<<17, plain)
		copied = min(copied, time.Since(start))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(n*bytes)/float64(best.Nanoseconds()), "GB/s")
	b.ReportMetric(100*float64(copied)/float64(best), "%copy")
	b.ReportMetric(float64(best.Nanoseconds())/float64(n), "ns/elem")
}

// pattern fills t with numbers that its type holds, none of them 0.
func pattern(t *tensor.Tensor, seed int) {
	block := make([]float64, 1021)
	for i := range block {
		block[i] = float64((i*7+seed*5)%19 - 9)
		if t.DType == tensor.Uint8 || block[i] == 0 {
			block[i] += 10
		}
		if t.DType.IsFloat() {
			block[i] *= 0.37
		}
	}
	one := as(t.DType, block...)
	copy(t.Data, one.Data)
	strided.Repeat(t.Data, len(one.Data))
}

type copying struct{ dst, src []byte }

// Range copies pieces that keep to ordinary stores, as operators do: copy goes past the
// caches for large ones.
func (p *copying) Range(_, lo, hi int) {
	const piece = 1 << 16
	for ; lo < hi; lo += piece {
		end := min(lo+piece, hi)
		copy(p.dst[lo:end], p.src[lo:end])
	}
}
