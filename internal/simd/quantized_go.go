//go:build purego || !(amd64 || arm64)

package simd

func (q *Quantized) requantize(dst []uint8, ldd int, src []int32, lds int, init []int32, scale []float32, m, n int) int {
	return 0
}

func (q *Quantized) quantize(dst []uint8, src []float32, scale float32, divide bool) int { return 0 }

func (q *Quantized) dequantize(dst []float32, src []uint8, scale float32) int { return 0 }

func (d *Depthwise) row(q *Quantized, dst []uint8, ldd int, a []uint8, step int, off []int, pixels int) int {
	return 0
}
