package simd

import "math"

// Quantized says what bytes stand for numbers: int8 if Signed, else uint8. A number is
// rounded half to even, Zero is added, and it is kept within Lo and Hi, which are bounds of
// the type; NaN becomes Lo.
type Quantized struct {
	Signed       bool
	Zero, Lo, Hi int32
}

// number is an element as it is.
func (q *Quantized) number(x uint8) int32 {
	if q.Signed {
		return int32(int8(x))
	}
	return int32(x)
}

// element rounds x.
func (q *Quantized) element(x float32) uint8 {
	if !(x > float32(q.Lo-q.Zero)) {
		return uint8(q.Lo)
	}
	if x >= float32(q.Hi-q.Zero) {
		return uint8(q.Hi)
	}
	const whole = 3 << 22 // numbers around it have no fraction
	return uint8(int32(float32(x+whole)-whole) + q.Zero)
}

// Requantize turns sums of products into elements, row by row:
//
//	dst[i*ldd+j] = q(float32(src[i*lds+j] + init[j]) · scale[j])    i < m, j < n
//
// Slices but dst hold whole blocks of DotCols columns. It panics where one is too short.
func (q *Quantized) Requantize(dst []uint8, ldd int, src []int32, lds int, init []int32, scale []float32, m, n int) {
	if m <= 0 || n <= 0 {
		return
	}
	whole := (n + DotCols - 1) &^ (DotCols - 1)
	_, _, _, _ = dst[(m-1)*ldd+n-1], src[(m-1)*lds+whole-1], init[whole-1], scale[whole-1]
	done := q.requantize(dst, ldd, src, lds, init, scale, m, n)
	if done == n {
		return
	}
	for i := range m {
		to, from := dst[i*ldd:][:n], src[i*lds:][:n]
		for j := done; j < n; j++ {
			to[j] = q.element(float32(float32(from[j]+init[j]) * scale[j]))
		}
	}
}

// Quantize sets dst[i] to q(src[i]·scale). It panics where dst is shorter than src.
func (q *Quantized) Quantize(dst []uint8, src []float32, scale float32) {
	dst = dst[:len(src):len(dst)]
	for i := q.quantize(dst, src, scale); i < len(src); i++ {
		dst[i] = q.element(float32(src[i] * scale))
	}
}

// QuantizeNumbers sets the first elements of dst to q(src[i]·scale) and returns their number: all of them, or those in
// front of a block with NaN or of the last, incomplete one; 0 if there is no vector loop. It panics where dst is shorter
// than src.
func (q *Quantized) QuantizeNumbers(dst []uint8, src []float32, scale float32) int {
	const block = 64 // words saturate before the zero point is added
	n := len(src) / block
	if dst = dst[:len(src):len(dst)]; n == 0 || !avx512 || !q.words() {
		return 0
	}
	_, hi := q.bounds()
	if q.Signed {
		return block * quantize512Int8(n, &dst[0], &src[0], scale, hi, q.Zero, q.Lo)
	}
	return block * quantize512Uint8(n, &dst[0], &src[0], scale, hi, q.Zero, q.Lo)
}

// Dequantize sets dst[i] to (src[i]-Zero)·scale. It panics where src is shorter than dst.
func (q *Quantized) Dequantize(dst []float32, src []uint8, scale float32) {
	src = src[:len(dst):len(src)]
	for i := q.dequantize(dst, src, scale); i < len(dst); i++ {
		dst[i] = float32(q.number(src[i])-q.Zero) * scale
	}
}

// ScaleSums turns sums of products into numbers, row by row:
//
//	dst[i*ldd+j] = min(max((float32(src[i*lds+j] - zeros[i]·sums[j]) · factors[i]) · scale[j] + bias[j], lo), hi)
//
// for i < len(zeros) and j < n. NaN stays. Slices but dst hold whole blocks of DotCols columns.
// It panics where one is too short.
func ScaleSums(dst []float32, ldd int, src []int32, lds int, sums []int32, scale, bias []float32,
	zeros []int32, factors []float32, n int, lo, hi float32) {
	m := len(zeros)
	if m == 0 || n <= 0 {
		return
	}
	whole := (n + DotCols - 1) &^ (DotCols - 1)
	sums, scale, bias, factors = sums[:whole:len(sums)], scale[:whole:len(scale)], bias[:whole:len(bias)], factors[:m:len(factors)]
	_, _ = dst[(m-1)*ldd+n-1], src[(m-1)*lds+whole-1]
	if vector {
		scaleSumsRows(m, n, &dst[0], 4*ldd, &src[0], 4*lds, &sums[0], &scale[0], &bias[0], &zeros[0], &factors[0], lo, hi, &masks[7-(n-1)%8])
		return
	}
	for i, zero := range zeros {
		row, from := dst[i*ldd:][:n], src[i*lds:][:n]
		for j := range row {
			x := float32(from[j]-zero*sums[j]) * factors[i]
			row[j] = within(float32(x*scale[j])+bias[j], lo, hi)
		}
	}
}

