package simd

// Ordered is an element type that windows are pooled in.
type Ordered interface{ float32 | float64 | int64 }

// SumTaps adds up shifted rows, such as those that windows of a pooling read:
//
//	y[i*ys+j] = Σ_t x[off[t]+i*xs+j]    i < rows, j < n, t < len(off)
//
// There is at least one tap. It panics where y or x ends before an element that the last
// row wants.
func SumTaps[T Ordered](y, x []T, off []int, rows, n, ys, xs int) {
	if rows <= 0 || n <= 0 {
		return
	}
	checkReads(y, x, off, rows, n, ys, xs)
	if d, ok := any(y).([]float32); ok {
		sumTaps(d, any(x).([]float32), off, rows, n, ys, xs)
		return
	}
	sumTapsGo(y, x, off, rows, n, ys, xs)
}

// checkReads panics where y or x ends before an element of the last row.
func checkReads[T Ordered](y, x []T, off []int, rows, n, ys, xs int) {
	_ = y[(rows-1)*ys+n-1]
	for _, o := range off {
		_ = x[o:][(rows-1)*xs+n-1]
	}
}

// MaxTaps finds the largest element under shifted rows, NaN where there is one:
//
//	y[i*ys+j] = max_t x[off[t]+i*xs+j]    i < rows, j < n, t < len(off)
//
// There is at least one tap. It panics where y or x ends before an element that the last
// row wants.
func MaxTaps[T Ordered](y, x []T, off []int, rows, n, ys, xs int) {
	if rows <= 0 || n <= 0 {
		return
	}
	checkReads(y, x, off, rows, n, ys, xs)
	if d, ok := any(y).([]float32); ok {
		maxTaps(d, any(x).([]float32), off, rows, n, ys, xs)
		return
	}
	maxTapsGo(y, x, off, rows, n, ys, xs)
}

// ExtremeTaps finds the largest element under shifted rows, or the least, NaN where
// there is one, and which tap brought it: the first of equal ones, the last of several
// NaN.
//
//	y[i*ys+j]  = max_t x[off[t]+i*xs+j]    i < rows, j < n, t < len(off)
//	at[i*ys+j] = tag[t]
//
// There is at least one tap. It panics where a slice ends before an element that the last
// row wants.
func ExtremeTaps[T Ordered](y []T, at []int32, x []T, off []int, tag []int32, rows, n, ys, xs int, least bool) {
	if rows <= 0 || n <= 0 {
		return
	}
	_, _ = at[(rows-1)*ys+n-1], tag[len(off)-1]
	checkReads(y, x, off, rows, n, ys, xs)
	if d, ok := any(y).([]float32); ok {
		extremeTaps(d, at, any(x).([]float32), off, tag, rows, n, ys, xs, least)
		return
	}
	extremeTapsGo(y, at, x, off, tag, rows, n, ys, xs, least)
}

// Stride2Rows takes every second element of rows:
//
//	dst[i*ds+j] = src[i*ss+2*j]    i < rows, j < n
//
// It panics where a slice ends before an element of the last row.
func Stride2Rows[T any](dst, src []T, rows, n, ds, ss int) {
	if rows <= 0 || n <= 0 {
		return
	}
	_, _ = dst[(rows-1)*ds+n-1], src[(rows-1)*ss+2*n-2]
	if d, ok := any(dst).([]float32); ok && (avx512 || neon && n > lanes) {
		stride2Rows(rows, n, &d[0], &any(src).([]float32)[0], 4*ds, 4*ss)
		return
	}
	for i := range rows {
		Stride2(dst[i*ds:][:n], src[i*ss:])
	}
}

// Zip2Rows puts rows of a and of b together, an element of each in turn:
//
//	dst[i*ds+2*j], dst[i*ds+2*j+1] = a[i*ss+j], b[i*ss+j]    i < rows, j < n
//
// It panics where a slice ends before an element of the last row.
func Zip2Rows[T any](dst, a, b []T, rows, n, ds, ss int) {
	if rows <= 0 || n <= 0 {
		return
	}
	_, _, _ = dst[(rows-1)*ds+2*n-1], a[(rows-1)*ss+n-1], b[(rows-1)*ss+n-1]
	done := 0
	if d, ok := any(dst).([]float32); ok {
		done = zipRows2(d, any(a).([]float32), any(b).([]float32), rows, n, ds, ss)
	}
	if done == n {
		return
	}
	for i := range rows {
		d, a, b := dst[i*ds+2*done:][:2*(n-done)], a[i*ss+done:][:n-done], b[i*ss+done:][:n-done]
		for j, v := range a {
			d[2*j], d[2*j+1] = v, b[j]
		}
	}
}

// Places makes places of the tags that windows step apart took, the first of which is at
// start:
//
//	dst[j] = at[j] + start + j*step
//
// It panics where at is shorter than dst.
func Places(dst []int64, at []int32, start, step int) {
	at = at[:len(dst)]
	done := 0
	if n := len(dst) / 4; n > 0 && vector {
		placesLanes(n, &dst[0], &at[0], start, step)
		done = 4 * n
	}
	for j := done; j < len(dst); j++ {
		dst[j] = int64(int(at[j]) + start + j*step)
	}
}

