package npu

import (
	"math"
	"testing"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// sram is the memory that Vela assumes for feature maps, and flash that of constants.
var sram, flash = Timing{8, 32, 32}, Timing{1.875, 500, 128}

// TestCyclesAreVelas compares with the cycles that Vela 3.10 reports for operations of int8 with
// these blocks. Scales are in SRAM unless noted.
func TestCyclesAreVelas(t *testing.T) {
	const conv, depthwise, pool = isa.OpConv, isa.OpDepthwise, isa.OpPool
	for _, c := range []struct {
		macs            int
		code            isa.Code
		ifm, ofm, block [3]int
		kernel          [4]int // h, w, stride y, x
		partKernel      bool
		bricks          bool // the IFM is NHCWB16
		scales          int  // their region, -1 for none
		want            float64
	}{
		{32, conv, [3]int{1, 1, 1}, [3]int{1, 1, 16}, [3]int{1, 1, 16}, [4]int{1, 1, 1, 1}, false, false, 0, 423},
		{32, depthwise, [3]int{28, 28, 192}, [3]int{28, 28, 192}, [3]int{8, 8, 16}, [4]int{3, 3, 1, 1}, false, true, 1, 591872},
		{32, conv, [3]int{49, 40, 1}, [3]int{25, 20, 8}, [3]int{9, 7, 8}, [4]int{10, 8, 2, 2}, true, false, 1, 94694},
		{32, conv, [3]int{48, 48, 8}, [3]int{48, 48, 16}, [3]int{2, 48, 16}, [4]int{1, 1, 1, 1}, true, true, 1, 75264},
		{32, pool, [3]int{3, 3, 256}, [3]int{1, 1, 256}, [3]int{1, 1, 128}, [4]int{3, 3, 2, 2}, false, true, -1, 832},
		{64, depthwise, [3]int{28, 28, 192}, [3]int{28, 28, 192}, [3]int{8, 8, 16}, [4]int{3, 3, 1, 1}, false, true, 1, 295936},
		{64, conv, [3]int{49, 40, 1}, [3]int{25, 20, 8}, [3]int{9, 7, 8}, [4]int{10, 8, 2, 2}, true, false, 1, 47948},
		{64, conv, [3]int{96, 48, 2}, [3]int{48, 48, 8}, [3]int{8, 16, 8}, [4]int{3, 2, 2, 1}, true, false, 1, 20075},
		{64, pool, [3]int{3, 3, 256}, [3]int{1, 1, 256}, [3]int{1, 1, 128}, [4]int{3, 3, 2, 2}, false, true, -1, 416},
		{128, conv, [3]int{1, 1, 1}, [3]int{1, 1, 16}, [3]int{1, 2, 16}, [4]int{1, 1, 1, 1}, false, false, 0, 423},
		{128, depthwise, [3]int{28, 28, 192}, [3]int{28, 28, 192}, [3]int{8, 10, 16}, [4]int{3, 3, 1, 1}, false, true, 1, 138880},
		{128, conv, [3]int{49, 40, 1}, [3]int{25, 20, 8}, [3]int{11, 10, 8}, [4]int{10, 8, 2, 2}, true, false, 1, 28890},
		{128, conv, [3]int{96, 48, 2}, [3]int{48, 48, 8}, [3]int{8, 16, 8}, [4]int{3, 2, 2, 1}, true, false, 1, 10347},
		{128, conv, [3]int{48, 48, 8}, [3]int{48, 48, 16}, [3]int{8, 16, 16}, [4]int{1, 1, 1, 1}, true, true, 1, 18944},
		{128, pool, [3]int{3, 3, 256}, [3]int{1, 1, 256}, [3]int{1, 2, 128}, [4]int{3, 3, 2, 2}, false, true, -1, 396},
		{256, depthwise, [3]int{28, 28, 192}, [3]int{28, 28, 192}, [3]int{14, 14, 16}, [4]int{3, 3, 1, 1}, false, true, 1, 57232},
		{256, conv, [3]int{49, 40, 1}, [3]int{25, 20, 8}, [3]int{12, 20, 8}, [4]int{10, 8, 2, 2}, true, false, 1, 17189},
		{256, conv, [3]int{96, 48, 2}, [3]int{48, 48, 8}, [3]int{16, 16, 8}, [4]int{3, 2, 2, 1}, true, false, 1, 5739},
		{256, conv, [3]int{48, 48, 8}, [3]int{48, 48, 16}, [3]int{16, 16, 16}, [4]int{1, 1, 1, 1}, true, true, 1, 9808},
		{256, pool, [3]int{3, 3, 256}, [3]int{1, 1, 256}, [3]int{2, 2, 128}, [4]int{3, 3, 2, 2}, false, true, -1, 388},
		{512, depthwise, [3]int{28, 28, 192}, [3]int{28, 28, 192}, [3]int{14, 14, 16}, [4]int{3, 3, 1, 1}, false, true, 1, 28616},
		{512, conv, [3]int{49, 40, 1}, [3]int{25, 20, 8}, [3]int{12, 20, 8}, [4]int{10, 8, 2, 2}, true, false, 1, 8878},
		{512, conv, [3]int{48, 48, 8}, [3]int{48, 48, 16}, [3]int{16, 16, 16}, [4]int{1, 1, 1, 1}, true, true, 1, 4912},
	} {
		config := isa.Config{Family: isa.U55, MACs: c.macs}
		if c.macs == 512 {
			config.Family = isa.U65
		}
		o := &kernelOp{header: header{code: c.code, schedule: schedule{block: c.block, micro: microsU65[c.macs], partKernel: c.partKernel}},
			ifm:    fmap{region: 1, h: c.ifm[0], w: c.ifm[1], d: c.ifm[2], size: 1, bricks: c.bricks},
			window: window{kh: c.kernel[0], kw: c.kernel[1], strideY: c.kernel[2], strideX: c.kernel[3], h: c.ifm[0], w: c.ifm[1], d: c.ifm[2]},
			out:    output{ofm: fmap{region: 1, size: 1, h: c.ofm[0], w: c.ofm[1], d: c.ofm[2]}, h: c.ofm[0], w: c.ofm[1], d: c.ofm[2]}}
		if c.code == pool {
			o.param = poolAverage
		}
		if c.scales >= 0 {
			o.out.perChannel = &channelScales{region: c.scales}
		}
		var got Cost
		o.cost(&got, config, &Timings{flash, sram, sram})
		if math.Abs(float64(got.Cycles)-c.want) > .12*c.want {
			t.Errorf("%d MACs, operation %#x, %v to %v: %d cycles, Vela says %.0f", c.macs, c.code, c.ifm, c.ofm, got.Cycles, c.want)
		}
	}
}

// TestTimeline checks that DMA runs in parallel with other operations, except where the stream
// waits.
func TestTimeline(t *testing.T) {
	dma := func(bytes float64, w waits) Cost {
		return Cost{isDMA: true, waits: w, moved: [isa.NumRegions]float64{bytes}}
	}
	kernel := func(cycles int64, w waits) Cost { return Cost{Cycles: cycles, waits: w} }
	m := &Timings{{Rate: 2}}
	got := Timeline([]Cost{dma(20, waits{}), kernel(100, waits{dma: 1}), dma(400, waits{}), kernel(50, waits{}), kernel(10, waits{dma: 1}),
		dma(2, waits{kernels: 1})}, m)
	want := []Span{{0, 10}, {10, 110}, {10, 210}, {110, 160}, {210, 220}, {220, 221}}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("operation %d: got %v, want %v", i, got[i], want[i])
		}
	}
}

// TestBursts checks that short requests cost whole bursts.
func TestBursts(t *testing.T) {
	var c Cost
	m := &Timings{{Rate: 4, Burst: 32}, {Rate: 1}}
	c.read(m, 0, 64, 8)
	c.write(m, 1, 100, 1)
	if c.moved[0] != 256 || c.Read[0] != 64 || c.Write[1] != 100 || m.Wait(&c) != 100 {
		t.Errorf("got %+v, wait %v", c, m.Wait(&c))
	}
}
