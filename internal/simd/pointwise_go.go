package simd

import "math"

func addGo[C float32 | int32](dst, a, b []C) {
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

func subGo[C float32 | int32](dst, a, b []C) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] - b[i]
	}
}

func mulGo[C float32 | int32](dst, a, b []C) {
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

func maximumGo[C float32 | int32](dst, a, b []C) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = max(a[i], b[i])
	}
}

func minimumGo[C float32 | int32](dst, a, b []C) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = min(a[i], b[i])
	}
}

func clampGo[C float32 | int32](dst, src []C, low, high C) {
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

func rsqrtGo(dst, src []float32) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = 1 / float32(math.Sqrt(float64(src[i])))
	}
}

func reciprocalGo(dst, src []float32) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = 1 / src[i]
	}
}

func absGo(dst, src []float32) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = math.Float32frombits(math.Float32bits(src[i]) &^ (1 << 31))
	}
}

func absIntGo(dst, src []int32) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = max(src[i], -src[i])
	}
}

func negGo[C float32 | int32](dst, src []C) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = -src[i]
	}
}

func signGo(dst, src []float32) {
	src = src[:len(dst)]
	for i, x := range src {
		dst[i] = float32(answer(x > 0)) - float32(answer(x < 0))
	}
}

func floorGo(dst, src []float32) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = float32(math.Floor(float64(src[i])))
	}
}

func ceilGo(dst, src []float32) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = float32(math.Ceil(float64(src[i])))
	}
}

func truncGo(dst, src []float32) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = float32(math.Trunc(float64(src[i])))
	}
}

func roundGo(dst, src []float32) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = float32(math.RoundToEven(float64(src[i])))
	}
}

func bitAndGo(dst, a, b []int32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] & b[i]
	}
}

func bitOrGo(dst, a, b []int32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] | b[i]
	}
}

func bitXorGo(dst, a, b []int32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] ^ b[i]
	}
}
