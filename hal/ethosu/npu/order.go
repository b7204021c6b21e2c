package npu

import (
	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// errBudget is the refusal of streams that blow up.
var errBudget = isa.Malformed("more weights than the constants can hold")

// weightStream gives the weights of one core in the order of the stream.
type weightStream struct {
	reader *weightReader
	values []int16 // decoded weights
	at     int     // of the next one
	given  int     // weights before values
	more   bool    // the stream goes on after values
	err    error
}

// next is the next weight; ok is false at the end of the stream or at an error.
func (s *weightStream) next() (v int16, ok bool) {
	if s.at == len(s.values) && !s.refill() {
		return 0, false
	}
	v = s.values[s.at]
	s.at++
	return v, true
}

// refillWeights is the number of weights that are decoded at once.
const refillWeights = 1 << 14

func (s *weightStream) refill() bool {
	if !s.more || s.err != nil {
		return false
	}
	r := s.reader
	if r.values == nil {
		r.values = make([]int16, 0, refillWeights)
	}
	s.given, s.at = s.given+len(s.values), 0
	s.values, s.err = r.mlw.fill(r.values)
	s.more = len(s.values) == refillWeights
	if r.budget -= len(s.values); r.budget < 0 {
		s.err = errBudget
	}
	return s.err == nil && len(s.values) > 0
}

// rest reports weights other than 0 that are left. A stream holds zeros alone after
// what its operation needs, and no more of them than a slice has.
func (s *weightStream) rest() error {
	for range 2 * maxSlice {
		v, ok := s.next()
		if !ok {
			return s.err
		}
		if v != 0 {
			return isa.Malformed("weight %d is past the end and %d, not 0", s.given+s.at-1, v)
		}
	}
	return isa.Malformed("weight stream goes on after its end")
}

// grid holds the weights of an operation: [output channel][ky][kx][input channel],
// one input channel if it is depthwise.
type grid struct {
	o, kh, kw, i int
	v            []int16
}

// place moves the next weight of s to its position; positions outside the grid are
// padding and hold 0.
func (g *grid) place(s *weightStream, o, ky, kx, i int) error {
	v, ok := s.next()
	if !ok {
		if s.err != nil {
			return s.err
		}
		return isa.Malformed("weight stream too short: it ends after %d weights, at output channel %d of %d", s.given+s.at, min(o, g.o), g.o)
	}
	if o < g.o && i < g.i && ky < g.kh && kx < g.kw {
		g.v[((o*g.kh+ky)*g.kw+kx)*g.i+i] = v
		return nil
	}
	return paddingError(s, v)
}

// pad reads n weights of padding.
func (g *grid) pad(s *weightStream, n int) error {
	for range n {
		if err := g.place(s, g.o, 0, 0, 0); err != nil {
			return err
		}
	}
	return nil
}

func paddingError(s *weightStream, v int16) error {
	if v == 0 {
		return nil
	}
	return isa.Malformed("weight %d is padding and %d, not 0", s.given+s.at-1, v)
}

// weightOrder says in which order an operation's weights are stored.
type weightOrder struct {
	u85        bool
	depthwise  bool
	partKernel bool // KERNEL_STRIDE.weight_order
	sparse     bool // 2:4 sparse traversal of the U85
	ifm16      bool
	blockDepth int // OFM_BLK_DEPTH
	ublock     int // output channels that are worked on together
	ifmBlock   int // input channels of a block
	ifmUBlock  int
	subY, subX int // largest kernel part: 8 by 8, less if dilated
	round      int // kernel elements are padded to a multiple of it
	strideY    int
	strideX    int
	cores      int
	dwPad      int // zeros per 10 kernel elements and channel of a block, depthwise on large U85
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// readU65 reads the stream of one core of a U55 or U65. The cores of a U65-512 take
// the output channels in turn.
func (w *weightOrder) readU65(g *grid, s *weightStream, core int) error {
	depth := (g.o + w.cores - 1 - core) / w.cores
	block := max((w.blockDepth+w.cores-1-core)/w.cores, 1)
	for ob := 0; ob < depth; ob += block {
		odepth := min(block, depth-ob)
		for ib := 0; ib < g.i; ib += w.ifmBlock {
			idepth := w.ifmBlock
			switch {
			case w.depthwise:
				idepth = w.ifmUBlock
			case w.partKernel:
				idepth = min(idepth, g.i-ib)
			}
			for sy := 0; sy < g.kh; sy += w.subY {
				for sx := 0; sx < g.kw; sx += w.subX {
					p := part{w, g, s, core, ob, odepth, ib, idepth, sy, sx, min(w.subY, g.kh-sy), min(w.subX, g.kw-sx)}
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
	*weightOrder
	g          *grid
	s          *weightStream
	core       int
	ob, odepth int
	ib, idepth int
	sy, sx     int
	h, w       int
}

// read goes through a part of a U55 or U65 stream. Part-kernel order has the input
// channels outside, depth-first order inside.
func (p *part) read() error {
	outer, inner := 1, p.idepth
	if p.partKernel {
		outer, inner = p.idepth, 1
	}
	elements := roundUp(p.h*p.w, p.round)
	for iu := 0; iu < outer; iu += p.ifmUBlock {
		for ou := 0; ou < p.odepth; ou += p.ublock {
			for e := range elements {
				for ii := 0; ii < inner; ii += p.ifmUBlock {
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
	step := p.ifmUBlock
	if p.depthwise {
		step = 1
	}
	ky := p.sy + y
	if y >= p.h {
		ky = p.g.kh // padding of the elements
	}
	for o := range p.ublock {
		oc := (p.ob+ou+o)*p.cores + p.core
		for i := range step {
			if err := p.g.place(p.s, oc, ky, p.sx+x, p.ib+iu+i); err != nil {
				return err
			}
		}
	}
	return nil
}
