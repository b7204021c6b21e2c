package weights

import "github.com/etrun-go/etrun/internal/pack"

// interleave is the number of consecutive output channels per core of a U85.
const interleave = 4

// readU85 reads the stream of one core of a U85. The direction through the IFM blocks alternates
// with every OFM block.
func (w *Order) readU85(g *Grid, s *stream, core int) error {
	last := (g.I - 1) / w.IFMBlock
	if w.Depthwise {
		last = 0
	}
	backwards := false
	for ob := 0; ob < g.O; ob += w.BlockDepth {
		for n := range last + 1 {
			ib := n
			if backwards {
				ib = last - n
			}
			if err := w.ifmBlockU85(g, s, core, ob, ib*w.IFMBlock); err != nil {
				return err
			}
		}
		backwards = !backwards
	}
	return nil
}

func (w *Order) ifmBlockU85(g *Grid, s *stream, core, ob, ib int) error {
	odepth, idepth := min(w.BlockDepth, g.O-ob), min(w.IFMBlock, g.I-ib)
	if w.Depthwise {
		idepth = 1
	}
	for sx := 0; sx < g.KW; sx += w.SubX {
		for sy := 0; sy < g.KH; sy += w.SubY {
			for iu := 0; iu < idepth; iu += w.IFMUBlock {
				for ou := 0; ou < odepth; ou += w.UBlock {
					p := partU85{w, g, s, core, ob + ou, ib + iu, sy, sx, min(w.SubY, g.KH-sy), min(w.SubX, g.KW-sx), 0}
					if err := p.read(); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// partU85 is one part of the kernel for one group of output and of input channels.
type partU85 struct {
	*Order
	g      *Grid
	s      *stream
	core   int
	o, i   int // first channels of the groups
	sy, sx int
	h, w   int
	left   int // kernel elements up to the padded number
}

// read iterates over the phases of the kernel's stride and each phase's elements, every second row
// backwards.
func (p *partU85) read() error {
	p.left = pack.Align(p.h*p.w, p.Round)
	for py := range p.StrideY {
		for px := range p.StrideX {
			h, w := (p.h+p.StrideY-1-py)/p.StrideY, (p.w+p.StrideX-1-px)/p.StrideX
			for y := range h {
				for x := range w {
					if y%2 == 1 {
						x = w - 1 - x
					}
					if err := p.element(p.sy+py+y*p.StrideY, p.sx+px+x*p.StrideX); err != nil {
						return err
					}
				}
			}
		}
	}
	if p.left == 0 {
		return nil
	}
	n := p.left
	if p.Depthwise {
		n += p.DepthwisePad
	}
	return p.g.pad(p.s, n*p.IFMUBlock*p.UBlock/p.Cores)
}

// element reads one kernel element.
func (p *partU85) element(ky, kx int) error {
	p.left--
	step := 8
	switch {
	case p.Depthwise:
		step = 1
	case p.Sparse:
		step = 16
	}
	for ii := 0; ii < p.IFMUBlock; ii += step {
		for o := interleave * p.core; o < p.UBlock; o += interleave * p.Cores {
			for oi := range interleave {
				for i := range step {
					if err := p.g.place(p.s, p.o+o+oi, ky, kx, p.i+ii+i); err != nil {
						return err
					}
				}
			}
		}
	}
	if p.Depthwise && p.left%p.Round == 0 {
		return p.g.pad(p.s, p.DepthwisePad*p.UBlock/p.Cores)
	}
	return nil
}
