package conv

import "github.com/etrun-go/etrun/kernels/simd"

// columns writes a block of the matrix that turns a convolution into a product:
// rows [k0, k1) are taps of input channels (channel-major, then depth, height and
// width of the kernel), columns [p0, p1) are output points. Rows of dst are ld
// apart. x holds the channels that row 0 starts from.
func columns[T any](s *shape, dst []T, ld int, x []T, k0, k1, p0, p1 int) {
	taps, points := volume(s.kernel), volume(s.in)
	for k := k0; k < k1; k++ {
		t := tap(s, k%taps)
		columnRow(s, dst[(k-k0)*ld:][:p1-p0], x[k/taps*points:][:points], t, p0)
	}
}

// tap is where a tap of the kernel reads, relative to stride times the output point.
func tap(s *shape, t int) (at [3]int) {
	for i := 2; i >= 0; i-- {
		at[i] = t%s.kernel[i]*s.dilate[i] - s.pad[i]
		t /= s.kernel[i]
	}
	return at
}

// columnRow is what one tap at offset t reads for the output points from p on.
func columnRow[T any](s *shape, dst, plane []T, t [3]int, p int) {
	w, h := p%s.out[2], p/s.out[2]
	d := h / s.out[1]
	h %= s.out[1]
	lo, hi := inside(s.out[2], s.in[2], t[2], s.stride[2])
	for len(dst) > 0 {
		n := min(s.out[2]-w, len(dst))
		z, y := d*s.stride[0]+t[0], h*s.stride[1]+t[1]
		if z < 0 || z >= s.in[0] || y < 0 || y >= s.in[1] {
			clear(dst[:n])
		} else {
			row := plane[(z*s.in[1]+y)*s.in[2]:][:s.in[2]]
			segment(dst[:n], row, w*s.stride[2]+t[2], s.stride[2], min(max(lo-w, 0), n), min(max(hi-w, 0), n))
		}
		dst, w = dst[n:], 0
		if h++; h == s.out[1] {
			h, d = 0, d+1
		}
	}
}

// segment is dst[i] = row[x+i·step] for i in [lo, hi), and 0 for other i.
func segment[T any](dst, row []T, x, step, lo, hi int) {
	var zero T
	for i := range dst[:lo] {
		dst[i] = zero
	}
	for i := hi; i < len(dst); i++ {
		dst[i] = zero
	}
	if lo >= hi {
		return
	}
	src := row[x+lo*step:]
	dst = dst[lo:hi]
	switch step {
	case 1:
		copy(dst, src)
	case 2:
		simd.Stride2(dst, src)
	default:
		for i := range dst {
			dst[i] = src[i*step]
		}
	}
}

// inside is the range of i < n with 0 ≤ x+i·step < size.
func inside(n, size, x, step int) (lo, hi int) {
	if x < 0 {
		lo = min((-x+step-1)/step, n)
	}
	hi = n
	if last := size - 1 - x; last < 0 {
		hi = lo
	} else {
		hi = max(min(last/step+1, n), lo)
	}
	return lo, hi
}
