package npu

// interleave is the number of output channels that go to one core of a U85 together.
const interleave = 4

// readU85 reads the stream of one core of a U85. The direction through the IFM blocks
// changes with every OFM block.
func (w *weightOrder) readU85(g *grid, s *weightStream, core int) error {
	last := (g.i - 1) / w.ifmBlock
	if w.depthwise {
		last = 0
	}
	backwards := false
	for ob := 0; ob < g.o; ob += w.blockDepth {
		for n := range last + 1 {
			ib := n
			if backwards {
				ib = last - n
			}
			if err := w.ifmBlockU85(g, s, core, ob, ib*w.ifmBlock); err != nil {
				return err
			}
		}
		backwards = !backwards
	}
	return nil
}

func (w *weightOrder) ifmBlockU85(g *grid, s *weightStream, core, ob, ib int) error {
	odepth, idepth := min(w.blockDepth, g.o-ob), min(w.ifmBlock, g.i-ib)
	if w.depthwise {
		idepth = 1
	}
	for sx := 0; sx < g.kw; sx += w.subX {
		for sy := 0; sy < g.kh; sy += w.subY {
			for iu := 0; iu < idepth; iu += w.ifmUBlock {
				for ou := 0; ou < odepth; ou += w.ublock {
					p := partU85{w, g, s, core, ob + ou, ib + iu, sy, sx, min(w.subY, g.kh-sy), min(w.subX, g.kw-sx), 0}
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
	*weightOrder
	g      *grid
	s      *weightStream
	core   int
	o, i   int // first channels of the groups
	sy, sx int
	h, w   int
	left   int // kernel elements up to the padded number
}

// read goes through the phases of the kernel's stride, and through each phase's
// elements, every second row backwards.
func (p *partU85) read() error {
	p.left = roundUp(p.h*p.w, p.round)
	for py := range p.strideY {
		for px := range p.strideX {
			h, w := (p.h+p.strideY-1-py)/p.strideY, (p.w+p.strideX-1-px)/p.strideX
			for y := range h {
				for x := range w {
					if y%2 == 1 {
						x = w - 1 - x
					}
					if err := p.element(p.sy+py+y*p.strideY, p.sx+px+x*p.strideX); err != nil {
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
	if p.depthwise {
		n += p.dwPad
	}
	return p.g.pad(p.s, n*p.ifmUBlock*p.ublock/p.cores)
}

// element reads one kernel element.
func (p *partU85) element(ky, kx int) error {
	p.left--
	step := 8
	switch {
	case p.depthwise:
		step = 1
	case p.sparse:
		step = 16
	}
	for ii := 0; ii < p.ifmUBlock; ii += step {
		for o := interleave * p.core; o < p.ublock; o += interleave * p.cores {
			for oi := range interleave {
				for i := range step {
					if err := p.g.place(p.s, p.o+o+oi, ky, kx, p.i+ii+i); err != nil {
						return err
					}
				}
			}
		}
	}
	if p.depthwise && p.left%p.round == 0 {
		return p.g.pad(p.s, p.dwPad*p.ublock/p.cores)
	}
	return nil
}
