package npu

import (
	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// resize is the U85's resampling of the IFM.
type resize struct {
	*kernelOp
	nearest bool
	y, x    sampling
}

// sampling maps a row or column of the OFM to the IFM: i·step + offset, in units of 1/n.
type sampling struct {
	n, step, offset int
	size            int // of the IFM
}

// at returns the position's two neighbors, and the distance from the first one in units of 1/n.
func (s *sampling) at(i int) (first, second, part int) {
	p := i*s.step + s.offset
	first = p / s.n
	if p < first*s.n {
		first-- // floor
	}
	part = p - first*s.n
	return clampIndex(first, s.size), clampIndex(first+1, s.size), part
}

func clampIndex(i, size int) int { return min(max(i, 0), size-1) }

// Resize modes (field resize_mode).
const (
	resizeBilinear = 0
	resizeNearest  = 2
)

func (d *decoder) resize(s *isa.Step) (operation, error) {
	r := &d.regs
	mode := s.Param & 3
	if mode != resizeBilinear && mode != resizeNearest {
		return nil, isa.Unsupported("resize mode %d", mode)
	}
	o, err := d.kernelOutput()
	if err != nil {
		return nil, err
	}
	u := &resize{kernelOp: o, nearest: mode == resizeNearest}
	u.y = d.sampling(isa.ResizeY, isa.ResizeYScaleNM1, isa.ResizeYOffset, r.m1(isa.KernelHeightM1))
	u.x = d.sampling(isa.ResizeX, isa.ResizeXScaleNM1, isa.ResizeXOffset, r.m1(isa.KernelWidthM1))
	// The field is 16 more than the shift.
	if o.out.scale.shift < 16 {
		return nil, isa.Malformed("resize with shift %d, want at least 16", o.out.scale.shift)
	}
	o.out.scale.shift -= 16
	o.unit, o.tile, o.work = u, o.out.w, 4*o.out.elements()
	if err := d.inputMap(&o.ifm, &ifmRegisters, u.y.size, u.x.size, o.out.d); err != nil {
		return nil, err
	}
	o.readsMap("IFM", &o.ifm)
	return o, d.scaleEntries(o)
}

func (d *decoder) sampling(step, n, offset isa.Code, size int) sampling {
	r := &d.regs
	s := sampling{n: r.get(n)&(1<<11-1) + 1, size: size}
	s.step = r.high(step, 0, 4)*s.n + int(r.word(step)&(1<<11-1))
	s.offset = int(int16(r.get(offset)<<4)) >> 4 // signed 12 bits
	return s
}

func (u *resize) needs() needs {
	return needs{patch: 2 * u.x.size * u.out.d, acc: u.tile * u.out.d}
}

func (u *resize) accumulate(w *worker, y, x0, x1 int, acc []int64) {
	d, n := u.out.d, u.x.size*u.out.d
	first, second, fy := u.y.at(y)
	if u.nearest {
		if 2*fy >= u.y.n {
			first = second
		}
		second = first
	}
	above, below := w.patch[:n], w.patch[n:2*n]
	w.run.read(&u.ifm, above, first, 0, u.x.size)
	w.run.read(&u.ifm, below, second, 0, u.x.size)
	for x := x0; x < x1; x++ {
		left, right, fx := u.x.at(x)
		a := acc[(x-x0)*d:][:d]
		if u.nearest {
			if 2*fx >= u.x.n {
				left = right
			}
			for c := range a {
				a[c] = int64(above[left*d+c])
			}
			continue
		}
		for c := range a {
			top := int64(above[left*d+c])*int64(u.x.n-fx) + int64(above[right*d+c])*int64(fx)
			bottom := int64(below[left*d+c])*int64(u.x.n-fx) + int64(below[right*d+c])*int64(fx)
			a[c] = top*int64(u.y.n-fy) + bottom*int64(fy)
		}
	}
}
