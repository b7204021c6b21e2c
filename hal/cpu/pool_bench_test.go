package cpu

import (
	"testing"
	"time"
)

type nothing struct{}

func (nothing) Range(_, _, _ int) {}

// busyLoop is work of a known length per element.
type busyLoop struct{ each time.Duration }

func (s *busyLoop) Range(_, lo, hi int) {
	end := time.Now().Add(time.Duration(hi-lo) * s.each)
	for time.Now().Before(end) {
	}
}

// BenchmarkDo measures the overhead of a loop, and the speedup by two threads for a body of 100 µs.
func BenchmarkDo(b *testing.B) {
	for _, c := range []struct {
		name    string
		threads int
		body    Body
	}{
		{"empty/1 thread", 1, nothing{}},
		{"empty/2 threads", 2, nothing{}},
		{"100µs/1 thread", 1, &busyLoop{time.Microsecond}},
		{"100µs/2 threads", 2, &busyLoop{time.Microsecond}},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := NewPool(c.threads)
			defer p.Close()
			var r Run
			b.ReportAllocs()
			for b.Loop() {
				p.Do(&r, 100, 1, c.body)
			}
		})
	}
}
