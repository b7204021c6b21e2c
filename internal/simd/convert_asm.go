//go:build !purego && (amd64 || arm64)

package simd

// The functions below take n blocks of lanes elements; n > 0. Every processor with
// AVX2 has F16C, which came before it.

//go:noescape
func int8ToInt32Lanes(n int, dst *int32, src *byte)

//go:noescape
func uint8ToInt32Lanes(n int, dst *int32, src *byte)

//go:noescape
func boolToInt32Lanes(n int, dst *int32, src *byte)

//go:noescape
func int16ToInt32Lanes(n int, dst *int32, src *byte)

//go:noescape
func uint16ToInt32Lanes(n int, dst *int32, src *byte)

//go:noescape
func int8ToFloatLanes(n int, dst *float32, src *byte)

//go:noescape
func uint8ToFloatLanes(n int, dst *float32, src *byte)

//go:noescape
func boolToFloatLanes(n int, dst *float32, src *byte)

//go:noescape
func int16ToFloatLanes(n int, dst *float32, src *byte)

//go:noescape
func uint16ToFloatLanes(n int, dst *float32, src *byte)

//go:noescape
func int32ToFloatLanes(n int, dst *float32, src *byte)

//go:noescape
func halfToFloatLanes(n int, dst *float32, src *byte)

//go:noescape
func bfloatToFloatLanes(n int, dst *float32, src *byte)

//go:noescape
func int32To8Lanes(n int, dst *byte, src *int32)

//go:noescape
func int32To16Lanes(n int, dst *byte, src *int32)

//go:noescape
func int32ToBoolLanes(n int, dst *byte, src *int32)

//go:noescape
func floatToInt32Lanes(n int, dst *byte, src *float32)

//go:noescape
func floatTo8Lanes(n int, dst *byte, src *float32)

//go:noescape
func floatTo16Lanes(n int, dst *byte, src *float32)

//go:noescape
func floatToBoolLanes(n int, dst *byte, src *float32)

//go:noescape
func floatToHalfLanes(n int, dst *byte, src *float32)

//go:noescape
func floatToBFloatLanes(n int, dst *byte, src *float32)
