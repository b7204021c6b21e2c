package simd

import "golang.org/x/sys/cpu"

// bounds are those of numbers before the zero point is added.
func (q *Quantized) bounds() (lo, hi float32) { return float32(q.Lo - q.Zero), float32(q.Hi - q.Zero) }

// words reports that the zero point is far enough from the bounds of 16-bit words for the loops of NEON.
func (q *Quantized) words() bool { return uint32(q.Zero+far) <= 2*far }

const far = 1 << 14

// requantize returns how many columns are done.
func (q *Quantized) requantize(dst []uint8, ldd int, src []int32, lds int, init []int32, scale []float32, m, n int) int {
	lo, hi := q.bounds()
	if avx512 {
		requantize512(m, n, &dst[0], ldd, &src[0], 4*lds, &init[0], &scale[0], lo, hi, q.Zero)
		return n
	}
	done := vectorized(n)
	blocks := done / lanes
	if neon {
		done, blocks = n, n // these loops do all columns
	}
	switch {
	case done == 0 || neon && !q.words():
		return 0
	case q.Signed:
		requantizeInt8(m, blocks, &dst[0], ldd, &src[0], 4*lds, &init[0], &scale[0], lo, hi, q.Zero)
	default:
		requantizeUint8(m, blocks, &dst[0], ldd, &src[0], 4*lds, &init[0], &scale[0], lo, hi, q.Zero)
	}
	return done
}

// quantize returns how many elements are done.
func (q *Quantized) quantize(dst []uint8, src []float32, scale float32) int {
	n := vectorized(len(src))
	lo, hi := q.bounds()
	switch { // calls by name keep src on the stack
	case n == 0 || neon && !q.words():
		return 0
	case q.Signed:
		quantizeInt8(n/lanes, &dst[0], &src[0], scale, lo, hi, q.Zero)
	default:
		quantizeUint8(n/lanes, &dst[0], &src[0], scale, lo, hi, q.Zero)
	}
	return n
}

// dequantize returns how many elements are done.
func (q *Quantized) dequantize(dst []float32, src []uint8, scale float32) int {
	n := vectorized(len(dst))
	switch {
	case n == 0 || neon && !q.words():
		return 0
	case q.Signed:
		dequantizeInt8(n/lanes, &dst[0], &src[0], q.Zero, scale)
	default:
		dequantizeUint8(n/lanes, &dst[0], &src[0], q.Zero, scale)
	}
	return n
}

var binaryLoops = [...][2]func(n int, dst, a, b *uint8, q *binaryParams){
	BinaryAdd: {addUint8, addInt8}, BinarySub: {subUint8, subInt8}, BinaryMul: {mulUint8, mulInt8},
}

// apply returns how many elements are done.
func (f *Binary) apply(op BinaryOp, dst, a, b []uint8) int {
	n := vectorized(len(dst))
	if n == 0 || neon && !f.inWords() {
		return 0
	}
	lo, hi := f.Out.bounds()
	f.words = binaryParams{f.A.Zero, f.A.Scale, f.B.Zero, f.B.Scale, f.Min, f.Max, f.Scale, lo, hi, f.Out.Zero}
	loop := binaryLoops[op][bit(f.Out.Signed)]
	if !neon {
		loop(n/lanes, &dst[0], &a[0], &b[0], &f.words)
		return n
	}
	if n = len(dst) &^ (binaryBlock - 1); n > 0 {
		loop(n/binaryBlock, &dst[0], &a[0], &b[0], &f.words)
	}
	if rest := dst[n:]; len(rest) > 0 {
		copy(f.last[0][:], a[n:])
		copy(f.last[1][:], b[n:])
		loop(1, &f.last[0][0], &f.last[0][0], &f.last[1][0], &f.words)
		copy(rest, f.last[0][:])
	}
	return len(dst)
}

// inWords is [Quantized.words] of all operands.
func (f *Binary) inWords() bool {
	a, b := Quantized{Zero: f.A.Zero}, Quantized{Zero: f.B.Zero}
	return a.words() && b.words() && f.Out.words()
}

// windows computes rows of windows, block by block of DotCols channels: the sums of d or, where d is nil, the maxima.
func (q *Quantized) windows(d *Depthwise, dst []uint8, ldd int, a []uint8, step int, off []int, pixels, channels int) {
	c := 0
	for ; c+DotCols <= channels; c += DotCols {
		q.window(d, &dst[c], ldd, &a[c], step, off, pixels, c)
	}
	if last := channels - DotCols; d == nil && c < channels && last >= 0 { // maxima may be computed twice
		q.window(d, &dst[last], ldd, &a[last], step, off, pixels, last)
		return
	}
	for i := 0; c < channels && i < pixels; i += DotCols {
		var part [DotCols * DotCols]uint8 // a pixel's last channels each
		n := min(pixels-i, DotCols)
		q.window(d, &part[0], DotCols, &a[i*step+c], step, off, n, c)
		for k := range n {
			copy(dst[(i+k)*ldd+c:][:channels-c], part[k*DotCols:])
		}
	}
}

// window computes a block of channels from c on. Calls by name keep dst on the stack.
func (q *Quantized) window(d *Depthwise, dst *uint8, ldd int, a *uint8, step int, off []int, pixels, c int) {
	lo, hi := q.bounds()
	switch {
	case d == nil && q.Signed:
		maximumInt8(pixels, a, step, &off[0], len(off), dst, ldd)
	case d == nil:
		maximumUint8(pixels, a, step, &off[0], len(off), dst, ldd)
	case d.bits == 8 && q.Signed:
		depthwiseNarrowInt8(pixels, a, step, &off[0], d.pairs(), &d.blocks[c/DotCols*d.block()], dst, ldd, lo, hi, q.Zero)
	case d.bits == 8:
		depthwiseNarrowUint8(pixels, a, step, &off[0], d.pairs(), &d.blocks[c/DotCols*d.block()], dst, ldd, lo, hi, q.Zero)
	case q.Signed:
		depthwiseInt8(pixels, a, step, &off[0], d.pairs(), &d.blocks[c/DotCols*d.block()], dst, ldd, lo, hi, q.Zero)
	default:
		depthwiseUint8(pixels, a, step, &off[0], d.pairs(), &d.blocks[c/DotCols*d.block()], dst, ldd, lo, hi, q.Zero)
	}
}

// lookup returns how many elements are done. It takes permutations of bytes.
func lookup(dst, src []uint8, table *[256]uint8) int {
	block := 64
	if neon {
		block = 16
	}
	n := len(dst) / block
	switch {
	case n == 0:
	case neon:
		lookupLanes(n, &dst[0], &src[0], &table[0])
		return n * block
	case avx512 && cpu.X86.HasAVX512VBMI:
		lookup512(n, &dst[0], &src[0], &table[0])
		return n * block
	}
	return 0
}
