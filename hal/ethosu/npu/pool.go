package npu

import (
	"math"
	"math/bits"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// Pooling modes (field pooling_mode).
const (
	poolMax       = 0
	poolAverage   = 1
	poolReduceSum = 2 // over channels
	poolSum       = 3 // from here on the U85's
	poolNone      = 4 // no IFM: accumulators start from IFM2
	poolMin       = 5
	poolArgMaxX   = 6
	poolArgMaxY   = 7
)

// pool reduces the elements under the kernel.
type pool struct {
	*kernelOp
	mode   int
	divide bool // averages are divided by the number of elements on the IFM
}

func (d *decoder) pool(s *isa.Step) (operation, error) {
	mode := int(s.Param & 7)
	if mode > poolReduceSum && !d.u85 {
		return nil, isa.Malformed("pooling mode %d", mode)
	}
	depth := d.regs.m1(isa.OFMDepthM1)
	if mode == poolReduceSum {
		depth = d.regs.m1(isa.IFMDepthM1)
	}
	if mode == poolNone {
		return d.nullPool()
	}
	o, err := d.kernelOp(depth)
	if err != nil {
		return nil, err
	}
	o.tile, o.work = o.smallTile(), product64(o.out.elements(), int64(o.window.taps()))
	if mode == poolReduceSum {
		if o.out.d != 1 {
			return nil, isa.Malformed("sum over channels with %d output channels", o.out.d)
		}
		o.work = product64(o.work, int64(depth))
	}
	if d.ifm2Accumulates() {
		if err := d.accumulatorMap(o); err != nil {
			return nil, err
		}
	}
	v := &o.window
	if d.u85 {
		o.unit = pool{o, mode, mode == poolAverage && v.taps() > 1}
		return o, d.scaleEntries(o)
	}
	divide := mode == poolAverage && v.top+v.bottom+v.left+v.right > 0
	o.unit = pool{o, mode, divide}
	// The maximum and the average over padded windows have no scale.
	o.out.scaled = !divide && mode != poolMax
	return o, nil
}

// nullPool copies IFM2.
func (d *decoder) nullPool() (operation, error) {
	o, err := d.kernelOutput()
	if err != nil {
		return nil, err
	}
	o.unit, o.tile, o.work = nullPool{o}, o.smallTile(), o.out.elements()
	if !d.ifm2Accumulates() {
		return nil, isa.Malformed("pooling mode NONE without IFM2 as accumulator")
	}
	if err := d.accumulatorMap(o); err != nil {
		return nil, err
	}
	return o, d.scaleEntries(o)
}

type nullPool struct{ *kernelOp }

func (p nullPool) needs() needs { return needs{acc: p.tile * p.out.d} }

func (nullPool) accumulate(_ *worker, _, _, _ int, acc []int64) { clear(acc) }

func (p pool) needs() needs {
	n := p.rowNeeds()
	n.aux = n.acc
	return n
}

func (p pool) accumulate(w *worker, y, x0, x1 int, acc []int64) {
	v := &p.window
	top := y*v.strideY - v.top
	switch p.mode {
	case poolMax:
		fill(acc, math.MinInt64)
	case poolMin:
		fill(acc, math.MaxInt64)
	case poolArgMaxX, poolArgMaxY:
		p.argMax(w, y, x0, x1, acc)
		return
	default:
		clear(acc)
	}
	for ky := range v.kh {
		iy := top + ky*v.dilY
		extreme := p.mode == poolMax || p.mode == poolMin
		if extreme && (iy < 0 || iy >= v.h) {
			continue
		}
		row := w.cache.row(p.kernelOp, w.run, iy)
		for x := x0; x < x1; x++ {
			a := acc[(x-x0)*p.out.d:][:p.out.d]
			for kx := range v.kw {
				ix := x*v.strideX + kx*v.dilX
				if extreme && (ix < v.left || ix >= v.left+v.w) {
					continue
				}
				p.combine(a, row[ix*v.d:(ix+1)*v.d])
			}
		}
	}
	if p.divide {
		p.average(acc, y, x0, x1)
	}
}

func fill(v []int64, x int64) {
	for i := range v {
		v[i] = x
	}
}

// combine adds one kernel element to a pixel.
func (p pool) combine(a []int64, in []int32) {
	switch p.mode {
	case poolMax:
		for i, v := range in[:len(a)] {
			a[i] = max(a[i], int64(v))
		}
	case poolMin:
		for i, v := range in[:len(a)] {
			a[i] = min(a[i], int64(v))
		}
	case poolReduceSum:
		sum := a[0]
		for _, v := range in {
			sum += int64(v)
		}
		a[0] = sum
	default:
		for i, v := range in[:len(a)] {
			a[i] += int64(v)
		}
	}
}

// average divides sums by the number of elements that are not padding.
func (p pool) average(acc []int64, y, x0, x1 int) {
	v := &p.window
	rows := valid(y*v.strideY-v.top, v.kh, v.dilY, v.h)
	for x := x0; x < x1; x++ {
		n := rows * valid(x*v.strideX-v.left, v.kw, v.dilX, v.w)
		if n < 2 {
			continue
		}
		k := bits.Len(uint(n - 1))
		s := scaling{mult: (1<<30 + 1) << k / int64(n), shift: uint(30 + k), rounding: natural}
		for i, sum := range acc[(x-x0)*p.out.d:][:p.out.d] {
			acc[(x-x0)*p.out.d+i] = s.apply(sum)
		}
	}
}

// argMax finds the first maximum under the kernel along its axis. The accumulator contains the
// index shifted left by 16 bits; the operation's output scale shifts it back.
func (p pool) argMax(w *worker, y, x0, x1 int, acc []int64) {
	v, best := &p.window, w.aux[:len(acc)]
	clear(acc)
	fill(best, math.MinInt64)
	for ky := range v.kh {
		iy := y*v.strideY - v.top + ky*v.dilY
		if iy < 0 || iy >= v.h {
			continue
		}
		row := w.cache.row(p.kernelOp, w.run, iy)
		for kx := range v.kw {
			index := int64(kx)
			if p.mode == poolArgMaxY {
				index = int64(ky)
			}
			for x := x0; x < x1; x++ {
				ix, at := x*v.strideX+kx*v.dilX, (x-x0)*p.out.d
				if ix < v.left || ix >= v.left+v.w {
					continue
				}
				for c, e := range row[ix*v.d : (ix+1)*v.d] {
					if int64(e) > best[at+c] {
						best[at+c], acc[at+c] = int64(e), index<<16
					}
				}
			}
		}
	}
}
