//go:build !purego && (amd64 || arm64)

package simd

// The functions below take n blocks of lanes elements; n > 0.

//go:noescape
func addLanes(n int, dst, a, b *float32)

//go:noescape
func addScaledLanes(n int, dst, a, b *float32, alpha float32)

//go:noescape
func subLanes(n int, dst, a, b *float32)

//go:noescape
func mulLanes(n int, dst, a, b *float32)

//go:noescape
func divLanes(n int, dst, a, b *float32)

//go:noescape
func maximumLanes(n int, dst, a, b *float32)

//go:noescape
func minimumLanes(n int, dst, a, b *float32)

//go:noescape
func clampLanes(n int, dst, src *float32, low, high float32)

//go:noescape
func leakyReLULanes(n int, dst, src *float32, slope float32)

//go:noescape
func sqrtLanes(n int, dst, src *float32)

//go:noescape
func sigmoidLanes(n int, dst, src *float32)

//go:noescape
func tanhLanes(n int, dst, src *float32)

//go:noescape
func geluLanes(n int, dst, src *float32)

//go:noescape
func geluTanhLanes(n int, dst, src *float32)

// whole is the number of elements in whole blocks, 0 without vectors.
func whole(n int) int {
	if !vector {
		return 0
	}
	return n &^ (lanes - 1)
}

func add(dst, a, b []float32) {
	n := whole(len(dst))
	if n > 0 {
		addLanes(n/lanes, &dst[0], &a[0], &b[0])
	}
	addGo(dst[n:], a[n:], b[n:])
}

func addScaled(dst, a, b []float32, alpha float32) {
	n := whole(len(dst))
	if n > 0 {
		addScaledLanes(n/lanes, &dst[0], &a[0], &b[0], alpha)
	}
	addScaledGo(dst[n:], a[n:], b[n:], alpha)
}

func sub(dst, a, b []float32) {
	n := whole(len(dst))
	if n > 0 {
		subLanes(n/lanes, &dst[0], &a[0], &b[0])
	}
	subGo(dst[n:], a[n:], b[n:])
}

func mul(dst, a, b []float32) {
	n := whole(len(dst))
	if n > 0 {
		mulLanes(n/lanes, &dst[0], &a[0], &b[0])
	}
	mulGo(dst[n:], a[n:], b[n:])
}

func div(dst, a, b []float32) {
	n := whole(len(dst))
	if n > 0 {
		divLanes(n/lanes, &dst[0], &a[0], &b[0])
	}
	divGo(dst[n:], a[n:], b[n:])
}

func maximum(dst, a, b []float32) {
	n := whole(len(dst))
	if n > 0 {
		maximumLanes(n/lanes, &dst[0], &a[0], &b[0])
	}
	maximumGo(dst[n:], a[n:], b[n:])
}

func minimum(dst, a, b []float32) {
	n := whole(len(dst))
	if n > 0 {
		minimumLanes(n/lanes, &dst[0], &a[0], &b[0])
	}
	minimumGo(dst[n:], a[n:], b[n:])
}

func clamp(dst, src []float32, low, high float32) {
	n := whole(len(dst))
	if n > 0 {
		clampLanes(n/lanes, &dst[0], &src[0], low, high)
	}
	clampGo(dst[n:], src[n:], low, high)
}

func leakyReLU(dst, src []float32, slope float32) {
	n := whole(len(dst))
	if n > 0 {
		leakyReLULanes(n/lanes, &dst[0], &src[0], slope)
	}
	leakyReLUGo(dst[n:], src[n:], slope)
}

func sqrt(dst, src []float32) {
	n := whole(len(dst))
	if n > 0 {
		sqrtLanes(n/lanes, &dst[0], &src[0])
	}
	sqrtGo(dst[n:], src[n:])
}

// The functions that vectors compute in another way than Go compute a last
// incomplete block in all lanes too, so that an element's result does not depend on
// its place.

func sigmoid(dst, src []float32) {
	if !vector {
		sigmoidGo(dst, src)
		return
	}
	n := whole(len(dst))
	if n > 0 {
		sigmoidLanes(n/lanes, &dst[0], &src[0])
	}
	if n < len(dst) {
		var b [lanes]float32
		copy(b[:], src[n:])
		sigmoidLanes(1, &b[0], &b[0])
		copy(dst[n:], b[:])
	}
}

func tanh(dst, src []float32) {
	if !vector {
		tanhGo(dst, src)
		return
	}
	n := whole(len(dst))
	if n > 0 {
		tanhLanes(n/lanes, &dst[0], &src[0])
	}
	if n < len(dst) {
		var b [lanes]float32
		copy(b[:], src[n:])
		tanhLanes(1, &b[0], &b[0])
		copy(dst[n:], b[:])
	}
}

func gelu(dst, src []float32) {
	if !vector {
		geluGo(dst, src)
		return
	}
	n := whole(len(dst))
	if n > 0 {
		geluLanes(n/lanes, &dst[0], &src[0])
	}
	if n < len(dst) {
		var b [lanes]float32
		copy(b[:], src[n:])
		geluLanes(1, &b[0], &b[0])
		copy(dst[n:], b[:])
	}
}

func geluTanh(dst, src []float32) {
	if !vector {
		geluTanhGo(dst, src)
		return
	}
	n := whole(len(dst))
	if n > 0 {
		geluTanhLanes(n/lanes, &dst[0], &src[0])
	}
	if n < len(dst) {
		var b [lanes]float32
		copy(b[:], src[n:])
		geluTanhLanes(1, &b[0], &b[0])
		copy(dst[n:], b[:])
	}
}
