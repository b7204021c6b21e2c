package simd

import (
	"math"
	"strconv"
	"testing"
	"time"
)

// Every benchmark of a loop runs it and its Go implementation in turn, and reports how
// many times as long the Go implementation takes: what does not come out above 1 has no
// place as assembly.

// versus measures f, and reports the times of pure over those of f.
func versus(b *testing.B, name string, elements int, f, pure func()) {
	b.Run(name, func(b *testing.B) {
		vector, plain := math.Inf(1), math.Inf(1) // the least of all, which interruptions do not touch
		for b.Loop() {
			vector, plain = min(vector, seconds(f)), min(plain, seconds(pure))
		}
		b.ReportMetric(plain/vector, "×go")
		b.ReportMetric(vector*1e9/rounds/float64(elements), "ns/element")
		b.ReportMetric(0, "ns/op") // of both
	})
}

const rounds = 20 // calls between two looks at the clock

func seconds(f func()) float64 {
	start := time.Now()
	for range rounds {
		f()
	}
	return time.Since(start).Seconds()
}

// benchmarkLengths are of the operands: a part of a row, and a row in the first-level cache.
var benchmarkLengths = []int{24, 1024}

func BenchmarkTable(b *testing.B) {
	for _, n := range benchmarkLengths {
		benchmarkPairs(b, n, binaryFloats)
		benchmarkPairs(b, n, twoOperands(unaryFloats))
		benchmarkPairs(b, n, twoOperands(approximations))
		benchmarkPairs(b, n, binaryInts)
		benchmarkPairs(b, n, twoOperands(unaryInts))
		benchmarkPairs(b, n, compareFloats)
		benchmarkPairs(b, n, compareInts)
		for _, p := range selections {
			dst, mask, x, y := make([]uint32, n), make([]uint8, n), make([]uint32, n), make([]uint32, n)
			for i := range mask {
				mask[i] = uint8(i * i % 3)
			}
			versus(b, named(p.name, n), n, func() { p.f(dst, mask, x, y) }, func() { p.pure(dst, mask, x, y) })
		}
	}
}

func named(name string, n int) string { return name + "/" + strconv.Itoa(n) }

func benchmarkPairs[D, C float32 | int32 | uint8](b *testing.B, n int, list []pair[func(dst []D, x, y []C)]) {
	dst, x, y := make([]D, n), make([]C, n), make([]C, n)
	for i := range x {
		x[i], y[i] = C(i%13)-6, C(i%11)+1
	}
	for _, p := range list {
		versus(b, named(p.name, n), n, func() { p.f(dst, x, y) }, func() { p.pure(dst, x, y) })
	}
}
