package simd

// ChannelTaps sums windows over pixels of n channels, such as those of a depthwise
// convolution in channels-last order:
//
//	y[i*ys+j] = clamp(bias[j] + Σ_t w[wo[t]+j] · x[xo[t]+i*xs+j])    i < rows, j < n, t < len(xo)
//
// clamped to [lo, hi]; a NaN stays. It panics where a slice ends before an element that the
// sum wants, and where wo is shorter than xo. Fewer channels than [ChannelLanes] have vectors too if bias and each row of w
// have that many elements, whatever these are, and pixels of y are next to each other.
func ChannelTaps(y, x, w, bias []float32, xo, wo []int, rows, n, ys, xs int, lo, hi float32) {
	if rows <= 0 || n <= 0 {
		return
	}
	_, _ = y[(rows-1)*ys+n-1], bias[n-1]
	for t, o := range xo {
		_, _ = x[o:][(rows-1)*xs+n-1], w[wo[t]:][n-1]
	}
	done, pixels := 0, 0
	if len(xo) > 0 {
		if done = channelTaps(y, x, w, bias, xo, wo, rows, n, ys, xs, lo, hi); done == 0 {
			pixels = narrowPixels(x, w, bias, xo, wo, rows, n, ys, xs)
			channelBlocks(channelTiles, 1, 0, y, x, w, bias, xo, wo, pixels, ys, xs, lo, hi)
		}
	}
	if done < n && pixels < rows {
		channelTapsGo(y[pixels*ys:], x[pixels*xs:], w, bias, xo, wo, rows-pixels, done, n, ys, xs, lo, hi)
	}
}

// ChannelLanes is the largest number of channels in a block of any vector loop that needs a block of them.
const ChannelLanes = 8

// narrowPixels returns how many pixels of fewer channels than a block has a vector loop computes: the next pixels overwrite
// the elements in excess. Blocks of the last ones would end behind x, or behind what belongs to y.
func narrowPixels(x, w, bias []float32, xo, wo []int, rows, n, ys, xs int) int {
	end := (rows-1)*ys + n - lanes
	if !vector || ys != n || xs <= 0 || end < 0 || len(bias) < lanes {
		return 0
	}
	pixels := end/ys + 1
	for t, o := range xo {
		left := len(x) - o - lanes
		if left < 0 || wo[t]+lanes > len(w) {
			return 0
		}
		pixels = min(pixels, left/xs+1)
	}
	return pixels
}

type channelFunc func(n int, y, x *float32, xo *int, w *float32, wo *int, t int, bias *float32, ys, xs int, lo, hi float32)

var (
	channelTiles    = []tileOf[channelFunc]{{4, channels4}, {2, channels2}, {1, channels1}}
	channelTiles512 = []tileOf[channelFunc]{{4, channels4x512}, {2, channels2x512}, {1, channels1x512}}
)

// channelTaps computes the channels, or none if there are fewer than a block has, and returns how many. Those that remain
// after whole blocks are computed by a block that ends with them.
func channelTaps(y, x, w, bias []float32, xo, wo []int, rows, n, ys, xs int, lo, hi float32) int {
	if avx512 && n > 2*lanes { // two vectors of 16 channels take the time of both however few there are
		channelBlocks(channelTiles512, n, 0, y, x, w, bias, xo, wo, rows, ys, xs, lo, hi)
		return n
	}
	done := vectorized(n)
	if done == 0 {
		return 0
	}
	channelBlocks(channelTiles, n/lanes, 0, y, x, w, bias, xo, wo, rows, ys, xs, lo, hi)
	if done < n {
		channelBlocks(channelTiles, 1, n-lanes, y, x, w, bias, xo, wo, rows, ys, xs, lo, hi)
	}
	return n
}

// channelBlocks computes blocks of channels from one on.
func channelBlocks(tiles []tileOf[channelFunc], blocks, from int, y, x, w, bias []float32, xo, wo []int, rows, ys, xs int, lo, hi float32) {
	for i := 0; i < rows; {
		t := largest(tiles, rows-i)
		t.f(blocks, &y[i*ys+from], &x[i*xs+from], &xo[0], &w[from], &wo[0], len(xo), &bias[from], 4*ys, 4*xs, lo, hi)
		i += t.rows
	}
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
