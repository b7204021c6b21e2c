package npu

import "encoding/binary"

// read fills dst with the pixels x0 to x1 of row y of a map, channels innermost, less
// the zero point.
func (r *Run) read(f *fmap, dst []int32, y, x0, x1 int) {
	switch f.storage {
	case inMemory:
		f.read(dst, r.mem[f.region], y, x0, x1)
	case inChain:
		for i, v := range r.chains[f.region][(y*f.w+x0)*f.d:][:len(dst)] {
			dst[i] = v - f.zero
		}
	default:
		for i := range dst {
			dst[i] = f.scalar - f.zero
		}
	}
}

// read reads a map in memory. mem is the map's region, of which span is accessed.
func (f *fmap) read(dst []int32, mem []byte, y, x0, x1 int) {
	left, right := f.row(y)
	if x0 < f.width0 {
		n := min(x1, f.width0) - x0
		f.readTile(dst[:n*f.d], mem, left+int64(x0)*f.strideX, n)
		dst, x0 = dst[n*f.d:], x0+n
	}
	if x0 < x1 {
		f.readTile(dst, mem, right+int64(x0-f.width0)*f.strideX, x1-x0)
	}
}

// readTile reads n pixels of one tile, the first one at address at.
func (f *fmap) readTile(dst []int32, mem []byte, at int64, n int) {
	if f.bricks {
		f.readBricks(dst, mem, at, n)
		return
	}
	if f.strideX == int64(f.d*f.size) {
		f.toInt32(dst[:n*f.d], mem[at:])
		return
	}
	for x := range n {
		f.toInt32(dst[x*f.d:(x+1)*f.d], mem[at+int64(x)*f.strideX:])
	}
}

func (f *fmap) readBricks(dst []int32, mem []byte, at int64, n int) {
	for c := 0; c < f.d; c += brick {
		depth, from := min(brick, f.d-c), at+int64(c/brick)*f.strideC
		for x := range n {
			d := dst[x*f.d+c:]
			f.toInt32(d[:depth], mem[from:])
			from += f.strideX
		}
	}
}

// toInt32 converts adjacent elements.
func (f *fmap) toInt32(dst []int32, src []byte) {
	zero := f.zero
	switch {
	case f.size == 1 && f.signed:
		src = src[:len(dst)]
		for i, v := range src {
			dst[i] = int32(int8(v)) - zero
		}
	case f.size == 1:
		src = src[:len(dst)]
		for i, v := range src {
			dst[i] = int32(v) - zero
		}
	case f.size == 2 && f.signed:
		for i := range dst {
			dst[i] = int32(int16(binary.LittleEndian.Uint16(src[2*i:]))) - zero
		}
	case f.size == 2:
		for i := range dst {
			dst[i] = int32(binary.LittleEndian.Uint16(src[2*i:])) - zero
		}
	default:
		for i := range dst {
			dst[i] = int32(binary.LittleEndian.Uint32(src[4*i:])) - zero
		}
	}
}

// addWide adds the pixels x0 to x1 of row y to acc: a map of 32 or 64 bits that
// accumulators start from.
func (f *fmap) addWide(acc []int64, mem []byte, y, x0, x1 int) {
	left, right := f.row(y)
	for x := x0; x < x1; x++ {
		at := left
		isRight, offset := f.column(x)
		if isRight {
			at = right
		}
		at += offset
		for c := range f.d {
			b := mem[at+f.channel(c):]
			v := int64(int32(binary.LittleEndian.Uint32(b)))
			if f.size == 8 {
				v = int64(binary.LittleEndian.Uint64(b))
			}
			acc[(x-x0)*f.d+c] += v - int64(f.zero)
		}
	}
}
