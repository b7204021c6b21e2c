package simd

import "unsafe"

// Level names the instruction set in use: "avx512", "avx2", "neon" or "go".
func Level() string { return level }

// vectorized is the number of elements in whole blocks of lanes, 0 without vectors.
func vectorized(n int) int {
	if !vector {
		return 0
	}
	return n &^ (lanes - 1)
}

// avx2 reports AVX2 and FMA.
func avx2() bool { return vector && !neon }

// MulAdd adds a product of matrices to c:
//
//	c[i*ldc+j] += Σ_p a[i*ars+p*acs] · b[p*ldb+j]    i < m, j < n, p < k
//
// a may have any strides, so either of its orders serves without packing; rows of b
// and c are dense. Callers keep k·n within the second-level cache. It panics where a slice
// ends before an element that the sum wants.
func MulAdd(m, n, k int, a []float32, ars, acs int, b []float32, ldb int, c []float32, ldc int) {
	if k > 0 {
		MulAddTo(m, n, k, a, ars, acs, b, ldb, c, ldc, c, ldc)
	}
}

// MulAddTo is the sum of a matrix and a product:
//
//	c[i*ldc+j] = from[i*ldf+j] + Σ_p a[i*ars+p*acs] · b[p*ldb+j]    i < m, j < n, p < k
//
// from may be c, with the same stride; an ldf of 0 adds one row to all. It panics where a
// slice ends before an element that the sum wants.
func MulAddTo(m, n, k int, a []float32, ars, acs int, b []float32, ldb int, from []float32, ldf int, c []float32, ldc int) {
	mulAddClamp(m, n, k, a, ars, acs, b, ldb, from, ldf, c, ldc, -inf, inf, 0)
}

// mulAddClamp is [MulAddTo] with all of c clamped to [lo, hi]; a NaN stays.
func mulAddClamp(m, n, k int, a []float32, ars, acs int, b []float32, ldb int, from []float32, ldf int, c []float32, ldc int, lo, hi float32,
	ahead int) {
	if m <= 0 || n <= 0 {
		return
	}
	if m*n*k < few {
		mulAddClampGo(m, n, k, a, ars, acs, b, ldb, from, ldf, c, ldc, lo, hi)
		return
	}
	_ = a[(m-1)*ars+(k-1)*acs]
	_ = b[(k-1)*ldb+n-1]
	_ = from[(m-1)*ldf+n-1]
	_ = c[(m-1)*ldc+n-1]
	mulAddTo(m, n, 1, k, a, ars, acs, 0, b, ldb, from, ldf, c, ldc, lo, hi, ahead)
}

// MulAddToFunc is the form of [MulAddTo] for elements of T.
type MulAddToFunc[T Number] func(m, n, k int, a []T, ars, acs int, b []T, ldb int, from []T, ldf int, c []T, ldc int)

// MulAddToOf is MulAddTo for elements of T; only float32 has a vector loop.
func MulAddToOf[T Number]() MulAddToFunc[T] {
	if f, ok := any(MulAddToFunc[float32](MulAddTo)).(MulAddToFunc[T]); ok {
		return f
	}
	return mulAddToGo[T]
}

// addTaps is [TapsOf] of float32.
func addTaps(y, x []float32, off []int, w []float32) {
	if len(y) == 0 || len(off) == 0 {
		return
	}
	_ = w[len(off)-1]
	for _, o := range off {
		_ = x[o:][len(y)-1]
	}
	if len(y)*len(off) < few {
		tapsGo(y, x, off, w)
		return
	}
	taps(y, x, off, w)
}

func taps(y, x []float32, off []int, w []float32) {
	i := 0
	if vector {
		if n := len(y) / tapsBlock; n > 0 {
			tapsBlocks(n, &y[0], &x[0], &off[0], &w[0], len(off))
			i = n * tapsBlock
		}
		if n := (len(y) - i) / lanes; n > 0 {
			tapsLanes(n, &y[i], &x[i], &off[0], &w[0], len(off))
			i += n * lanes
		}
	}
	if i < len(y) {
		tapsGo(y[i:], x[i:], off, w)
	}
}

