//go:build purego || !amd64

package simd

func sumFloat64(x []float32) float64                      { return sumFloat64Go(x) }
func sumSquaresFloat64(x []float32, mean float64) float64 { return sumSquaresFloat64Go(x, mean) }
func addFloat64(sums []float64, x []float32)              { addFloat64Go(sums, x) }
func addSquaresFloat64(sums []float64, x []float32, mean []float64) {
	addSquaresFloat64Go(sums, x, mean)
}
func cumSum(dst, src []float32) { cumSumGo(dst, src, 0) }
