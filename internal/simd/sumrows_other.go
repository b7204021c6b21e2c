//go:build purego || !amd64

package simd

func sumRows(dst, x []float32, n int) { sumRowsGo(dst, x, n) }