// ScaleFloats is [ScaleSums] of sums that are numbers:
//
//	dst[i*ldd+j] = min(max(((src[i*lds+j] - zeros[i]·sums[j]) · factors[i]) · scale[j] + bias[j], lo), hi)
func ScaleFloats(dst []float32, ldd int, src []float32, lds int, sums, scale, bias []float32,
	zeros []int32, factors []float32, n int, lo, hi float32) {
	m := len(zeros)
	if m == 0 || n <= 0 {
		return
	}
	whole := (n + DotCols - 1) &^ (DotCols - 1)
	sums, scale, bias, factors = sums[:whole:len(sums)], scale[:whole:len(scale)], bias[:whole:len(bias)], factors[:m:len(factors)]
	_, _ = dst[(m-1)*ldd+n-1], src[(m-1)*lds+whole-1]
	if vector {
		scaleFloatsRows(m, n, &dst[0], 4*ldd, &src[0], 4*lds, &sums[0], &scale[0], &bias[0], &zeros[0], &factors[0], lo, hi, &masks[7-(n-1)%8])
		return
	}
	for i, zero := range zeros {
		row, from := dst[i*ldd:][:n], src[i*lds:][:n]
		for j := range row {
			x := (from[j] - float32(float32(zero)*sums[j])) * factors[i]
			row[j] = within(float32(x*scale[j])+bias[j], lo, hi)
		}
	}
}

// within keeps x within bounds, and NaN.
func within(x, lo, hi float32) float32 {
	if x < lo {
		return lo
	}
	if x > hi {
		return hi
	}
	return x
}

// Binary is a function of two quantized operands: each becomes a number, the result is kept
// within Min and Max, divided by Scale and rounded.
type Binary struct {
	A, B     Operand
	Min, Max float32
	Scale    float32 // of the result
	Out      Quantized

	// for the loops
	words binaryParams
	last  [2][binaryBlock]uint8 // operands of a last, incomplete block
}

// binaryBlock is how many elements a loop of Binary for NEON computes at a time.
const binaryBlock = 16

// Operand is how elements of an operand stand for numbers.
type Operand struct {
	Zero  int32
	Scale float32
}

// BinaryOp is the function.
type BinaryOp int

// The functions.
const (
	BinaryAdd BinaryOp = iota
	BinarySub
	BinaryMul
)

// Apply sets dst[i] to the function of a[i] and b[i], which are of Out's type. dst may be a
// or b. It panics where they are shorter than dst.
func (f *Binary) Apply(op BinaryOp, dst, a, b []uint8) {
	a, b = a[:len(dst):len(a)], b[:len(dst):len(b)]
	for i := f.apply(op, dst, a, b); i < len(dst); i++ {
		x := float32(float32(f.Out.number(a[i])-f.A.Zero) * f.A.Scale) // rounded before they are added
		y := float32(float32(f.Out.number(b[i])-f.B.Zero) * f.B.Scale)
		switch op {
		case BinaryAdd:
			x += y
		case BinarySub:
			x -= y
		case BinaryMul:
			x *= y
		}
		dst[i] = f.Out.element(within(x, f.Min, f.Max) / f.Scale)
	}
}

// binaryParams is what the loops of Binary take, word by word.
type binaryParams struct {
	zeroA    int32
	scaleA   float32
	zeroB    int32
	scaleB   float32
	min, max float32
	scale    float32
	lo, hi   float32
	zero     int32
}

// Depthwise is the weights of a convolution of 8-bit elements whose channels stay by
// themselves. Goroutines may use it at once.
type Depthwise struct {
	Channels, Taps int

	// blocks are DotCols channels each: what the sums start with, the weights of pairs of
	// taps, see position, and scales, in the order that depthwiseOrder has.
	blocks []int32
	bits   int // of a weight
}

// depthwiseOrder is the channels of a block in the order of their sums.
func depthwiseOrder() *[DotCols]int {
	if neon {
		return &inOrder
	}
	return &unpackedOrder
}

// unpackedOrder is that in which AVX2 unpacks bytes.
var (
	unpackedOrder = [DotCols]int{0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15}
	inOrder       = [DotCols]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
)

// position is where the weight of a tap for the i-th sum of a block lies: a word of the block, and bits of it. AVX2 multiplies the
// two weights of a word at once, NEON those of a tap.
func (d *Depthwise) position(tap, i int) (word, shift int) {
	if neon {
		i += tap % 2 * DotCols
		return DotCols + (tap/2*2*DotCols+i)*d.bits/32, i * d.bits % 32
	}
	return DotCols*(1+tap/2) + i, tap % 2 * 16
}

// weight is the weight there.
func (d *Depthwise) weight(block []int32, tap, i int) int32 {
	word, shift := d.position(tap, i)
	return block[word] >> shift << (32 - d.bits) >> (32 - d.bits)
}

