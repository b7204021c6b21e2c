package simd

// ChannelTaps sums windows over pixels of n channels, such as those of a depthwise
// convolution in channels-last order:
//
//	y[i*ys+j] = clamp(bias[j] + Σ_t w[wo[t]+j] · x[xo[t]+i*xs+j])    i < rows, j < n, t < len(xo)
//
// clamped to [lo, hi]; a NaN stays. It panics where a slice ends before an element that the
// sum wants, and where wo is shorter than xo.
func ChannelTaps(y, x, w, bias []float32, xo, wo []int, rows, n, ys, xs int, lo, hi float32) {
	if rows <= 0 || n <= 0 {
		return
	}
	_, _ = y[(rows-1)*ys+n-1], bias[n-1]
	for t, o := range xo {
		_, _ = x[o:][(rows-1)*xs+n-1], w[wo[t]:][n-1]
	}
	done := 0
	if len(xo) > 0 {
		done = channelTaps(y, x, w, bias, xo, wo, rows, n, ys, xs, lo, hi)
	}
	if done < n {
		channelTapsGo(y, x, w, bias, xo, wo, rows, done, n, ys, xs, lo, hi)
	}
}

type channelFunc func(n int, y, x *float32, xo *int, w *float32, wo *int, t int, bias *float32, ys, xs int, lo, hi float32)

var (
	channelTiles    = []tileOf[channelFunc]{{4, channels4}, {2, channels2}, {1, channels1}}
	channelTiles512 = []tileOf[channelFunc]{{4, channels4x512}, {2, channels2x512}, {1, channels1x512}}
)

// channelTaps computes the channels of whole blocks and tells how many those are.
func channelTaps(y, x, w, bias []float32, xo, wo []int, rows, n, ys, xs int, lo, hi float32) int {
	tiles, blocks, done := channelTiles, n/lanes, whole(n)
	if avx512 {
		tiles, blocks, done = channelTiles512, n, n
	}
	if done == 0 {
		return 0
	}
	for i := 0; i < rows; {
		t := largest(tiles, rows-i)
		t.f(blocks, &y[i*ys], &x[i*xs], &xo[0], &w[0], &wo[0], len(xo), &bias[0], 4*ys, 4*xs, lo, hi)
		i += t.rows
	}
	return done
}

// channelTapsGo computes channels [from, n).
func channelTapsGo(y, x, w, bias []float32, xo, wo []int, rows, from, n, ys, xs int, lo, hi float32) {
	for i := range rows {
		row := y[i*ys+from:][:n-from]
		copy(row, bias[from:])
		for t, o := range xo {
			pixel, weights := x[o+i*xs+from:][:len(row)], w[wo[t]+from:][:len(row)]
			for j := range row {
				row[j] += float32(weights[j] * pixel[j])
			}
		}
		clampGo(row, row, lo, hi)
	}
}
