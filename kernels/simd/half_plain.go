//go:build purego || !(amd64 || arm64)

package simd

func halfToFloat([]float32, []uint16) int   { return 0 }
func floatToHalf([]uint16, []float32) int   { return 0 }
func bfloatToFloat([]float32, []uint16) int { return 0 }
func floatToBFloat([]uint16, []float32) int { return 0 }
