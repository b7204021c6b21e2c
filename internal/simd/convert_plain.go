//go:build purego || !(amd64 || arm64)

package simd

// Nothing calls these: there are no whole blocks without vectors.

func int8ToInt32Lanes(int, *int32, *byte)     {}
func uint8ToInt32Lanes(int, *int32, *byte)    {}
func boolToInt32Lanes(int, *int32, *byte)     {}
func int16ToInt32Lanes(int, *int32, *byte)    {}
func uint16ToInt32Lanes(int, *int32, *byte)   {}
func int8ToFloatLanes(int, *float32, *byte)   {}
func uint8ToFloatLanes(int, *float32, *byte)  {}
func boolToFloatLanes(int, *float32, *byte)   {}
func int16ToFloatLanes(int, *float32, *byte)  {}
func uint16ToFloatLanes(int, *float32, *byte) {}
func int32ToFloatLanes(int, *float32, *byte)  {}
func halfToFloatLanes(int, *float32, *byte)   {}
func bfloatToFloatLanes(int, *float32, *byte) {}
func int32To8Lanes(int, *byte, *int32)        {}
func int32To16Lanes(int, *byte, *int32)       {}
func int32ToBoolLanes(int, *byte, *int32)     {}
func floatToInt32Lanes(int, *byte, *float32)  {}
func floatTo8Lanes(int, *byte, *float32)      {}
func floatTo16Lanes(int, *byte, *float32)     {}
func floatToBoolLanes(int, *byte, *float32)   {}
func floatToHalfLanes(int, *byte, *float32)   {}
func floatToBFloatLanes(int, *byte, *float32) {}
