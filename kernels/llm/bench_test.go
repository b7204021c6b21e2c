package llm

import (
	"fmt"
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

func BenchmarkOps(b *testing.B) {
	for _, heads := range [][2]int{{32, 8}, {9, 3}, {8, 8}} {
		keys, values := random(2, f32, 1, 2048, heads[1], 64), random(3, f32, 1, 2048, heads[1], 64)
		for _, c := range [][2]int{{1, 16}, {1, 100}, {1, 450}, {1, 2000}, {4, 100}, {512, 0}} {
			q := random(1, f32, 1, c[0], heads[0], 64)
			b.Run(fmt.Sprintf("attention/%d heads of %d keys/%d tokens after %d", heads[0], heads[1], c[0], c[1]), func(b *testing.B) {
				kerneltest.Benchmark(b, set, kerneltest.Case{Op: sdpa, Args: []any{q, keys, values, c[1], nil, 0.0, true, nil}, Want: []any{q}})
			})
		}
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

// BenchmarkLongCache attends to the caches of several layers in turns, as a language model does: they are not in the caches of a core.
func BenchmarkLongCache(b *testing.B) {
	const layers = 16
	for i, heads := range [][2]int{{32, 8}, {32, 8}, {9, 3}, {9, 3}} {
		d := []tensor.DType{f32, f16}[i%2]
		b.Run(fmt.Sprintf("%d heads of %d keys of %v", heads[0], heads[1], d), func(b *testing.B) {
			var runs []func() error
			for range layers {
				q, keys, values := random(1, f32, 1, 1, heads[0], 64), half(random(2, f32, 1, 512, heads[1], 64), d), half(random(3, f32, 1, 512, heads[1], 64), d)
				run, _ := kerneltest.Prepare(b, set, kerneltest.Case{Op: sdpa, Args: []any{q, keys, values, 450, nil, 0.0, true, nil}, Want: []any{q}})
				runs = append(runs, run)
			}
			for i := 0; b.Loop(); i++ {
				if err := runs[i%layers](); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
