package npu

import (
	"github.com/etrun-go/etrun/hal/ethosu/npu/weights"
	"github.com/etrun-go/etrun/internal/pack"
)

// packedWeights are decoded weights in the layout of the inner loops.
type packedWeights struct {
	encoded []byte  // the encoded streams, concatenated
	k       int     // products per output
	o       int     // output channels
	pairs   []int64 // [pair][k]: two channels in one number, see below; nil if they do not fit
	wide    []int32 // [channel][k], where pairs do not fit
	taps    []int32 // depthwise: [k][channel]
}

// pairRows is the number of pairs, an even one: the loops take two at a time.
func pairRows(channels int) int { return (channels + 3) / 4 * 2 }

// pairBlock is the number of pairs that are applied to all pixels of a tile together.
const pairBlock = 8

// packInto fills w.pairs from weights of [channel][k] if every sum of products with inputs of at
// most limit in magnitude stays within 32 bits, and w.wide otherwise.
//
// Two weights a and b are stored as a + b·2^32. The sum over k of x·(a + b·2^32) is A + B·2^32,
// from which both sums can be extracted if A fits 32 bits: one multiplication for two products.
func packInto[T int16 | int32](w *packedWeights, v []T, channels, k int, limit int64) {
	w.o, w.k = channels, k
	for o := range channels {
		if magnitude(v[o*k:(o+1)*k])*limit >= 1<<31 {
			w.pairs, w.wide = w.pairs[:0], pack.Grow(w.wide, len(v))
			for i, x := range v {
				w.wide[i] = int32(x)
			}
			return
		}
	}
	w.pairs = pack.Grow(w.pairs, pairRows(channels)*k)
	clear(w.pairs)
	for o := range channels {
		row := w.pairs[o/2*k:][:k]
		for i, x := range v[o*k : (o+1)*k] {
			row[i] += int64(x) << (32 * (o & 1))
		}
	}
}

// magnitude is the sum of magnitudes, at most 2^31.
func magnitude[T int16 | int32](v []T) int64 {
	sum := int64(0)
	for _, x := range v {
		sum += abs64(int64(x))
	}
	return min(sum, 1<<31)
}

// multiply computes all channels of n pixels: acc[pixel][channel] is the sum of the
// products of a patch and the channel's weights.
func (w *packedWeights) multiply(acc []int64, patches []int32, n int) {
	if len(w.pairs) == 0 {
		w.multiplyWide(acc, patches, n)
		return
	}
	k, rows := w.k, pairRows(w.o)
	for block := 0; block < rows; block += pairBlock {
		end := min(block+pairBlock, rows)
		p := 0
		for ; p+1 < n; p += 2 {
			x0, x1 := patches[p*k:(p+1)*k], patches[(p+1)*k:(p+2)*k]
			for q := block; q < end; q += 2 {
				a0, b0, a1, b1 := dot2x2(x0, x1, w.pairs[q*k:(q+1)*k], w.pairs[(q+1)*k:(q+2)*k])
				unpack(acc[p*w.o:(p+1)*w.o], 2*q, a0, b0)
				unpack(acc[(p+1)*w.o:(p+2)*w.o], 2*q, a1, b1)
			}
		}
		if p < n {
			x := patches[p*k : (p+1)*k]
			for q := block; q < end; q += 2 {
				a, b := dot1x2(x, w.pairs[q*k:(q+1)*k], w.pairs[(q+1)*k:(q+2)*k])
				unpack(acc[p*w.o:(p+1)*w.o], 2*q, a, b)
			}
		}
	}
}

// unpack stores the sums of two pairs as channels o to o+3, as far as they exist.
func unpack(acc []int64, o int, a, b int64) {
	lowA, lowB := int64(int32(a)), int64(int32(b))
	v := [4]int64{lowA, (a - lowA) >> 32, lowB, (b - lowB) >> 32}
	if o+4 <= len(acc) {
		acc = acc[o : o+4]
		acc[0], acc[1], acc[2], acc[3] = v[0], v[1], v[2], v[3]
		return
	}
	copy(acc[o:], v[:])
}

// dot2x2 multiplies two patches with two pairs of channels.
func dot2x2(x0, x1 []int32, wa, wb []int64) (a0, b0, a1, b1 int64) {
	x1, wa, wb = x1[:len(x0)], wa[:len(x0)], wb[:len(x0)]
	for i := range x0 {
		u, v, a, b := int64(x0[i]), int64(x1[i]), wa[i], wb[i]
		a0 += u * a
		b0 += u * b
		a1 += v * a
		b1 += v * b
	}
	return
}

// dot1x2 multiplies one patch with two pairs of channels.
func dot1x2(x []int32, wa, wb []int64) (a0, b0 int64) {
	wa, wb = wa[:len(x)], wb[:len(x)]
	for i := range x {
		u := int64(x[i])
		a0 += u * wa[i]
		b0 += u * wb[i]
	}
	return
}

func (w *packedWeights) multiplyWide(acc []int64, patches []int32, n int) {
	k := w.k
	for o := range w.o {
		row := w.wide[o*k : (o+1)*k]
		for p := range n {
			x, sum := patches[p*k:][:len(row)], int64(0)
			for i, v := range row {
				sum += int64(v) * int64(x[i])
			}
			acc[p*w.o+o] = sum
		}
	}
}

// transpose lays out depthwise weights: [ky][kx][channel].
func (w *packedWeights) transpose(g *weights.Grid) {
	k := g.KH * g.KW
	w.o, w.k, w.taps = g.O, k, make([]int32, len(g.Values))
	for o := range g.O {
		for i := range k {
			w.taps[i*g.O+o] = int32(g.Values[o*k+i])
		}
	}
}
