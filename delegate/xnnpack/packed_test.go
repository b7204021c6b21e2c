package xnnpack

import (
	"runtime"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// TestFirstRunPacksNothing checks that the first run of a unit allocates less than a filter has bytes, besides the working memory
// of its threads: all filters were packed when the graph was compiled, and units share them.
func TestFirstRunPacksNothing(t *testing.T) {
	for name, g := range graphtest.LargeFilters() {
		t.Run(name, func(t *testing.T) {
			img, err := compile(t, graphtest.Encode(g), EngineGo)
			if err != nil {
				t.Fatal(err)
			}
			defer img.Close()
			args := graphtest.NewMaker(1).Arguments(img.(*image).Graph)
			for range 2 {
				u, err := img.Unit(delegate.Instance{})
				if err != nil {
					t.Fatal(err)
				}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				mustExecute(t, u, args)
				runtime.ReadMemStats(&after)
				e := u.(*goengine.Unit)
				scratch := uint64(goengine.NeedsOf(e.Graph, e.Places, 1).Scratch)
				if n := after.TotalAlloc - before.TotalAlloc; n > scratch+1<<18 {
					t.Errorf("the first run of a unit allocates %d bytes, its working memory has %d", n, scratch)
				}
				u.Close()
			}
		})
	}
}
