package simd

import (
	"math"

	"github.com/etrun-go/etrun/kernels/math32"
)

func addGo(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

func addScaledGo(dst, a, b []float32, alpha float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + float32(alpha*b[i])
	}
}

func subGo(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] - b[i]
	}
}

func mulGo(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] * b[i]
	}
}

func divGo(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] / b[i]
	}
}

func maximumGo(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = max(a[i], b[i])
	}
}

func minimumGo(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = min(a[i], b[i])
	}
}

func clampGo(dst, src []float32, low, high float32) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = min(max(src[i], low), high)
	}
}

// leakyReLUGo chooses among bits, without a branch for the processor to guess.
func leakyReLUGo(dst, src []float32, slope float32) {
	src = src[:len(dst)]
	for i, x := range src {
		bits, scaled := math.Float32bits(x), math.Float32bits(x*slope)
		if int32(bits) < 0 {
			bits = scaled
		}
		dst[i] = math.Float32frombits(bits)
	}
}

func sqrtGo(dst, src []float32) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = float32(math.Sqrt(float64(src[i])))
	}
}

func sigmoidGo(dst, src []float32)  { math32.Sigmoid(dst, src) }
func tanhGo(dst, src []float32)     { math32.Tanh(dst, src) }
func geluGo(dst, src []float32)     { math32.GELU(dst, src) }
func geluTanhGo(dst, src []float32) { math32.GELUTanh(dst, src) }