// Rows of float32, which on NEON are a block at least.

func sumTaps(y, x []float32, off []int, rows, n, ys, xs int) {
	switch {
	case avx512:
		sumTaps16(rows, n, &y[0], &x[0], &off[0], len(off), 4*ys, 4*xs)
	case avx2():
		sumTaps8(rows, n/8, &y[0], &x[0], &off[0], len(off), 4*ys, 4*xs, &masks[8-n%8])
	case neon && n >= lanes:
		sumTaps4(rows, (n-1)/lanes, &y[0], &x[0], &off[0], len(off), 4*ys, 4*xs, 4*(n-lanes))
	default:
		sumTapsGo(y, x, off, rows, n, ys, xs)
	}
}

func maxTaps(y, x []float32, off []int, rows, n, ys, xs int) {
	switch {
	case avx512:
		maxTaps16(rows, n, &y[0], &x[0], &off[0], len(off), 4*ys, 4*xs)
	case avx2():
		maxTaps8(rows, n/8, &y[0], &x[0], &off[0], len(off), 4*ys, 4*xs, &masks[8-n%8])
	case neon && n >= lanes:
		maxTaps4(rows, (n-1)/lanes, &y[0], &x[0], &off[0], len(off), 4*ys, 4*xs, 4*(n-lanes))
	default:
		maxTapsGo(y, x, off, rows, n, ys, xs)
	}
}

func extremeTaps(y []float32, at []int32, x []float32, off []int, tag []int32, rows, n, ys, xs int, least bool) {
	f4, f8, f16 := firstMaxTaps4, firstMaxTaps8, firstMaxTaps16
	if least {
		f4, f8, f16 = firstMinTaps4, firstMinTaps8, firstMinTaps16
	}
	switch {
	case avx512:
		f16(rows, n, &y[0], &at[0], &x[0], &off[0], &tag[0], len(off), 4*ys, 4*xs)
	case avx2():
		f8(rows, n/8, &y[0], &at[0], &x[0], &off[0], &tag[0], len(off), 4*ys, 4*xs, &masks[8-n%8])
	case neon && n >= lanes:
		f4(rows, (n-1)/lanes, &y[0], &at[0], &x[0], &off[0], &tag[0], len(off), 4*ys, 4*xs, 4*(n-lanes))
	default:
		extremeTapsGo(y, at, x, off, tag, rows, n, ys, xs, least)
	}
}

// zipRows2 zips whole blocks and tells how many elements of a row those are.
func zipRows2(dst, a, b []float32, rows, n, ds, ss int) int {
	if avx512 {
		zip2Rows16(rows, n, &dst[0], &a[0], &b[0], 4*ds, 4*ss)
		return n
	}
	done := vectorized(n)
	if done > 0 {
		zip2Rows(rows, done/lanes, &dst[0], &a[0], &b[0], 4*ds, 4*ss)
	}
	return done
}

func sumTapsGo[T Ordered](y, x []T, off []int, rows, n, ys, xs int) {
	for i := range rows {
		row := y[i*ys:][:n]
		copy(row, x[off[0]+i*xs:])
		t := 1
		for ; t+2 <= len(off); t += 2 {
			a, b := x[off[t]+i*xs:][:n], x[off[t+1]+i*xs:][:n]
			for j := range row {
				row[j] = row[j] + a[j] + b[j]
			}
		}
		if t < len(off) {
			for j, v := range x[off[t]+i*xs:][:n] {
				row[j] += v
			}
		}
	}
}

func maxTapsGo[T Ordered](y, x []T, off []int, rows, n, ys, xs int) {
	for i := range rows {
		row := y[i*ys:][:n]
		copy(row, x[off[0]+i*xs:])
		for _, o := range off[1:] {
			for j, v := range x[o+i*xs:][:n] {
				if v > row[j] || v != v {
					row[j] = v
				}
			}
		}
	}
}

func extremeTapsGo[T Ordered](y []T, at []int32, x []T, off []int, tag []int32, rows, n, ys, xs int, least bool) {
	for i := range rows {
		row, from := y[i*ys:][:n], at[i*ys:][:n]
		copy(row, x[off[0]+i*xs:])
		for j := range from {
			from[j] = tag[0]
		}
		for t := 1; t < len(off); t++ {
			if tap := x[off[t]+i*xs:][:n]; least {
				minTapGo(row, from, tap, tag[t])
			} else {
				maxTapGo(row, from, tap, tag[t])
			}
		}
	}
}

func maxTapGo[T Ordered](best []T, at []int32, x []T, mark int32) {
	at, x = at[:len(best)], x[:len(best)]
	for j, v := range x {
		if v > best[j] || v != v {
			best[j], at[j] = v, mark
		}
	}
}

func minTapGo[T Ordered](best []T, at []int32, x []T, mark int32) {
	at, x = at[:len(best)], x[:len(best)]
	for j, v := range x {
		if v < best[j] || v != v {
			best[j], at[j] = v, mark
		}
	}
}
