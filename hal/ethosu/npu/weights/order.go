package weights

import "github.com/etrun-go/etrun/internal/pack"

// Order describes the encoding and order of an operation's weights.
type Order struct {
	U85          bool
	Fast         bool // the fast weight stream of the U85: one for all cores
	Depthwise    bool
	PartKernel   bool // KERNEL_STRIDE.weight_order
	Sparse       bool // 2:4 sparse traversal of the U85
	IFM16        bool // inputs of 16 bits
	BlockDepth   int  // OFM_BLK_DEPTH
	UBlock       int  // output channels that are processed together
	IFMBlock     int  // input channels per block
	IFMUBlock    int
	SubY, SubX   int // largest kernel part: 8 by 8, less if dilated
	Round        int // kernel elements are padded to a multiple of it
	StrideY      int
	StrideX      int
	Cores        int
	DepthwisePad int // zeros per 10 kernel elements and channel of a block, depthwise on large U85
}

// Streams returns the number of weight streams.
func (w *Order) Streams() int {
	if w.Fast {
		return 1
	}
	return w.Cores
}

// readU65 reads the stream of one core of a U55 or U65. The cores of a U65-512 alternate between
// output channels.
func (w *Order) readU65(g *Grid, s *stream, core int) error {
	depth := (g.O + w.Cores - 1 - core) / w.Cores
	block := max((w.BlockDepth+w.Cores-1-core)/w.Cores, 1)
	for ob := 0; ob < depth; ob += block {
		odepth := min(block, depth-ob)
		for ib := 0; ib < g.I; ib += w.IFMBlock {
			idepth := w.IFMBlock
			switch {
			case w.Depthwise:
				idepth = w.IFMUBlock
			case w.PartKernel:
				idepth = min(idepth, g.I-ib)
			}
			for sy := 0; sy < g.KH; sy += w.SubY {
				for sx := 0; sx < g.KW; sx += w.SubX {
					p := part{w, g, s, core, ob, odepth, ib, idepth, sy, sx, min(w.SubY, g.KH-sy), min(w.SubX, g.KW-sx)}
					if err := p.read(); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// part is one part of the kernel for one OFM block and one IFM block.
type part struct {
	*Order
	g          *Grid
	s          *stream
	core       int
	ob, odepth int
	ib, idepth int
	sy, sx     int
	h, w       int
}

// read reads a part of a U55 or U65 stream. Part-kernel order iterates over input channels outside,
// depth-first order inside.
func (p *part) read() error {
	outer, inner := 1, p.idepth
	if p.PartKernel {
		outer, inner = p.idepth, 1
	}
	elements := pack.Align(p.h*p.w, p.Round)
	for iu := 0; iu < outer; iu += p.IFMUBlock {
		for ou := 0; ou < p.odepth; ou += p.UBlock {
			for e := range elements {
				for ii := 0; ii < inner; ii += p.IFMUBlock {
					if err := p.ublocks(ou, iu+ii, e/p.w, e%p.w); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// ublocks reads one kernel element of a group of output and input channels.
func (p *part) ublocks(ou, iu, y, x int) error {
	step := p.IFMUBlock
	if p.Depthwise {
		step = 1
	}
	ky := p.sy + y
	if y >= p.h {
		ky = p.g.KH // padding of the elements
	}
	for o := range p.UBlock {
		oc := (p.ob+ou+o)*p.Cores + p.core
		for i := range step {
			if err := p.g.place(p.s, oc, ky, p.sx+x, p.ib+iu+i); err != nil {
				return err
			}
		}
	}
	return nil
}
