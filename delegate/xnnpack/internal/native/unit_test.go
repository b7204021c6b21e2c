package native

import (
	"context"
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/internal/await"
)

// TestWeightsShared checks that units and images with the same weights share the packed weights.
func TestWeightsShared(t *testing.T) {
	xnntest.Library(t)
	others := len(blocks.by)
	size := func(m *Image) int { return int(m.Weights.Bytes()) }
	a, err := compile(graphtest.Encode(graphtest.TwoLayers(false)))
	if err != nil {
		t.Fatal(err)
	}
	b, err := compile(graphtest.Encode(graphtest.TwoLayers(false)))
	if err != nil {
		t.Fatal(err)
	}
	before := size(a)
	for range 3 {
		u, err := a.Unit(delegate.Instance{})
		if err != nil {
			t.Fatal(err)
		}
		defer u.Close()
	}
	if size(a) != before || before == 0 {
		t.Errorf("after three units: got %d bytes, want %d", size(a), before)
	}
	if x, y := a.Weights.Blocks[0], b.Weights.Blocks[0]; x != y {
		t.Error("two images with the same weights have separate copies")
	}
	a.Close()
	b.Close()
	if n := len(blocks.by) - others; n != 0 {
		t.Errorf("after Close: got %d packed weights, want 0", n)
	}
}

// TestLeaks opens and closes a payload many times and checks that resident memory does not grow.
func TestLeaks(t *testing.T) {
	if graphtest.RaceDetector {
		t.Skip("needs a build without the race detector, whose own memory grows")
	}
	xnntest.Library(t)
	data := graphtest.Encode(graphtest.ConvolutionGraph())
	cycle := func() {
		img, err := compile(data)
		if err != nil {
			t.Fatal(err)
		}
		u, err := img.Unit(delegate.Instance{})
		if err != nil {
			t.Fatal(err)
		}
		run(t, u, graphtest.NewMaker(1).Arguments(img.Graph))
		u.Close()
		img.Close()
	}
	for range 200 {
		cycle()
	}
	before := residentPages(t)
	for range 1000 {
		cycle()
	}
	if grown := residentPages(t) - before; grown > 1024 {
		t.Errorf("got %d more resident pages after 1000 cycles, want at most 1024", grown)
	}
}

// TestUnreachableImage checks that the garbage collector frees the packed weights of an image that was not closed.
func TestUnreachableImage(t *testing.T) {
	xnntest.Library(t)
	before := len(blocks.by)
	func() {
		img, err := compile(graphtest.Encode(graphtest.ConvolutionGraph()))
		if err != nil {
			t.Fatal(err)
		}
		u, err := img.Unit(delegate.Instance{})
		if err != nil {
			t.Fatal(err)
		}
		run(t, u, graphtest.NewMaker(1).Arguments(img.Graph))
	}()
	await.True(t, "the packed weights of an unreachable image are freed", func() bool {
		runtime.GC()
		blocks.mu.Lock()
		defer blocks.mu.Unlock()
		return len(blocks.by) <= before
	})
}

// TestClosed checks that a closed unit returns ErrDevice.
func TestClosed(t *testing.T) {
	xnntest.Library(t)
	img, err := compile(graphtest.Encode(graphtest.ConvolutionGraph()))
	if err != nil {
		t.Fatal(err)
	}
	u, err := img.Unit(delegate.Instance{})
	if err != nil {
		t.Fatal(err)
	}
	u.Close()
	u.Close()
	img.Close()
	if err := u.Execute(context.Background(), graphtest.NewMaker(1).Arguments(img.Graph)); !errors.Is(err, delegate.ErrDevice) {
		t.Errorf("got %v, want %v", err, delegate.ErrDevice)
	}
}

// residentPages returns the process's resident pages from /proc/self/statm, after Go returned unused
// memory to the system.
func residentPages(t *testing.T) int {
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skipf("needs /proc: %v", err)
	}
	n := 0
	for _, c := range strings.Fields(string(b))[1] {
		n = n*10 + int(c-'0')
	}
	return n
}

// BenchmarkOverhead runs a graph with little computation as a unit and with the library alone.
func BenchmarkOverhead(b *testing.B) {
	lib := xnntest.Library(b)
	u, g := mustUnit(b, graphtest.ConvolutionGraph())
	args := graphtest.NewMaker(1).Arguments(g)
	run(b, u, args)
	b.Run("unit", func(b *testing.B) {
		for b.Loop() {
			u.Execute(context.Background(), args)
		}
	})
	b.Run("library", func(b *testing.B) {
		for b.Loop() {
			lib.InvokeRuntime(u.Plain[0].Runtime)
		}
	})
}
