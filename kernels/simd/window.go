package simd

// Ordered is an element type that windows are pooled in.
type Ordered interface{ float32 | float64 | int64 }

// SumTaps adds up shifted rows, such as those that windows of a pooling read:
//
//	y[i*ys+j] = Σ_t x[off[t]+i*xs+j]    i < rows, j < n, t < len(off)
//
// There is at least one tap.
func SumTaps[T Ordered](y, x []T, off []int, rows, n, ys, xs int) {
	if rows <= 0 || n <= 0 {
		return
	}
	_ = y[(rows-1)*ys+n-1]
	for _, o := range off {
		_ = x[o:][(rows-1)*xs+n-1]
	}
	if d, ok := any(y).([]float32); ok {
		sumTaps(d, any(x).([]float32), off, rows, n, ys, xs)
		return
	}
	sumTapsGo(y, x, off, rows, n, ys, xs)
}

// MaxTaps finds the largest element under shifted rows, NaN where there is one, and
// which tap brought it: the first of equal ones, the last of several NaN.
//
//	y[i*ys+j]  = max_t x[off[t]+i*xs+j]    i < rows, j < n, t < len(off)
//	at[i*ys+j] = tag[t]
//
// There is at least one tap.
func MaxTaps[T Ordered](y []T, at []int32, x []T, off []int, tag []int32, rows, n, ys, xs int) {
	if rows <= 0 || n <= 0 {
		return
	}
	_, _, _ = y[(rows-1)*ys+n-1], at[(rows-1)*ys+n-1], tag[len(off)-1]
	for _, o := range off {
		_ = x[o:][(rows-1)*xs+n-1]
	}
	if d, ok := any(y).([]float32); ok {
		maxTaps(d, at, any(x).([]float32), off, tag, rows, n, ys, xs)
		return
	}
	maxTapsGo(y, at, x, off, tag, rows, n, ys, xs)
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

func maxTapsGo[T Ordered](y []T, at []int32, x []T, off []int, tag []int32, rows, n, ys, xs int) {
	for i := range rows {
		row, from := y[i*ys:][:n], at[i*ys:][:n]
		copy(row, x[off[0]+i*xs:])
		for j := range from {
			from[j] = tag[0]
		}
		for t := 1; t < len(off); t++ {
			mark := tag[t]
			for j, v := range x[off[t]+i*xs:][:n] {
				if v > row[j] || v != v {
					row[j], from[j] = v, mark
				}
			}
		}
	}
}
