package npu_test

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/hal/ethosu/isa"
	"github.com/etrun-go/etrun/hal/ethosu/npu"
)

// writer writes command streams.
type writer struct{ b []byte }

func (w *writer) set(c isa.Code, param uint16, payload uint32) {
	word := uint32(param)<<16 | uint32(c&^isa.Wide)
	if c&isa.Wide != 0 {
		w.b = binary.LittleEndian.AppendUint32(w.b, word|1<<14)
		w.b = binary.LittleEndian.AppendUint32(w.b, payload)
		return
	}
	w.b = binary.LittleEndian.AppendUint32(w.b, word)
}

// small registers have values with which most operations stay within their memory.
var small = []struct {
	codes []isa.Code
	limit int
}{
	{[]isa.Code{isa.OFMHeightM1, isa.OFMWidthM1, isa.OFMDepthM1, isa.IFMDepthM1}, 20},
	{[]isa.Code{isa.KernelHeightM1, isa.KernelWidthM1}, 4},
	{[]isa.Code{isa.IFMPadTop, isa.IFMPadLeft, isa.IFMPadBottom, isa.IFMPadRight, isa.IFMUpscale}, 3},
	{[]isa.Code{isa.IFMBroadcast, isa.IFM2Broadcast}, 16},
	{[]isa.Code{isa.IFMHeight0M1, isa.IFMHeight1M1, isa.IFMWidth0M1, isa.IFM2Height0M1, isa.IFM2Height1M1, isa.IFM2Width0M1,
		isa.OFMHeight0M1, isa.OFMHeight1M1, isa.OFMWidth0M1}, 30},
	{[]isa.Code{isa.IFMZeroPoint, isa.IFM2ZeroPoint, isa.OFMZeroPoint, isa.ActivationMin, isa.ActivationMax, isa.KernelStride,
		isa.Activation, isa.ParallelMode, isa.ResizeXScaleNM1, isa.ResizeYScaleNM1, isa.ResizeXOffset, isa.ResizeYOffset,
		isa.IFMPrecision, isa.IFM2Precision, isa.OFMPrecision, isa.AccFormat, isa.WeightFormat}, 1 << 16},
	{[]isa.Code{isa.OFMBlkDepthM1}, 64},
	{[]isa.Code{isa.DMA0Size0, isa.DMA0Size1}, 5},
}

// random writes registers and operations. Addresses, strides and sizes are small.
func (w *writer) random(r *rand.Rand, operations int) {
	ops := []isa.Code{isa.OpConv, isa.OpDepthwise, isa.OpPool, isa.OpElementwise, isa.OpDMAStart, isa.OpResize}
	for range operations {
		for _, s := range small {
			for _, c := range s.codes {
				if r.IntN(3) == 0 {
					w.set(c, uint16(r.IntN(s.limit)), 0)
				}
			}
		}
		for c := isa.Code(0); c < 0x98; c++ {
			if r.IntN(4) == 0 && isa.Lookup(isa.U85, c|isa.Wide) != nil {
				w.set(c|isa.Wide, uint16(r.IntN(1<<16))&0xff00, uint32(r.IntN(1<<r.IntN(12))))
			}
		}
		for _, c := range []isa.Code{isa.IFMRegion, isa.IFM2Region, isa.OFMRegion, isa.DMA0DstRegion} {
			w.set(c, 1, 0)
		}
		w.set(isa.OFMScale, uint16(r.IntN(64)), r.Uint32()>>r.IntN(32))
		w.set(isa.ScaleLength, 0, 1<<16-1)
		w.set(isa.WeightLength, 0, uint32(r.IntN(2000)))
		w.set(ops[r.IntN(len(ops))], uint16(r.IntN(64)), 0)
	}
	w.set(isa.OpStop, 0xffff, 0)
}

// TestRandomStreams runs operations with random registers. Many are refused; accepted ones must
// stay within their memory.
func TestRandomStreams(t *testing.T) {
	pool := cpu.NewPool(2)
	defer pool.Close()
	ran := map[string]int{}
	for _, word := range []uint32{0x1807, 0x10006009, 0x20000118, 0x2000011b} {
		c, err := isa.ParseConfig(word, 0)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(1, uint64(word)))
		constants := make([]byte, 1<<17)
		for i := range constants {
			constants[i] = byte(r.Uint32() >> r.IntN(8))
		}
		mem := npu.Memory{constants, make([]byte, 1<<16)}
		for range 5000 {
			var w writer
			w.random(r, 1+r.IntN(2))
			p, err := npu.Decode(c, onlyKnown(c.Family, w.b))
			if err != nil {
				checkError(t, err)
				continue
			}
			n, err := p.Bind(&isa.Regions{{Kind: isa.Constants, Size: int64(len(constants)), Data: constants}, {Kind: isa.Scratch, Size: 1 << 16}})
			if err != nil {
				checkError(t, err)
				continue
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			if err := n.NewRun(pool).Execute(ctx, &mem, nil); err != nil {
				checkError(t, err)
			}
			cancel()
			for _, op := range p.Operations() {
				ran[c.Family.String()+" "+op.Name]++
			}
		}
	}
	for _, f := range []string{"Ethos-U55", "Ethos-U85"} {
		for _, op := range []string{"POOL", "ELEMENTWISE", "DMA_START"} {
			if ran[f+" NPU_OP_"+op] < 5 {
				t.Errorf("%s: %d runs of %s, want some", f, ran[f+" NPU_OP_"+op], op)
			}
		}
	}
	t.Log(ran)
}

// onlyKnown removes the commands that a family does not have.
func onlyKnown(f isa.Family, stream []byte) []byte {
	var out []byte
	for len(stream) > 0 {
		w := binary.LittleEndian.Uint32(stream)
		c, n := isa.Code(w&0x3ff), 4
		if w>>14&1 == 1 {
			c, n = c|isa.Wide, 8
		}
		if isa.Lookup(f, c) != nil {
			out = append(out, stream[:n]...)
		}
		stream = stream[n:]
	}
	return out
}
