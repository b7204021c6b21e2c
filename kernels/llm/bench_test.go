package llm

import (
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
)

func BenchmarkOps(b *testing.B) {
	cache := random(2, f32, 1, 2048, 8, 64)
	for _, c := range []struct {
		name        string
		rows, start int
	}{{"one token after 100", 1, 100}, {"one token after 2000", 1, 2000}, {"4 tokens after 100", 4, 100}, {"512 tokens", 512, 0}} {
		q := random(1, f32, 1, c.rows, 32, 64)
		b.Run("attention/"+c.name, func(b *testing.B) {
			kerneltest.Benchmark(b, set, kerneltest.Case{Op: sdpa, Args: []any{q, cache, cache, c.start, nil, 0.0, true, nil}, Want: []any{q}})
		})
	}
	b.Run("delta rule", func(b *testing.B) {
		kerneltest.Benchmark(b, set, kerneltest.Case{Op: deltaRuleOut, Args: []any{random(1, f32, 1, 16, 32, 128), random(2, f32, 1, 16, 32, 128), random(3, f32, 1, 16, 32, 128),
			random(4, f32, 1, 16, 32), random(5, f32, 1, 16, 32), random(6, f32, 1, 16, 128, 128)}, Want: []any{random(1, f32, 1, 16, 32, 128), random(6, f32, 1, 16, 128, 128)}})
	})
	b.Run("hadamard 64x4096", func(b *testing.B) {
		x := random(1, f32, 64, 4096)
		kerneltest.Benchmark(b, set, kerneltest.Case{Op: transformOut, Args: []any{x}, Want: []any{x}})
	})
	b.Run("experts of 64 tokens", func(b *testing.B) {
		kerneltest.Benchmark(b, set, moeCase("", 64, 8, 2, 512, 512, 4, "softmax", false))
	})
	b.Run("experts", func(b *testing.B) {
		kerneltest.Benchmark(b, set, moeCase("", 1, 8, 2, 512, 512, 4, "softmax", false))
	})
}
