package npu_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
	"github.com/etrun-go/etrun/hal/ethosu/npu"
)

// Configurations of the streams that tests write.
const (
	u55 = 0x1807
	u65 = 0x10006008
	u85 = 0x20000118
)

// play runs a stream over an arena, without constants.
func play(t *testing.T, config uint32, w *writer, arena []byte) error {
	t.Helper()
	c, err := isa.ParseConfig(config, 0)
	if err != nil {
		t.Fatal(err)
	}
	w.set(isa.OpStop, 0xffff, 0)
	p, err := npu.Decode(c, w.b)
	if err != nil {
		return err
	}
	n, err := p.Bind(&isa.Regions{1: {Kind: isa.Scratch, Size: int64(len(arena))}})
	if err != nil {
		return err
	}
	return n.NewRun(nil).Execute(context.Background(), &npu.Memory{1: arena}, nil)
}

// wide sets an address register.
func (w *writer) wide(c isa.Code, v int) { w.set(c, uint16(int64(v)>>32&0xff), uint32(v)) }

// TestDMA copies rows and planes in all modes. The arena starts with bytes 0 to 99.
func TestDMA(t *testing.T) {
	const plane, row, indexed, d3 = 2 << 9, 1 << 9, 1 << 11, 2 << 9
	index := func(arena []byte, numbers ...uint32) {
		for i, n := range numbers {
			binary.LittleEndian.PutUint32(arena[400+4*i:], n)
		}
	}
	tests := []struct {
		name   string
		config uint32
		write  func(w *writer, arena []byte)
		want   []byte // from 200
		err    string
	}{
		{"1-D", u55, func(w *writer, _ []byte) { w.wide(isa.DMA0Len, 3) }, []byte{0, 1, 2, 0xee}, ""},
		{"2-D with gaps at the destination", u65, func(w *writer, _ []byte) {
			w.set(isa.DMA0DstRegion, 1|row, 0)
			w.wide(isa.DMA0Len, 2)
			w.set(isa.DMA0Size0, 2, 0)
			w.wide(isa.DMA0Skip0, 1)
		}, []byte{0, 1, 0xee, 2, 3, 0xee}, ""},
		{"3-D with gaps at the source", u65, func(w *writer, _ []byte) {
			w.set(isa.DMA0SrcRegion, 1|plane, 0)
			w.wide(isa.DMA0Len, 1)
			w.set(isa.DMA0Size0, 2, 0)
			w.set(isa.DMA0Size1, 2, 0)
			w.wide(isa.DMA0Skip0, 4)
			w.wide(isa.DMA0Skip1, 10)
		}, []byte{0, 5, 20, 25, 0xee}, ""},
		{"strides", u85, func(w *writer, _ []byte) {
			w.set(isa.DMA0SrcRegion, 1|d3, 0)
			w.wide(isa.DMA0Len, 1)
			w.set(isa.DMA0Size0, 2, 0)
			w.set(isa.DMA0Size1, 2, 0)
			w.wide(isa.DMA0SrcStride0, 10)
			w.wide(isa.DMA0SrcStride1, 3)
			w.wide(isa.DMA0DstStride0, 2)
			w.wide(isa.DMA0DstStride1, 1)
		}, []byte{0, 3, 10, 13, 0xee}, ""},
		{"gather", u85, func(w *writer, arena []byte) {
			index(arena, 7, 0, 7)
			w.set(isa.DMA0SrcRegion, 1|row|indexed, 0)
			w.gather(3)
		}, []byte{70, 71, 0, 1, 70, 71, 0xee}, ""},
		{"scatter", u85, func(w *writer, arena []byte) {
			index(arena, 2, 0)
			w.set(isa.DMA0SrcRegion, 1|row, 0)
			w.set(isa.DMA0DstRegion, 1|indexed, 0)
			w.gather(2)
			w.wide(isa.DMA0SrcStride0, 10)
			w.wide(isa.DMA0DstStride0, 2)
		}, []byte{10, 11, 0xee, 0xee, 0, 1, 0xee}, ""},
		{"gather beyond the largest index", u85, func(w *writer, arena []byte) {
			index(arena, 7, 8)
			w.set(isa.DMA0SrcRegion, 1|row|indexed, 0)
			w.gather(2)
		}, nil, "index 1 of plane 0 is 8, want at most 7"},
		{"gather of a negative index", u85, func(w *writer, arena []byte) {
			index(arena, ^uint32(0))
			w.set(isa.DMA0SrcRegion, 1|row|indexed, 0)
			w.gather(1)
		}, nil, "is -1"},
		{"rows outside", u85, func(w *writer, _ []byte) {
			w.set(isa.DMA0SrcRegion, 1|row, 0)
			w.wide(isa.DMA0Len, 1)
			w.set(isa.DMA0Size0, 2, 0)
			w.wide(isa.DMA0SrcStride0, -1)
		}, nil, "DMA source read from -0x1"},
		{"of no bytes", u55, func(w *writer, _ []byte) { w.wide(isa.DMA0Len, 0) }, nil, "no bytes"},
		{"no such region", u55, func(w *writer, _ []byte) { w.wide(isa.DMA0Len, 3); w.set(isa.DMA0DstRegion, 4, 0) }, nil, "no memory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			arena := slices.Repeat([]byte{0xee}, 512)
			for i := range 100 {
				arena[i] = byte(i)
			}
			w := &writer{}
			w.set(isa.DMA0SrcRegion, 1, 0)
			w.set(isa.DMA0DstRegion, 1, 0)
			w.wide(isa.DMA0Dst, 200)
			tt.write(w, arena)
			w.set(isa.OpDMAStart, 0, 0)
			err := play(t, tt.config, w, arena)
			if (err == nil) != (tt.err == "") || err != nil && (!strings.Contains(err.Error(), tt.err) || !errors.Is(err, isa.ErrMalformed)) {
				t.Fatalf("got %v, want %q", err, tt.err)
			}
			if got := arena[200 : 200+len(tt.want)]; !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// gather sets the registers for rows of 2 bytes, 10 bytes apart, by index.
func (w *writer) gather(rows int) {
	w.wide(isa.DMA0Len, 2)
	w.set(isa.DMA0Size0, uint16(rows), 0)
	w.wide(isa.DMA0SrcStride0, 10)
	w.wide(isa.DMA0DstStride0, 2)
	w.set(isa.DMA0IdxRegion, 1, 0)
	w.wide(isa.DMA0Idx, 400)
	w.wide(isa.DMA0IdxMax, 7)
}

// TestElementwise applies every operation to rows of 32-bit numbers.
func TestElementwise(t *testing.T) {
	a := []int32{7, -7, 0, 1 << 30, -1 << 31, 100}
	b := []int32{2, 2, 5, 4, 1, 100}
	const trueBits = -1
	tests := []struct {
		name   string
		config uint32
		mode   uint16
		want   []int32
	}{
		{"MUL", u85, 0, []int32{14, -14, 0, 1<<31 - 1, -1 << 31, 10000}}, // saturates
		{"ADD", u85, 1, []int32{9, -5, 5, 1<<30 + 4, -1<<31 + 1, 200}},
		{"SUB", u85, 2, []int32{5, -9, -5, 1<<30 - 4, -1 << 31, 0}},
		{"MIN", u85, 3, []int32{2, -7, 0, 4, -1 << 31, 100}},
		{"MAX", u85, 4, []int32{7, 2, 5, 1 << 30, 1, 100}},
		{"LRELU", u85, 5, []int32{7, -21, 0, 1 << 30, -1 << 31, 100}}, // negative ones times 3
		{"ABS", u85, 6, []int32{7, 7, 0, 1 << 30, 1<<31 - 1, 100}},
		{"CLZ", u85, 7, []int32{29, 0, 32, 1, 0, 25}},
		{"SHR, half up", u85, 8, []int32{2, -2, 0, 1 << 26, -1 << 30, 0}},
		{"SHL", u85, 9, []int32{28, -28, 0, 0, 0, 0}},
		{"LSR", u85, 10, []int32{1, 1<<30 - 2, 0, 1 << 26, 1 << 30, 0}},
		{"DIV", u85, 11, []int32{3, -3, 0, 1 << 28, -1 << 31, 1}},
		{"CMP_EQ", u85, 16, []int32{0, 0, 0, 0, 0, trueBits}},
		{"CMP_NE", u85, 17, []int32{trueBits, trueBits, trueBits, trueBits, trueBits, 0}},
		{"CMP_GE", u85, 18, []int32{trueBits, 0, 0, trueBits, 0, trueBits}},
		{"CMP_GT", u85, 19, []int32{trueBits, 0, 0, trueBits, 0, 0}},
		{"AND", u85, 33, []int32{2, 0, 0, 0, 0, 100}},
		{"OR", u85, 34, []int32{7, -5, 5, 1<<30 + 4, -1<<31 + 1, 100}},
		{"XOR", u85, 35, []int32{5, -5, 5, 1<<30 + 4, -1<<31 + 1, 0}},
		{"NOT", u85, 36, []int32{-8, 6, -1, -1<<30 - 1, 1<<31 - 1, -101}},
		{"AND_NOT", u85, 42, []int32{5, -7, 0, 1 << 30, -1 << 31, 0}},
		{"CLZ", u55, 7, []int32{29, 0, 32, 1, 0, 25}},
		{"SHR, half up", u55, 8, []int32{2, -2, 0, 1 << 26, -1 << 30, 0}},
		{"SHL", u55, 9, []int32{28, -28, 0, 0, 0, 0}},
		{"MAX", u55, 4, []int32{7, 2, 5, 1 << 30, 1, 100}},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s %#x", tt.name, tt.config), func(t *testing.T) {
			arena := make([]byte, 4*3*len(a))
			for i := range a {
				binary.LittleEndian.PutUint32(arena[4*i:], uint32(a[i]))
				binary.LittleEndian.PutUint32(arena[4*(len(a)+i):], uint32(b[i]))
			}
			w := &writer{}
			w.rows(tt.config, len(a))
			if tt.name == "LRELU" {
				w.set(isa.IFM2Scale, 0, 3) // of negative numbers
			}
			w.set(isa.OpElementwise, tt.mode, 0)
			if err := play(t, tt.config, w, arena); err != nil {
				t.Fatal(err)
			}
			got := make([]int32, len(a))
			for i := range got {
				got[i] = int32(binary.LittleEndian.Uint32(arena[4*(2*len(a)+i):]))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%v and %v: got %v, want %v", a, b, got, tt.want)
			}
		})
	}
}

// rows sets three maps of 1x1xn signed 32-bit numbers, one after the other.
func (w *writer) rows(config uint32, n int) {
	size := 4 * n
	for _, c := range []isa.Code{isa.IFMRegion, isa.IFM2Region, isa.OFMRegion} {
		w.set(c, 1, 0)
	}
	const signed, ifm32, ofm32, natural = 1, 2 << 2, 2 << 1, 2 << 14
	w.set(isa.IFM2Precision, signed|ifm32, 0)
	w.wide(isa.IFM2Base0, size)
	w.wide(isa.OFMBase0, 2*size)
	w.set(isa.OFMDepthM1, uint16(n-1), 0)
	if config == u85 {
		w.set(isa.IFMPrecision, signed|ifm32, 0)
		w.set(isa.OFMPrecision, signed|ofm32|1<<8, 0)
		w.set(isa.Activation, 1<<12, 0) // no clamp
		w.set(isa.IFMScale, 0, 1)
		w.set(isa.IFM2Scale, 0, 1)
		w.set(isa.OFMScale, 1<<13, 1)
	} else {
		w.set(isa.IFMPrecision, signed|ifm32, 0)
		w.set(isa.OFMPrecision, signed|ofm32|1<<8|natural, 0)
		w.set(isa.OFMScale, 0, 1)
	}
}
