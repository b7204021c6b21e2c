package npu_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/hal/ethosu/ethosutest"
	"github.com/etrun-go/etrun/hal/ethosu/isa"
	"github.com/etrun-go/etrun/hal/ethosu/npu"
)

func TestDisassemble(t *testing.T) {
	tests := []struct {
		vector string
		want   []string // lines below operations, without those between
	}{
		{"u55-128/conv3x3/d0", []string{
			"   64 NPU_OP_POOL pooling_mode=AVERAGE\n", "; IFM  region 1 at 0x320: 8x9x11 int8 NHWC, zero point 0\n",
			"  167 NPU_OP_CONV\n", "; IFM  region 1 at 0x4f0: 9x11x8 int8 NHWC, zero point -11\n",
			"; kernel 3x3, stride 1x1, dilation 1x1, padding 0 0 0 0\n", "; weights 20x3x3x8 (OHWI), region 0 at 0xd0, 1728 bytes\n",
			"; scales region 0 at 0x0, 20 channels\n", "; OFM  region 1 at 0x0: 7x9x20 int8 NHWC, zero point -2\n", "NPU_OP_STOP"}},
		{"u85-256/bmm/d0", []string{"NPU_OP_CONV weights_ifm2=1\n", "; IFM2 region"}},
		{"u55-128/sigmoid/d0", []string{"NPU_OP_DMA_START\n", "; 256 bytes from region 0 at 0x0 to table memory"}},
	}
	for _, tt := range tests {
		t.Run(tt.vector, func(t *testing.T) {
			p, err := isa.ParsePayload(ethosutest.Find(t, tt.vector).Block("cmd_data"))
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := npu.Disassemble(&out, p.Config, p.Stream); err != nil {
				t.Fatal(err)
			}
			text := out.String()
			for _, w := range tt.want {
				_, rest, ok := strings.Cut(text, w)
				if !ok {
					t.Fatalf("no %q in order in\n%s", w, out.String())
				}
				text = rest
			}
		})
	}
}
