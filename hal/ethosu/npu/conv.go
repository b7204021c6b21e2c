package npu

import (
	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// conv is a convolution over all input channels; depthwise processes channels separately.
type (
	conv      struct{ *kernelOp }
	depthwise struct{ *kernelOp }
)

// convTile is the number of pixels of a tile: the patches of a tile and the weights of a few
// channels should fit the first-level caches.
const convTile = 32

func (d *decoder) conv(s *isa.Step) (operation, error) {
	o, err := d.kernelOp(d.regs.m1(isa.IFMDepthM1))
	if err != nil {
		return nil, err
	}
	o.unit, o.tile = conv{o}, min(convTile, o.out.w)
	if d.u85 && s.Param&1 == 1 {
		return o, d.dynamicWeights(o)
	}
	return o, d.weighted(o, false)
}

func (d *decoder) depthwise(*isa.Step) (operation, error) {
	o, err := d.kernelOp(d.regs.m1(isa.OFMDepthM1))
	if err != nil {
		return nil, err
	}
	o.unit, o.tile = depthwise{o}, o.smallTile()
	return o, d.weighted(o, true)
}

// dynamicWeights uses IFM2 as the weights: the weight of output channel x and input channel c is
// its element (0, x, c).
func (d *decoder) dynamicWeights(o *kernelOp) error {
	if o.window.taps() != 1 {
		return isa.Unsupported("kernel of %dx%d with weights from IFM2", o.window.kh, o.window.kw)
	}
	o.dynamic = true
	if err := d.inputMap(&o.ifm2, &ifm2Registers, 1, o.out.d, o.window.d); err != nil {
		return err
	}
	o.readsMap("IFM2", &o.ifm2)
	o.work = product64(o.out.elements(), int64(o.window.d))
	return d.scaleEntries(o)
}

// weighted decodes the location of an operation's weights.
func (d *decoder) weighted(o *kernelOp, isDepthwise bool) error {
	if d.ifm2Accumulates() {
		if err := d.accumulatorMap(o); err != nil {
			return err
		}
	}
	w, err := d.storedWeights(o, isDepthwise)
	if err != nil {
		return err
	}
	o.stored = w
	o.work = product64(o.out.elements(), int64(o.window.taps()))
	if !isDepthwise {
		o.work = product64(o.work, int64(o.window.d))
	}
	return d.scaleEntries(o)
}

// elements returns the number of elements before transposition.
func (o *output) elements() int64 { return int64(o.h) * int64(o.w) * int64(o.d) }

// smallTile returns the width of a tile whose accumulators fit the first-level cache.
func (o *kernelOp) smallTile() int { return min(max(4096/o.out.d, 1), o.out.w) }

func (o *kernelOp) rowNeeds() needs {
	row := o.window.padded() * o.window.d
	return needs{rows: row * o.window.slots(), slots: o.window.slots(), row: row, acc: o.tile * o.out.d}
}

func (c conv) needs() needs {
	n := c.rowNeeds()
	n.patch = c.tile * c.window.taps() * c.window.d
	return n
}

func (c depthwise) needs() needs { return c.rowNeeds() }

func (c conv) accumulate(w *worker, y, x0, x1 int, acc []int64) {
	w.run.weights.multiply(acc, c.patches(w, y, x0, x1), x1-x0)
}

// patches gathers the input elements under the kernel at each pixel: [pixel][ky][kx][c].
func (c conv) patches(w *worker, y, x0, x1 int) []int32 {
	v := &c.window
	at := y*v.strideY - v.top
	if v.taps() == 1 && v.strideX == 1 {
		return w.cache.row(c.kernelOp, w.run, at)[x0*v.d : x1*v.d]
	}
	k, run := v.taps()*v.d, v.kw*v.d
	patches := w.patch[:(x1-x0)*k]
	for ky := range v.kh {
		row := w.cache.row(c.kernelOp, w.run, at+ky*v.dilY)
		for x := x0; x < x1; x++ {
			to, from := patches[(x-x0)*k+ky*run:][:run], x*v.strideX*v.d
			if v.dilX == 1 {
				copy(to, row[from:])
				continue
			}
			for kx := range v.kw {
				copy(to[kx*v.d:(kx+1)*v.d], row[from+kx*v.dilX*v.d:])
			}
		}
	}
	return patches
}

func (c depthwise) accumulate(w *worker, y, x0, x1 int, acc []int64) {
	clear(acc)
	v, taps := &c.window, w.run.weights.taps
	for ky := range v.kh {
		row := w.cache.row(c.kernelOp, w.run, y*v.strideY-v.top+ky*v.dilY)
		for x := x0; x < x1; x++ {
			a := acc[(x-x0)*v.d:][:v.d]
			for kx := range v.kw {
				in := row[(x*v.strideX+kx*v.dilX)*v.d:][:len(a)]
				tap := taps[(ky*v.kw+kx)*v.d:][:len(a)]
				for i := range a {
					a[i] += int64(in[i]) * int64(tap[i])
				}
			}
		}
	}
}
