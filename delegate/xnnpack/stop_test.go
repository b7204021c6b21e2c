package xnnpack

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/cpu"
)

// longNodes are graphs of one node that takes far longer than the context.
var longNodes = map[string]func(m *maker) *graph{
	"a convolution": func(m *maker) *graph {
		return convolutionGraph32("Conv2d", 96, 96, window{kernelH: 31, kernelW: 31, strideH: 1, strideW: 1, dilationH: 1, dilationW: 1,
			groups: 1, groupIn: 24, groupOut: 24}, 0)
	},
	"a depthwise convolution": func(m *maker) *graph {
		return convolutionGraph32("DepthwiseConv2d", 160, 160, window{kernelH: 61, kernelW: 61, strideH: 1, strideW: 1, dilationH: 1, dilationW: 1,
			groups: 48, groupIn: 1, groupOut: 1}, 0)
	},
	"a fully connected node": func(m *maker) *graph {
		x, f, b, y := m.input(fp32, 1<<12, 1024), m.constant(fp32, 0, 1024, 1024), m.constant(fp32, 0, 1024), m.value(fp32, 1)
		m.node("FullyConnected", []int{x, f, b}, []int{y})
		return m.fix(y)
	},
	"a quantized product": func(m *maker) *graph {
		x, f, b := m.quantized(m.input(fp32, 1<<13, 512), 1), m.constant(qcint8, 0, 2048, 512), m.constant(fp32, 0, 2048)
		y := m.value(fp32, 1)
		m.node("FullyConnected", []int{x, f, b}, []int{y})
		return m.fix(y)
	},
	"a batch of products": func(m *maker) *graph {
		x, w, y := m.input(fp32, 8, 1024, 512), m.input(fp32, 8, 512, 1024), m.value(fp32, 1)
		m.node("BatchMatrixMultiply", []int{x, w}, []int{y})
		return m.fix(y)
	},
}

// TestStopsInsideNodes stops the Go engine inside a node. The unit remains usable.
func TestStopsInsideNodes(t *testing.T) {
	pool := cpu.NewPool(2)
	defer pool.Close()
	for name, make := range longNodes {
		t.Run(name, func(t *testing.T) {
			img, err := compile(t, encode(make(newMaker(3))), EngineReference)
			if err != nil {
				t.Fatal(err)
			}
			defer img.Close()
			for _, p := range []*cpu.Pool{nil, pool} {
				stopInside(t, img, p)
			}
		})
	}
}

// stopInside stops a unit after a tenth of the time that it takes. It must end in half of that time, once in a few
// attempts, because the machine may do other things meanwhile.
func stopInside(t *testing.T, img delegate.Image, p *cpu.Pool) {
	t.Helper()
	u, err := img.Unit(delegate.Instance{Pool: p})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	args := newMaker(7).arguments(img.(*image).graph)
	var took, all time.Duration
	for range 5 {
		begun := time.Now()
		if err := u.Execute(context.Background(), args); err != nil { // from the second attempt on, after it has been stopped
			t.Fatal(err)
		}
		all = time.Since(begun)
		ctx, cancel := context.WithTimeout(context.Background(), all/10)
		begun = time.Now()
		err := u.Execute(ctx, args)
		cancel()
		if took = time.Since(begun); errors.Is(err, context.DeadlineExceeded) && took < all/2 {
			return
		}
	}
	t.Errorf("%d threads: stopped after %v of %v", p.Size(), took, all)
}
