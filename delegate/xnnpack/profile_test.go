package xnnpack

import (
	"context"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
)

// BenchmarkProfiling is a graph that computes next to nothing: plain, with its nodes
// timed, and with timing turned on and off again around each execute.
func BenchmarkProfiling(b *testing.B) {
	xnntest.Library(b)
	m := newMaker(1)
	v := m.input(FP32, 1, 64)
	for range 10 {
		next := m.value(FP32, 1, 64)
		m.node("Abs", []int{v}, []int{next})
		v = next
	}
	u, g := mustUnit(b, m.done(v), EngineNative, delegate.Instance{})
	args := newMaker(1).arguments(g)
	p := u.(delegate.Profiler)
	for _, c := range []struct {
		name      string
		on, after bool
	}{{"plain", false, false}, {"timed", true, true}, {"in turn", true, false}} {
		b.Run(c.name, func(b *testing.B) {
			var times []delegate.NodeTime
			mustExecute(b, u, args)
			b.ReportAllocs()
			for b.Loop() {
				if err := p.SetProfiling(c.on); err != nil {
					b.Fatal(err)
				}
				if err := u.Execute(context.Background(), args); err != nil {
					b.Fatal(err)
				}
				times = p.Profile(times[:0])
				if err := p.SetProfiling(c.after); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
