package npu

import "encoding/binary"

// store writes the finished pixels x0 to x1 of row y to the OFM.
func (o *output) store(mem []byte, acc []int64, y, x0, x1 int) {
	f := &o.ofm
	if o.axes != transposes[0] || o.reverse != 0 {
		o.storeMoved(mem, acc, y, x0, x1)
		return
	}
	left, right := f.row(y)
	if x0 < f.width0 {
		n := min(x1, f.width0) - x0
		f.storeTile(mem, acc[:n*f.d], left+int64(x0)*f.strideX, n)
		acc, x0 = acc[n*f.d:], x0+n
	}
	if x0 < x1 {
		f.storeTile(mem, acc, right+int64(x0-f.width0)*f.strideX, x1-x0)
	}
}

// storeTile writes n pixels of one tile, the first one at address at.
func (f *fmap) storeTile(mem []byte, acc []int64, at int64, n int) {
	if f.bricks {
		for c := 0; c < f.d; c += brick {
			depth, to := min(brick, f.d-c), at+int64(c/brick)*f.strideC
			for x := range n {
				a := acc[x*f.d+c:]
				f.narrow(mem[to:], a[:depth])
				to += f.strideX
			}
		}
		return
	}
	if f.strideX == int64(f.d*f.size) {
		f.narrow(mem[at:], acc[:n*f.d])
		return
	}
	for x := range n {
		f.narrow(mem[at+int64(x)*f.strideX:], acc[x*f.d:(x+1)*f.d])
	}
}

// narrow writes adjacent values.
func (f *fmap) narrow(dst []byte, values []int64) {
	switch f.size {
	case 1:
		dst = dst[:len(values)]
		for i, v := range values {
			dst[i] = byte(v)
		}
	case 2:
		for i, v := range values {
			binary.LittleEndian.PutUint16(dst[2*i:], uint16(v))
		}
	case 4:
		for i, v := range values {
			binary.LittleEndian.PutUint32(dst[4*i:], uint32(v))
		}
	default:
		for i, v := range values {
			binary.LittleEndian.PutUint64(dst[8*i:], uint64(v))
		}
	}
}

// storeMoved writes pixels with transposed or reversed axes.
func (o *output) storeMoved(mem []byte, acc []int64, y, x0, x1 int) {
	i := 0
	for x := x0; x < x1; x++ {
		for c := range o.d {
			o.ofm.narrow(mem[o.address(y, x, c):], acc[i:i+1])
			i++
		}
	}
}

// address returns the address of the element that was at (y, x, c) before transposition or
// reversal.
func (o *output) address(y, x, c int) int64 {
	at := [3]int{y, x, c}
	if o.reverse != 0 {
		i := o.reverse - 1
		at[i] = [3]int{o.h, o.w, o.d}[i] - 1 - at[i]
	}
	return o.ofm.pixel(at[o.axes[0]], at[o.axes[1]]) + o.ofm.channel(at[o.axes[2]])
}

// pixel returns the address of channel 0 of a pixel.
func (f *fmap) pixel(y, x int) int64 {
	left, right := f.row(y)
	if isRight, offset := f.column(x); isRight {
		return right + offset
	} else {
		return left + offset
	}
}
