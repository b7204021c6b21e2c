package npu

import (
	"bufio"
	"fmt"
	"io"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// Disassemble writes one line per command of a stream: the index of its first word, and its text
// ([isa.Step.Format]). Below each operation it writes its feature maps and memory, with addresses
// and shapes:
//
//	64 NPU_OP_POOL pooling_mode=AVERAGE
//	    ; IFM  region 1 at 0xc00: 3x32x32 int8 NHWC, zero point 0
//
// It continues after invalid operations and returns the first error.
func Disassemble(w io.Writer, c isa.Config, stream []byte) error {
	out := bufio.NewWriter(w)
	defer out.Flush()
	d := &decoder{config: c, u85: c.Family == isa.U85, p: &Program{Config: c}}
	var s isa.Step
	var first error
	for r := isa.NewReader(c.Family, stream); ; {
		ok, err := r.Next(&s)
		if !ok {
			if first == nil {
				first = err
			}
			return first
		}
		fmt.Fprintf(out, "%5d %s\n", s.Word, s.Format(nil))
		n := len(d.p.ops)
		if err := d.step(&s); err != nil {
			fmt.Fprintf(out, "      ; %v\n", err)
			if first == nil {
				first = err
			}
		}
		if len(d.p.ops) > n {
			for _, line := range d.p.ops[n].describe() {
				fmt.Fprintf(out, "      ; %s\n", line)
			}
		}
	}
}

func (o *kernelOp) describe() []string {
	var lines []string
	if o.ifm.h > 0 {
		lines = append(lines, "IFM  "+o.ifm.String())
	}
	if o.ifm2.h > 0 {
		lines = append(lines, "IFM2 "+o.ifm2.String())
	}
	if v := &o.window; v.kh > 0 {
		lines = append(lines, fmt.Sprintf("kernel %dx%d, stride %dx%d, dilation %dx%d, padding %d %d %d %d",
			v.kh, v.kw, v.strideY, v.strideX, v.dilY, v.dilX, v.top, v.left, v.bottom, v.right))
	}
	if o.stored != nil {
		for _, s := range o.stored.streams {
			lines = append(lines, fmt.Sprintf("weights %v (OHWI), region %d at %#x, %d bytes", o.stored.shape, s.region, s.lo, s.hi-s.lo))
		}
	}
	if c := o.out.perChannel; c != nil {
		lines = append(lines, fmt.Sprintf("scales region %d at %#x, %d channels", c.region, c.base[0], o.out.d))
	}
	return append(lines, o.out.lines()...)
}

func (m *move) describe() []string {
	return append([]string{"IFM  " + m.src.String()}, m.out.lines()...)
}

func (o *dma) describe() []string {
	size := fmt.Sprintf("%d bytes", o.length)
	if o.rows*o.planes != 1 {
		size = fmt.Sprintf("%d planes of %d rows of %d bytes", o.planes, o.rows, o.length)
	}
	return []string{fmt.Sprintf("%s from %v to %v", size, &o.src, &o.dst)}
}

func (s *dmaSide) String() string {
	if s.internal {
		return fmt.Sprintf("table memory %#x", s.base&(lutBytes-1))
	}
	text := fmt.Sprintf("region %d at %#x", s.region, s.base)
	if s.indexed {
		text += " (rows by index)"
	}
	return text
}

func (o *output) lines() []string {
	text := "OFM  " + o.ofm.String()
	if o.axes != transposes[0] {
		text += fmt.Sprintf(", from %dx%dx%d", o.h, o.w, o.d)
	}
	if o.reverse != 0 {
		text += ", reversed along " + "HWC"[o.reverse-1:o.reverse]
	}
	return []string{text}
}

// String formats the map's location, shape, type and zero point.
func (f *fmap) String() string {
	kind := "uint"
	if f.signed {
		kind = "int"
	}
	format := "NHWC"
	if f.bricks {
		format = "NHCWB16"
	}
	shape := fmt.Sprintf("%dx%dx%d %s%d", f.h, f.w, f.d, kind, 8*f.size)
	switch f.storage {
	case isScalar:
		return fmt.Sprintf("scalar %d, zero point %d", f.scalar, f.zero)
	case nowhere:
		return "none"
	case inChain:
		return fmt.Sprintf("chain buffer %d: %s, zero point %d", f.region, shape, f.zero)
	}
	return fmt.Sprintf("region %d at %#x: %s %s, zero point %d", f.region, f.base[0], shape, format, f.zero)
}
