package tensor

// Truth returns a function that writes one byte per element of type d in src, for len(dst)
// elements: 0 if the element is zero, else another value. Negative zero is zero, NaN is not. The
// result is nil for types that operators do not compute on.
func Truth(d DType) func(dst, src []byte) {
	if !d.Valid() {
		return nil
	}
	return truths[d]
}

var truths = [NumDTypes]func(dst, src []byte){
	Bool: truth8, Uint8: truth8, Int8: truth8,
	Int16: truth[uint16](0xffff), Uint16: truth[uint16](0xffff),
	Int32: truth[uint32](0xffff_ffff), Uint32: truth[uint32](0xffff_ffff),
	Int64: truth[uint64](0xffff_ffff_ffff_ffff), Uint64: truth[uint64](0xffff_ffff_ffff_ffff),
	Float16: truth[uint16](0x7fff), BFloat16: truth[uint16](0x7fff),
	Float32: truth[uint32](0x7fff_ffff), Float64: truth[uint64](0x7fff_ffff_ffff_ffff),
	Complex32: truth[uint32](0x7fff_7fff), Complex64: truth[uint64](0x7fff_ffff_7fff_ffff),
}

func truth8(dst, src []byte) { copy(dst, src[:len(dst)]) }

// truth tests the bits of mask: all but the signs of floats.
func truth[T uint16 | uint32 | uint64](mask T) func(dst, src []byte) {
	return func(dst, src []byte) {
		s := View[T](src)[:len(dst)]
		for i := range dst {
			b := byte(0)
			if s[i]&mask != 0 {
				b = 1
			}
			dst[i] = b
		}
	}
}
