package tensor

// Promote is PyTorch's type promotion of two tensors' element types
// (c10::promoteTypes). It is symmetric. Types that never meet in an operator
// promote to the first of the two if equal and to Float32's absence of meaning
// otherwise: callers check their operands' types first.
func Promote(a, b DType) DType {
	if a == b {
		return a
	}
	ca, cb := category(a), category(b)
	if ca < cb {
		a, b, ca, cb = b, a, cb, ca
	}
	switch {
	case ca == categoryComplex:
		return promoteComplex(a, b)
	case ca != cb: // a float against integers or bool, or an integer against bool
		return a
	case ca == categoryFloat:
		return promoteFloat(a, b)
	default:
		return promoteInt(a, b)
	}
}

const (
	categoryBool = iota
	categoryInt
	categoryFloat
	categoryComplex
)

func category(d DType) int {
	switch {
	case d.IsComplex():
		return categoryComplex
	case d.IsFloat():
		return categoryFloat
	case d == Bool:
		return categoryBool
	}
	return categoryInt
}

func promoteFloat(a, b DType) DType {
	if a == Float64 || b == Float64 {
		return Float64
	}
	return Float32 // float32 with a half, or the two halves with each other
}

func promoteInt(a, b DType) DType {
	if a == Uint8 || b == Uint8 {
		if a == Int8 || b == Int8 {
			return Int16
		}
	}
	if a.Size() == b.Size() { // an unsigned wider type against its signed twin
		return Int64
	}
	if a.Size() > b.Size() {
		return a
	}
	return b
}

func promoteComplex(a, b DType) DType {
	if a == Complex128 || b == Complex128 || b == Float64 {
		return Complex128
	}
	if a == Complex32 && (b == Float16 || category(b) < categoryFloat) {
		return Complex32
	}
	return Complex64
}
