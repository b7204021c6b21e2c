package picture

// transform stores the samples of a block. It is libjpeg's default inverse cosine transform, in integers: columns, whose results
// have two bits more, then rows.
func (c *jpegComponent) transform(b *[64]int16, bx, by int) {
	const more = 2
	var work [64]int32
	q := c.table
	for i := range 8 {
		x0 := int32(b[i]) * q[i]
		if b[8+i]|b[16+i]|b[24+i]|b[32+i]|b[40+i]|b[48+i]|b[56+i] == 0 {
			for row := range 8 {
				work[8*row+i] = x0 << more
			}
			continue
		}
		v := cosines(x0<<fixedBits+1<<(fixedBits-more-1), int32(b[8+i])*q[8+i], int32(b[16+i])*q[16+i], int32(b[24+i])*q[24+i],
			int32(b[32+i])*q[32+i], int32(b[40+i])*q[40+i], int32(b[48+i])*q[48+i], int32(b[56+i])*q[56+i])
		for row := range 8 {
			work[8*row+i] = v[row] >> (fixedBits - more)
		}
	}
	const shift = fixedBits + more + 3
	for row := range 8 {
		x := (*[8]int32)(work[8*row:])
		v := cosines(x[0]<<fixedBits+128<<shift+1<<(shift-1), x[1], x[2], x[3], x[4], x[5], x[6], x[7])
		out := (*[8]byte)(c.plane.pix[(8*by+row)*c.plane.stride+8*bx:])
		for i := range 8 {
			out[i] = clamp(v[i] >> shift)
		}
	}
}

// fixedBits is the precision of factors.
const fixedBits = 13

// cosines transforms eight coefficients. The first has fixedBits of fraction, like the results.
func cosines(x0, x1, x2, x3, x4, x5, x6, x7 int32) [8]int32 {
	even := (x2 + x6) * 4433
	t2, t3 := even-x6*15137, even+x2*6270
	x4 <<= fixedBits
	a0, a3 := x0+x4+t3, x0+x4-t3
	a1, a2 := x0-x4+t2, x0-x4-t2

	odd := (x7 + x3 + x5 + x1) * 9633
	z3, z4 := odd-(x7+x3)*16069, odd-(x5+x1)*3196
	z1, z2 := (x7+x1)*-7373, (x5+x3)*-20995
	b0, b1 := x7*2446+z1+z3, x5*16819+z2+z4
	b2, b3 := x3*25172+z2+z3, x1*12299+z1+z4
	return [8]int32{a0 + b3, a1 + b2, a2 + b1, a3 + b0, a3 - b0, a2 - b1, a1 - b2, a0 - b3}
}

// clamp limits a level to those of a byte.
func clamp(v int32) byte { return byte(min(max(v, 0), 255)) }
