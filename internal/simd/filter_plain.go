//go:build purego || !amd64

package simd

const filters = false

func (f *Filter) apply(y, x, w []float32, bias float32) { f.applyGo(y, x, w, bias) }
