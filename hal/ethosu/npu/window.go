package npu

import (
	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// upscale is the upscaling of the rows and columns of an IFM.
type upscale uint8

const (
	upscaleNone    upscale = iota
	upscaleNearest         // each one twice
	upscaleZeros           // a zero after each one
)

// window is the geometry of a kernel on the IFM.
type window struct {
	kh, kw           int // kernel size
	dilY, dilX       int
	strideY, strideX int
	top, left        int // padding
	bottom, right    int
	h, w             int // size of the IFM under the kernel, after upscaling
	d                int // channels to read
	upscale          upscale
}

// window decodes the kernel's registers for an OFM of h rows and w columns. The size of the IFM
// follows from them, as it has no register.
func (d *decoder) window(h, w, depth int) (window, error) {
	r := &d.regs
	k := isa.KernelStride
	v := window{
		dilX: 1 + r.bits(k, 3, 1), dilY: 1 + r.bits(k, 4, 1),
		strideX: 1 + r.bits(k, 0, 1) + 2*r.bits(k, 6, 1), strideY: 1 + r.bits(k, 1, 1) + 2*r.bits(k, 9, 1),
		top: r.bits(isa.IFMPadTop, 0, 7), left: r.bits(isa.IFMPadLeft, 0, 7),
		bottom: r.bits(isa.IFMPadBottom, 0, 8), right: r.bits(isa.IFMPadRight, 0, 8),
		d: depth, upscale: upscale(r.bits(isa.IFMUpscale, 0, 2)),
	}
	if v.upscale > upscaleZeros {
		return v, isa.Malformed("upscale mode %d", v.upscale)
	}
	v.kh, v.kw = r.get(isa.KernelHeightM1)/v.dilY+1, r.get(isa.KernelWidthM1)/v.dilX+1
	v.h = (h-1)*v.strideY + (v.kh-1)*v.dilY + 1 - v.top - v.bottom
	v.w = (w-1)*v.strideX + (v.kw-1)*v.dilX + 1 - v.left - v.right
	if v.h <= 0 || v.w <= 0 {
		return v, isa.Malformed("IFM of %d rows and %d columns", v.h, v.w)
	}
	return v, nil
}

// mapSize returns the numbers of rows and columns of the IFM in memory.
func (v *window) mapSize() (h, w int) {
	if v.upscale == upscaleNone {
		return v.h, v.w
	}
	return (v.h + 1) / 2, (v.w + 1) / 2
}

// taps returns the number of elements of the kernel.
func (v *window) taps() int { return v.kh * v.kw }

// padded returns the width of a row including padding.
func (v *window) padded() int { return v.left + v.w + v.right }

// slots returns the number of IFM rows that one OFM row needs.
func (v *window) slots() int { return (v.kh-1)*v.dilY + 1 }

// rowCache caches IFM rows that a worker has read: converted, upscaled and zero-padded left and
// right. Rows above and below the IFM are zeros.
type rowCache struct {
	rows []int32
	tags []rowTag
	zero []int32
}

// rowTag identifies the row in a slot, and its operation.
type rowTag struct {
	operation uint64
	y         int
}

// row returns row y of the IFM, counted from its first row without padding.
func (c *rowCache) row(o *kernelOp, r *Run, y int) []int32 {
	v := &o.window
	n := v.padded() * v.d
	if y < 0 || y >= v.h || v.upscale == upscaleZeros && y%2 == 1 {
		return c.zero[:n]
	}
	slot := y % v.slots()
	row, tag := c.rows[slot*n:][:n], rowTag{r.operations, y}
	if c.tags[slot] == tag {
		return row
	}
	c.tags[slot] = tag
	clear(row[:v.left*v.d])
	clear(row[(v.left+v.w)*v.d:])
	inner := row[v.left*v.d : (v.left+v.w)*v.d]
	if v.upscale == upscaleNone {
		r.read(&o.ifm, inner, y, 0, v.w)
		return row
	}
	_, w := v.mapSize()
	r.read(&o.ifm, inner[:w*v.d], y/2, 0, w)
	v.upscaleRow(inner)
	return row
}

// upscaleRow upscales a row in place; its columns are adjacent at its start.
func (v *window) upscaleRow(row []int32) {
	for x := v.w - 1; x >= 0; x-- {
		to := row[x*v.d : (x+1)*v.d]
		if v.upscale == upscaleZeros && x%2 == 1 {
			clear(to)
			continue
		}
		copy(to, row[x/2*v.d:])
	}
}

// valid returns the number of kernel rows or columns at position p that are on the IFM, not on its
// padding.
func valid(p, k, dilation, size int) int {
	n := 0
	for i := range k {
		if q := p + i*dilation; q >= 0 && q < size {
			n++
		}
	}
	return n
}