// weightBits is the bits of a weight: 8 where that pays and they fit, without -128, so that the sum of two products fits in 16.
func weightBits(channels, taps int, weight func(tap, channel int) int16) int {
	if !neon {
		return 16
	}
	for t := range taps {
		for c := range channels {
			if w := weight(t, c); w < -127 || w > 127 {
				return 16
			}
		}
	}
	return 8
}

// PackDepthwise makes weights: weight is that of a tap and channel, -255 to 255, init what a
// channel's sum starts with and scale what it is multiplied by.
func PackDepthwise(channels, taps int, weight func(tap, channel int) int16, init []int32, scale []float32) *Depthwise {
	d := &Depthwise{Channels: channels, Taps: taps, bits: weightBits(channels, taps, weight)}
	d.blocks = make([]int32, (channels+DotCols-1)/DotCols*d.block())
	for c := 0; c < channels; c += DotCols {
		block := d.blocks[c/DotCols*d.block():][:d.block()]
		for i, at := range depthwiseOrder() {
			if c+at >= channels {
				continue
			}
			block[i] = init[c+at]
			for t := range taps {
				word, shift := d.position(t, i)
				block[word] |= int32(uint32(weight(t, c+at)) & (1<<d.bits - 1) << shift)
			}
			block[d.block()-DotCols+i] = int32(math.Float32bits(scale[c+at]))
		}
	}
	return d
}

// pairs is how many pairs of taps there are.
func (d *Depthwise) pairs() int { return (d.Taps + 1) / 2 }

// block is the words of a block.
func (d *Depthwise) block() int { return DotCols*d.pairs()*d.bits/16 + 2*DotCols }

// Bytes is the memory that the weights take.
func (d *Depthwise) Bytes() int { return 4 * len(d.blocks) }

// Row computes the result of pixels that are step elements of a apart:
//
//	dst[i*ldd+c] = q(float32(init[c] + Σ_t a[at+i*step+off[t]+c] · w[t,c]) · scale[c])    i < pixels, c < Channels
//
// off has an even number of elements: the last one counts for nothing where Taps is odd.
// It reads whole blocks of DotCols channels, and panics where a ends before them or dst is
// too short.
func (d *Depthwise) Row(q *Quantized, dst []uint8, ldd int, a []uint8, at, step int, off []int, pixels int) {
	if pixels <= 0 {
		return
	}
	off = off[: 2*d.pairs() : len(off)]
	most := 0
	for _, o := range off {
		most = max(most, o)
	}
	_ = dst[(pixels-1)*ldd+d.Channels-1]
	_ = a[:at+(pixels-1)*step+most+len(d.blocks)/d.block()*DotCols]
	if vector {
		q.windows(d, dst, ldd, a[at:], step, off, pixels, d.Channels)
		return
	}
	for c := 0; c < d.Channels; c += DotCols {
		for i := range pixels {
			d.pixel(q, dst[i*ldd:][:d.Channels], a[at+i*step:], off, c)
		}
	}
}

// pixel computes the channels from one on of a pixel, a block of them at most.
func (d *Depthwise) pixel(q *Quantized, dst, a []uint8, off []int, from int) {
	block := d.blocks[from/DotCols*d.block():][:d.block()]
	for i, c := range depthwiseOrder() {
		if from+c >= d.Channels {
			continue
		}
		sum := block[i]
		for t := range d.Taps {
			sum += q.number(a[off[t]+from+c]) * d.weight(block, t, i)
		}
		dst[from+c] = q.element(float32(float32(sum) * math.Float32frombits(uint32(block[d.block()-DotCols+i]))))
	}
}

// MaximumRow takes the largest of every channel of windows that are step elements of a
// apart:
//
//	dst[i*ldd+c] = max over t of a[at+i*step+off[t]+c]    i < pixels, c < channels
//
// It reads whole blocks of DotCols channels, and panics where a ends before them, dst is too
// short or off is empty.
func MaximumRow(signed bool, dst []uint8, ldd int, a []uint8, at, step int, off []int, pixels, channels int) {
	if pixels <= 0 {
		return
	}
	most := off[0]
	for _, o := range off {
		most = max(most, o)
	}
	_ = dst[(pixels-1)*ldd+channels-1]
	_ = a[:at+(pixels-1)*step+most+(channels+DotCols-1)&^(DotCols-1)]
	q := Quantized{Signed: signed}
	if vector {
		q.windows(nil, dst, ldd, a[at:], step, off, pixels, channels)
		return
	}
	for i := range pixels {
		for c := range channels {
			best := a[at+i*step+off[0]+c]
			for _, o := range off[1:] {
				if v := a[at+i*step+o+c]; q.number(v) > q.number(best) {
					best = v
				}
			}
			dst[i*ldd+c] = best
		}
	}
}

// Lookup sets dst[i] to table[src[i]]. dst may be src. It panics where src is shorter than
// dst.
func Lookup(dst, src []uint8, table *[256]uint8) {
	src = src[:len(dst):len(src)]
	for i := lookup(dst, src, table); i < len(dst); i++ {
		dst[i] = table[src[i]]
	}
}