// TapsOf returns a function that adds a weighted sum of shifted slices of x, such as the taps of a filter:
//
//	y[i] += Σ_t w[t] · x[off[t]+i]    t < len(off)
//
// It panics where w is shorter than off, or x ends before an element that y wants. Only float32 has a vector loop.
func TapsOf[T Number]() func(y, x []T, off []int, w []T) {
	if f, ok := any(addTaps).(func(y, x []T, off []int, w []T)); ok {
		return f
	}
	return tapsGo[T]
}

// CopyRows copies rows of n elements from rows that are ss apart to rows that are ds
// apart:
//
//	dst[i*ds+j] = src[i*ss+j]    i < rows, j < n
//
// The rows of dst must not overlap those of src. It panics where dst or src ends before its last row
// does.
func CopyRows[T Copied](dst, src []T, rows, n, ds, ss int) {
	if rows <= 0 || n <= 0 {
		return
	}
	_, _ = dst[(rows-1)*ds+n-1], src[(rows-1)*ss+n-1]
	size := int(unsafe.Sizeof(dst[0]))
	copyRows(unsafe.Pointer(&dst[0]), unsafe.Pointer(&src[0]), rows, n*size, ds*size, ss*size)
}

// copyRows is CopyRows in bytes.
func copyRows(dst, src unsafe.Pointer, rows, n, ds, ss int) {
	if vector && n >= copyBlock && n <= shortRow && rows > 1 {
		copyRowsLanes(rows, (n-1)/copyBlock, n-copyBlock, (*byte)(dst), ds, (*byte)(src), ss)
		return
	}
	for i := range rows {
		copy(unsafe.Slice((*byte)(unsafe.Add(dst, i*ds)), n), unsafe.Slice((*byte)(unsafe.Add(src, i*ss)), n))
	}
}

// Copied are the elements of [CopyRows], which have no pointers.
type Copied interface {
	~uint8 | ~int8 | ~int16 | ~int32 | ~int64 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64 | ~bool | ~complex64 | ~complex128
}

// A loop copies rows of at least copyBlock bytes; a call of copy is as fast for more than shortRow.
const copyBlock, shortRow = 32, 384

// Stride2 sets dst[i] to src[2·i]. It panics where src ends before that element of the last
// i; dst may be written then.
func Stride2[T any](dst, src []T) {
	if d, ok := any(dst).([]float32); ok && vector && len(d) >= 8 {
		stride2(d, any(src).([]float32))
		return
	}
	stride2Go(dst, src)
}

// Zip3 puts three rows together, an element of each in turn:
//
//	dst[3*i], dst[3*i+1], dst[3*i+2] = a[i], b[i], c[i]    i < len(a)
//
// It panics where another slice is too short.
func Zip3(dst, a, b, c []float32) {
	dst, b, c = dst[:3*len(a):len(dst)], b[:len(a):len(b)], c[:len(a):len(c)]
	done := vectorized(len(a))
	if done > 0 {
		zip3Lanes(done/lanes, &dst[0], &a[0], &b[0], &c[0])
	}
	zip3Go(dst[3*done:], a[done:], b[done:], c[done:])
}

func zip3Go(dst, a, b, c []float32) {
	for i, v := range a {
		dst[3*i], dst[3*i+1], dst[3*i+2] = v, b[i], c[i]
	}
}

// Unzip3 takes three rows apart, see [Zip3]:
//
//	a[i], b[i], c[i] = src[3*i], src[3*i+1], src[3*i+2]    i < len(a)
//
// It panics where another slice is too short.
func Unzip3(a, b, c, src []float32) {
	src, b, c = src[:3*len(a):len(src)], b[:len(a):len(b)], c[:len(a):len(c)]
	done := vectorized(len(a))
	if done > 0 {
		unzip3Lanes(done/lanes, &a[0], &b[0], &c[0], &src[0])
	}
	unzip3Go(a[done:], b[done:], c[done:], src[3*done:])
}

func unzip3Go(a, b, c, src []float32) {
	for i := range a {
		a[i], b[i], c[i] = src[3*i], src[3*i+1], src[3*i+2]
	}
}

