//go:build !purego && (amd64 || arm64)

package simd

// bounds are those of numbers before the zero point is added.
func (q *Quantized) bounds() (lo, hi float32) { return float32(q.Lo - q.Zero), float32(q.Hi - q.Zero) }

// row returns how many channels are done.
func (d *Depthwise) row(q *Quantized, dst []uint8, ldd int, a []uint8, step int, off []int, pixels int) int {
	if !vector {
		return 0
	}
	c := 0
	for ; c+DotCols <= d.Channels; c += DotCols {
		d.lane(q, &dst[c], ldd, &a[c], step, off, pixels, c)
	}
	for i := 0; c < d.Channels && i < pixels; i += DotCols {
		var part [DotCols * DotCols]uint8 // a pixel's last channels each
		n := min(pixels-i, DotCols)
		d.lane(q, &part[0], DotCols, &a[i*step+c], step, off, n, c)
		for k := range n {
			copy(dst[(i+k)*ldd+c:][:d.Channels-c], part[k*DotCols:])
		}
	}
	return d.Channels
}

// lane computes a block of channels from c on. Calls by name keep dst on the stack.
func (d *Depthwise) lane(q *Quantized, dst *uint8, ldd int, a *uint8, step int, off []int, pixels, c int) {
	lo, hi := q.bounds()
	w := &d.blocks[c/DotCols*d.block()]
	if q.Signed {
		depthwiseInt8(pixels, a, step, &off[0], d.pairs(), w, dst, ldd, lo, hi, q.Zero)
	} else {
		depthwiseUint8(pixels, a, step, &off[0], d.pairs(), w, dst, ldd, lo, hi, q.Zero)
	}
}
