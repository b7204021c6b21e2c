package tensor

// NoDType is the result of promoting types without a common type. It is not valid and has no
// conversions.
const NoDType DType = -1

// Promote returns the promoted type of two element types (c10::promoteTypes). It is symmetric, and
// Promote(a, a) is a for every type. The result is NoDType for different types if either is
// quantized, a bits type or an 8-bit float, or if one is uint16, uint32 or uint64 and the other is
// not a real float.
func Promote(a, b DType) DType {
	if a == b {
		return a
	}
	ca, cb := a.info().kind, b.info().kind
	if ca < cb {
		a, b, ca, cb = b, a, cb, ca
	}
	switch {
	case cb == kindNone || cb == kindWide && ca != kindFloat:
		return NoDType
	case ca == kindComplex:
		return promoteComplex(a, b)
	case ca != cb: // a float with an integer or bool, or an integer with bool
		return a
	case ca == kindFloat:
		return promoteFloat(a, b)
	default:
		return promoteInt(a, b)
	}
}

func promoteFloat(a, b DType) DType {
	if a == Float64 || b == Float64 {
		return Float64
	}
	return Float32 // float32 with a half float, or Float16 with BFloat16
}

func promoteInt(a, b DType) DType {
	switch {
	case a.Size() > b.Size():
		return a
	case a.Size() < b.Size():
		return b
	}
	return Int16 // uint8 with int8, the only pair of equal size
}

func promoteComplex(a, b DType) DType {
	switch {
	case a == Complex128 || b == Complex128 || b == Float64:
		return Complex128
	case a == Complex32 && (b == Float16 || b.info().kind < kindFloat):
		return Complex32
	}
	return Complex64
}