// Fill sets dst[i] to v.
func Fill[T any](dst []T, v T) {
	n := 0
	if d, ok := any(dst).([]float32); ok {
		if n = vectorized(len(d)); n > 0 {
			fillLanes(n/lanes, &d[0], any(v).(float32))
		}
	}
	fillGo(dst[n:], v)
}

// stride2 takes the last incomplete block together with the end of the one before,
// where src has the element beyond that a block reads. dst has a block at least.
func stride2(dst, src []float32) {
	n := len(dst)
	blocks := min(n, len(src)/2) / lanes
	if blocks > 0 {
		stride2Lanes(blocks, &dst[0], &src[0])
	}
	switch done := blocks * lanes; {
	case done == n:
	case len(src) >= 2*n:
		stride2Lanes(1, &dst[n-lanes], &src[2*(n-lanes)])
	default:
		stride2Go(dst[done:], src[2*done:])
	}
}

// Axpy adds a·x[i] to y[i]. It panics where x is shorter than y.
func Axpy(y, x []float32, a float32) {
	at, w := [1]int{}, [1]float32{a}
	taps(y, x[:len(y):len(x)], at[:], w[:])
}

// Dot is Σ x[i]·y[i], 0 for none. It panics where y is shorter than x.
func Dot(x, y []float32) float32 {
	y = y[:len(x):len(y)]
	n := vectorized(len(x))
	if n == 0 {
		return dotGo(x, y)
	}
	return dotLanes(n/lanes, &x[0], &y[0]) + dotGo(x[n:], y[n:])
}

// DotOf is Dot for elements of T; only float32 has a vector loop.
func DotOf[T Number]() func(x, y []T) T {
	if f, ok := any(Dot).(func(x, y []T) T); ok {
		return f
	}
	return dotGo[T]
}

// Sum is Σ x[i], 0 for none.
func Sum(x []float32) float32 {
	n := vectorized(len(x))
	if n == 0 {
		return sumGo(x)
	}
	return sumLanes(n/lanes, &x[0]) + sumGo(x[n:])
}

// SumSquares is Σ (x[i]-mean)², 0 for none.
func SumSquares(x []float32, mean float32) float32 {
	n := vectorized(len(x))
	if n == 0 {
		return SumSquaresAs(x, mean)
	}
	return squaresLanes(n/lanes, &x[0], mean) + SumSquaresAs(x[n:], mean)
}

// Max is the largest element, NaN if there is one, -Inf for none.
func Max(x []float32) float32 {
	n, m := vectorized(len(x)), -inf
	if n > 0 {
		m = maxLanes(n/lanes, &x[0])
	}
	return maxGo(m, x[n:])
}

// Min is the least element, NaN if there is one, +Inf for none.
func Min(x []float32) float32 {
	n, m := vectorized(len(x)), inf
	if n > 0 {
		m = minLanes(n/lanes, &x[0])
	}
	return minGo(m, x[n:])
}

// ScaleShift sets dst[i] to src[i]·scale + shift. dst may be src. It panics where src is
// shorter than dst.
func ScaleShift(dst, src []float32, scale, shift float32) {
	src = src[:len(dst):len(src)]
	n := vectorized(len(dst))
	if n > 0 {
		scaleShiftLanes(n/lanes, &dst[0], &src[0], scale, shift)
	}
	scaleShiftGo(dst[n:], src[n:], scale, shift)
}

// Center sets dst[i] to (src[i]-mean)·scale·weight[i] + bias[i]; a nil weight counts as
// ones, a nil bias as zeros. dst may be src. It panics where another slice is shorter than
// dst.
func Center(dst, src []float32, mean, scale float32, weight, bias []float32) {
	src = src[:len(dst):len(src)]
	if weight != nil {
		weight = weight[:len(dst):len(weight)]
	}
	if bias != nil {
		bias = bias[:len(dst):len(bias)]
	}
	n := vectorized(len(dst))
	if n == 0 || weight == nil || bias == nil {
		centerGo(dst, src, mean, scale, weight, bias)
		return
	}
	centerLanes(n/lanes, &dst[0], &src[0], &weight[0], &bias[0], mean, scale)
	if n < len(dst) {
		centerGo(dst[n:], src[n:], mean, scale, weight[n:], bias[n:])
	}
}

