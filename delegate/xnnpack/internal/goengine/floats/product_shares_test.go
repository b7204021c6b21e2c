package floats

import (
	"testing"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/filters"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/frame"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/gemm"
)

// TestProductShares checks that the parts of the threads in a product are about as large.
func TestProductShares(t *testing.T) {
	for _, c := range []struct {
		rows, k, n, threads int
		most                float64 // the largest part, of what is ideal
	}{
		{784, 192, 32, 2, 1}, {196, 576, 96, 2, 1}, {196, 384, 64, 2, 1}, {196, 384, 64, 4, 1}, {196, 96, 576, 2, 1},
		{49, 960, 160, 2, 1.03}, {49, 960, 160, 4, 1.07}, {49, 160, 960, 2, 1.07}, {49, 320, 1280, 4, 1}, {197, 384, 1536, 2, 1.01},
		{128, 768, 768, 2, 1}, {128, 768, 3072, 8, 1}, {3136, 144, 24, 2, 1.02}, {1, 1280, 1000, 2, 1.01},
	} {
		pool := cpu.NewPool(c.threads)
		p := floatProduct{rows: c.rows, groups: 1, filter: &filters.Float{Panels: []*gemm.Panels{{K: c.k, N: c.n}}}}
		p.source = &matrix{x: make([]float32, c.rows*c.k), ld: c.k, k: c.k}
		p.plan(&frame.Frame{Pool: pool})
		pool.Close()
		panels, largest, all := p.filter.Panels[0].Panels(), 0, 0
		for w := range c.threads {
			own := 0
			for u := p.units * w / c.threads; u < p.units*(w+1)/c.threads; u++ {
				tile, part := u/p.parts, u%p.parts
				own += min(p.tile, c.rows-tile*p.tile) * (panels*(part+1)/p.parts - panels*part/p.parts)
			}
			largest, all = max(largest, own), all+own
		}
		if all != c.rows*panels {
			t.Errorf("%+v: %d rows of panels in %d tiles of %d rows and %d parts, want %d", c, all, p.tiles, p.tile, p.parts, c.rows*panels)
		}
		if got := float64(largest*c.threads) / float64(all); got > c.most {
			t.Errorf("%+v: the largest part has %.3f of what is ideal, in %d tiles of %d rows and %d parts", c, got, p.tiles, p.tile, p.parts)
		}
		if got, want := p.tiles, graph.CeilDiv(c.rows, p.tile); got != want {
			t.Errorf("%+v: %d tiles, want %d", c, got, want)
		}
	}
}
