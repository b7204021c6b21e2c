//go:build !purego

package simd

var filters = avx512

//go:noescape
func filter512(f *Filter, masks *uint16, y, x, w *float32, bias float32)

func (f *Filter) apply(y, x, w []float32, bias float32) {
	filter512(f, &f.masks[0], &y[0], &x[0], &w[0], bias)
}