// ExpSum sets dst[i] to [Exp32](src[i]-shift) and returns the sum of dst, 0 for none. dst
// may be src. It panics where src is shorter than dst. Where that would be a subnormal number
// it is 0: what follows is then as fast for elements far below shift, such as those that a
// mask takes out, as for others. A last incomplete block is computed in all lanes, too, so
// that an element's result does not depend on its place.
func ExpSum(dst, src []float32, shift float32) (s float32) {
	src = src[:len(dst):len(src)]
	if !vector {
		return expSumGo(dst, src, shift)
	}
	n := vectorized(len(dst))
	if n > 0 {
		s = expSumLanes(n/lanes, &dst[0], &src[0], shift)
	}
	if rest := dst[n:]; len(rest) > 0 {
		var b tail
		for i := copy(b[:], src[n:]); i < lanes; i++ {
			b[i] = -inf
		}
		s += expSumLanes(1, &b[0], &b[0], shift)
		copy(rest, b[:])
	}
	return s
}

// Transpose copies rows of src as columns of dst:
//
//	dst[j*ds+i] = src[i*ss+j]    i < rows, j < cols
//
// rows and cols are multiples of 8. Unsigned integers and float32 have vector loops. It panics where dst
// or src ends before its last row does.
func Transpose[T any](dst, src []T, rows, cols, ds, ss int) {
	if rows <= 0 || cols <= 0 {
		return
	}
	_, _ = dst[(cols-1)*ds+rows-1], src[(rows-1)*ss+cols-1]
	if !vector {
		transposeGo(dst, src, rows, cols, ds, ss)
		return
	}
	switch d := any(dst).(type) {
	case []uint8:
		s := any(src).([]uint8)
		for j := 0; j < cols; j += 8 {
			transposeBytes(rows/8, &d[j*ds], ds, &s[j], ss)
		}
	case []uint16:
		s := any(src).([]uint16)
		for j := 0; j < cols; j += 8 {
			transposeHalves(rows/8, &d[j*ds], 2*ds, &s[j], 2*ss)
		}
	case []uint32:
		transposeWords(d, any(src).([]uint32), rows, cols, ds, ss)
	case []float32:
		transposeWords(bits(d), bits(any(src).([]float32)), rows, cols, ds, ss)
	case []uint64:
		s := any(src).([]uint64)
		for j := 0; j < cols; j += 4 {
			transposeQuads(rows/4, &d[j*ds], 8*ds, &s[j], 8*ss)
		}
	default:
		transposeGo(dst, src, rows, cols, ds, ss)
	}
}

func transposeWords(dst, src []uint32, rows, cols, ds, ss int) {
	for j := 0; j < cols; j += lanes {
		transposeLanes(rows/lanes, &dst[j*ds], 4*ds, &src[j], 4*ss)
	}
}

// PanelCols is how many columns [RowPanels] takes from a panel.
const PanelCols = 32

// RowPanels multiplies a row by panels, each of k rows of PanelCols dense columns, panel
// elements after the one before, and tells how many of them it has taken, 0 where that would
// be no faster than [MulAddTo]:
//
//	c[q*PanelCols+j] = clamp(from[q*PanelCols+j] + Σ_p a[p] · b[q*panel+p*PanelCols+j])    q < panels, p < k
//
// from may be c. It panics where a slice ends before an element that the sum wants.
func RowPanels(panels, k int, a, b []float32, panel int, from, c []float32, lo, hi float32) (done int) {
	if panels <= 0 || k <= 0 {
		return 0
	}
	_, _ = a[k-1], b[(panels-1)*panel+k*PanelCols-1]
	_, _ = from[panels*PanelCols-1], c[panels*PanelCols-1]
	for done < panels {
		at := done * PanelCols
		n := rowPanelsOf(panels-done, k, &a[0], &b[done*panel], panel, &from[at], &c[at], lo, hi)
		if n == 0 {
			break
		}
		done += n
	}
	return done
}

// bits are the elements of s as integers, in the same memory.
func bits(s []float32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}
