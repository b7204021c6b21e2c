package simd

// Winograd's convolution F(2×2, 3×3) computes a block of 2×2 pixels from one of 4×4, with 16 products for each pair of channels
// in place of 36:
//
//	Y = Aᵀ [ (Bᵀ X B) · (G W Gᵀ) ] A
//
// The product in brackets is element by element, and is summed over the input channels: 16 matrix products, whose rows are blocks.
//
//	Bᵀ = 1  0 -1  0    G =  1    0    0    Aᵀ = 1  1  1  0
//	     0  1  1  0        1/2  1/2  1/2        0  1 -1 -1
//	     0 -1  1  0        1/2 -1/2  1/2
//	     0  1  0 -1         0    0    1

// WinogradLanes is a divisor of the number of channels that [WinogradInput] and [WinogradOutput] transform.
const WinogradLanes = 16

// WinogradInput transforms c channels of 4×4 pixels, a multiple of [WinogradLanes], at least one. Pixels of x are pixel elements
// apart, and row in the next row. Element 4·i+j of the result starts at v[(4·i+j)·each]. It panics if a slice is too short.
func WinogradInput(c int, x []float32, row, pixel int, v []float32, each int) {
	_, _ = x[3*row+3*pixel+c-1], v[15*each+c-1]
	switch {
	case avx512:
		winogradInput16(c/16, &x[0], 4*row, 4*pixel, &v[0], 4*each)
	case avx2():
		winogradInput8(c/8, &x[0], 4*row, 4*pixel, &v[0], 4*each)
	case neon:
		winogradInput4(c/4, &x[0], 4*row, 4*pixel, &v[0], 4*each)
	default:
		winogradInputGo(c, x, row, pixel, v, each)
	}
}

func winogradInputGo(c int, x []float32, row, pixel int, v []float32, each int) {
	for p := range c {
		var t [4][4]float32
		for j := range 4 {
			at := x[j*pixel+p:]
			t[0][j], t[1][j], t[2][j], t[3][j] = at[0]-at[2*row], at[row]+at[2*row], at[2*row]-at[row], at[row]-at[3*row]
		}
		for i, t := range t {
			to := v[4*i*each+p:]
			to[0], to[each], to[2*each], to[3*each] = t[0]-t[2], t[1]+t[2], t[2]-t[1], t[1]-t[3]
		}
	}
}

// WinogradOutput transforms the sums of c channels, a multiple of [WinogradLanes], at least one, to 2×2 pixels, and clamps them to
// [lo, hi]; NaN is preserved. Element 4·i+j of the sums starts at m[(4·i+j)·each], pixels of y are pixel elements apart, and row
// in the next row. It reports whether all pixels are finite before they are clamped. It panics if a slice is too short.
func WinogradOutput(c int, m []float32, each int, y []float32, row, pixel int, lo, hi float32) (finite bool) {
	var faults [WinogradLanes]float32
	_, _ = m[15*each+c-1], y[row+pixel+c-1]
	switch {
	case avx512:
		winogradOutput16(c/16, &m[0], 4*each, &y[0], 4*row, 4*pixel, lo, hi, &faults[0])
	case avx2():
		winogradOutput8(c/8, &m[0], 4*each, &y[0], 4*row, 4*pixel, lo, hi, &faults[0])
	case neon:
		winogradOutput4(c/4, &m[0], 4*each, &y[0], 4*row, 4*pixel, lo, hi, &faults[0])
	default:
		winogradOutputGo(c, m, each, y, row, pixel, lo, hi, &faults[0])
	}
	for _, fault := range faults {
		if fault != 0 {
			return false
		}
	}
	return true
}

func winogradOutputGo(c int, m []float32, each int, y []float32, row, pixel int, lo, hi float32, faults *float32) {
	for p := range c {
		var s [2][4]float32
		for j := range 4 {
			at := m[j*each+p:]
			s[0][j], s[1][j] = at[4*each]+at[8*each]+at[0], at[4*each]-at[8*each]-at[12*each]
		}
		for i, s := range s {
			a, b := s[0]+s[1]+s[2], s[1]-s[2]-s[3]
			*faults += 0*a + 0*b
			y[i*row+p], y[i*row+pixel+p] = min(max(a, lo), hi), min(max(b, lo), hi)
		}
	}
}

// WinogradFilter transforms a filter of 3×3 taps of c elements each, one behind the other. Element 4·i+j of the result starts at
// u[(4·i+j)·each]. It panics if a slice is too short.
func WinogradFilter(c int, w, u []float32, each int) {
	for p := range c {
		var t [4][3]float32
		for j := range 3 {
			t[0][j], t[1][j], t[2][j], t[3][j] = winogradTaps(w[j*c+p], w[(3+j)*c+p], w[(6+j)*c+p])
		}
		for i, t := range t {
			to := u[4*i*each+p:]
			to[0], to[each], to[2*each], to[3*each] = winogradTaps(t[0], t[1], t[2])
		}
	}
}

// winogradTaps is G times a column.
func winogradTaps(a, b, c float32) (float32, float32, float32, float32) {
	outer := (a + c) / 2
	return a, outer + b/2, outer - b/2, c
}
