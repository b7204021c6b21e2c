//go:build !purego

package simd

// sumRows8 sums rows, a multiple of four, of n whole blocks of eight and what the mask
// leaves on, stride bytes apart.
//
//go:noescape
func sumRows8(rows, n int, dst, x *float32, stride int, mask *int32)

func sumRows(dst, x []float32, n int) {
	fours := len(dst) &^ 3
	if !vector || fours == 0 {
		sumRowsGo(dst, x, n)
		return
	}
	sumRows8(fours, n/8, &dst[0], &x[0], 4*n, &masks[8-n%8])
	sumRowsGo(dst[fours:], x[fours*n:], n)
}
