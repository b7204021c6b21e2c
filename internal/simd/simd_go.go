//go:build purego || !(amd64 || arm64)

package simd

const (
	lanes  = 1
	level  = "go"
	vector = false
)

func mulAddTo(m, n, k int, a []float32, ars, acs int, b []float32, ldb int, from []float32, ldf int, c []float32, ldc int, lo, hi float32) {
	mulAddClampGo(m, n, k, a, ars, acs, b, ldb, from, ldf, c, ldc, lo, hi)
}

func rowPanelsOf(panels, k int, a, b *float32, panel int, from, c *float32, lo, hi float32) int {
	return 0
}

func taps(y, x []float32, off []int, w []float32)         { tapsGo(y, x, off, w) }
func axpy(y, x []float32, a float32)                      { axpyGo(y, x, a) }
func dot(x, y []float32) float32                          { return dotGo(x, y) }
func sum(x []float32) float32                             { return sumGo(x) }
func sumSquares(x []float32, mean float32) float32        { return sumSquaresGo(x, mean) }
func maxOf(x []float32) float32                           { return maxGo(x) }
func minOf(x []float32) float32                           { return minGo(x) }
func scaleShift(dst, src []float32, scale, shift float32) { scaleShiftGo(dst, src, scale, shift) }
func expSum(dst, src []float32, shift float32) float32    { return expSumGo(dst, src, shift) }

func center(dst, src []float32, mean, scale float32, weight, bias []float32) {
	centerGo(dst, src, mean, scale, weight, bias)
}

func fill(dst []float32, v float32) { fillGo(dst, v) }

func stride2(dst, src []float32) { stride2Go(dst, src) }

func transpose64(dst, src []uint64, rows, cols, ds, ss int) {
	transposeGo(dst, src, rows, cols, ds, ss)
}
func transpose8(dst, src []uint8, rows, cols, ds, ss int) { transposeGo(dst, src, rows, cols, ds, ss) }
func transpose16(dst, src []uint16, rows, cols, ds, ss int) {
	transposeGo(dst, src, rows, cols, ds, ss)
}
func transpose32(dst, src []uint32, rows, cols, ds, ss int) {
	transposeGo(dst, src, rows, cols, ds, ss)
}
