package picture

// plane has the samples of one component of a JPEG file: h rows of w, stride bytes apart, each for across×down pixels. It
// enlarges them like libjpeg: by 2, a sample counts three times and its nearest neighbor once; by more, samples are repeated.
type plane struct {
	pix          []byte
	stride       int
	w, h         int
	across, down int

	sums []uint16 // of two rows
	out  []byte   // a row of pixels
}

// prepare allocates what pixels needs.
func (p *plane) prepare() {
	if p.smooth() && p.down == 2 {
		p.sums = make([]uint16, p.w)
	}
	if p.across > 1 || p.down > 1 {
		p.out = make([]byte, p.w*p.across)
	}
}

// smooth reports whether neighbors count: libjpeg repeats the samples of very narrow pictures, too.
func (p *plane) smooth() bool {
	return p.down <= 2 && (p.across == 2 && p.w > 2 || p.across == 1)
}

// pixels returns the row y of pixels, w·across or more bytes. They are valid until the next call.
func (p *plane) pixels(y int) []byte {
	row := p.samples(y / p.down)
	switch {
	case p.across == 1 && p.down == 1:
		return row
	case !p.smooth():
		repeat(p.out, row, p.across)
	case p.down == 1:
		widen(p.out, row)
	default:
		nearest := p.samples(min(max(y/2-1+y%2*2, 0), p.h-1))
		for i, v := range row {
			p.sums[i] = 3*uint16(v) + uint16(nearest[i])
		}
		if p.across == 2 {
			widenSums(p.out, p.sums)
		} else {
			quarter(p.out, p.sums, uint16(1+y%2))
		}
	}
	return p.out
}

func (p *plane) samples(y int) []byte { return p.pix[y*p.stride:][:p.w] }

func repeat(out, row []byte, n int) {
	for i, v := range row {
		for j := range n {
			out[i*n+j] = v
		}
	}
}

// widen doubles the width. Halves are rounded down to the left of a sample, up to its right.
func widen(out, row []byte) {
	last := len(row) - 1
	out[0], out[2*last+1] = row[0], row[last]
	for i := range last {
		a, b := uint16(row[i]), uint16(row[i+1])
		out[2*i+1], out[2*i+2] = byte((3*a+b+2)>>2), byte((a+3*b+1)>>2)
	}
}

// widenSums does it for sums of four samples.
func widenSums(out []byte, sums []uint16) {
	last := len(sums) - 1
	out[0], out[2*last+1] = byte((4*sums[0]+8)>>4), byte((4*sums[last]+7)>>4)
	for i := range last {
		a, b := sums[i], sums[i+1]
		out[2*i+1], out[2*i+2] = byte((3*a+b+7)>>4), byte((a+3*b+8)>>4)
	}
}

// quarter divides sums of four samples.
func quarter(out []byte, sums []uint16, bias uint16) {
	for i, v := range sums {
		out[i] = byte((v + bias) >> 2)
	}
}
