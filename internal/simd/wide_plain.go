//go:build purego || !amd64

package simd

func sumWide(x []float32) float64                                { return sumWideGo(x) }
func squaresWide(x []float32, mean float64) float64              { return squaresWideGo(x, mean) }
func addWide(sums []float64, x []float32)                        { addWideGo(sums, x) }
func addSquaresWide(sums []float64, x []float32, mean []float64) { addSquaresWideGo(sums, x, mean) }
func scanWide(dst, src []float32)                                { scanWideGo(dst, src, 0) }
