package tensor

// Compute is a type that operators calculate in. Every storage type is converted to one of the
// three when loaded, and back when stored: narrow integers and bool are computed exactly as int64
// and wrap when stored, half floats are computed as float32.
type Compute interface{ float32 | float64 | int64 }

// Convertible is a type with conversions from and to storage types: Compute, and int32, of which
// more fit into a vector, for narrow integers.
type Convertible interface{ Compute | int32 }

// A LoadFunc converts the first len(dst) elements of src, which must be aligned to them. Their type
// is the one passed to [Loader].
type LoadFunc[C Convertible] func(dst []C, src []byte)

// A StoreFunc converts src to the first len(src) elements of dst. Floats are rounded to nearest
// even, integers wrap, floats are converted to integers as by [FloatToInt], and every nonzero value
// is stored as true.
type StoreFunc[C Convertible] func(dst []byte, src []C)

// Loader returns the conversion from d to C, nil for types that operators do not compute on, and from floats to int32.
// Integers that do not fit C wrap; floats are converted to int64 by [FloatToInt].
func Loader[C Convertible](d DType) LoadFunc[C] { return codecOf[C](d).load }

// Storer returns the conversion from C to d, nil for types that operators do not compute on.
func Storer[C Convertible](d DType) StoreFunc[C] { return codecOf[C](d).store }

// loadVector and storeVector convert with vectors, and the rest with scalar loops. size is the
// element size in bytes.

func loadVector[C Convertible](vectors func(dst []C, src []byte) int, rest LoadFunc[C], size int) LoadFunc[C] {
	return func(dst []C, src []byte) {
		if n := vectors(dst, src); n < len(dst) {
			rest(dst[n:], src[n*size:])
		}
	}
}

func storeVector[C Convertible](vectors func(dst []byte, src []C) int, rest StoreFunc[C], size int) StoreFunc[C] {
	return func(dst []byte, src []C) {
		if n := vectors(dst, src); n < len(src) {
			rest(dst[n*size:], src[n:])
		}
	}
}

// real is a storage type whose conversion Go defines for every value, or that is never passed
// values out of range.
type real interface {
	uint8 | int8 | int16 | int32 | int64 | uint16 | uint32 | uint64 | float32 | float64
}

func load[C Convertible, S real](dst []C, src []byte) {
	s := View[S](src)[:len(dst)]
	for i := range dst {
		dst[i] = C(s[i])
	}
}

func store[D real, C Convertible](dst []byte, src []C) {
	d := View[D](dst)[:len(src)]
	for i := range d {
		d[i] = D(src[i])
	}
}

func loadSame[C Convertible](dst []C, src []byte)  { copy(dst, View[C](src)[:len(dst)]) }
func storeSame[C Convertible](dst []byte, src []C) { copy(View[C](dst)[:len(src)], src) }

// loadBool reads every nonzero byte as 1: a hostile file may contain others.
func loadBool[C Convertible](dst []C, src []byte) {
	s := src[:len(dst)]
	for i := range dst {
		var v C
		if s[i] != 0 {
			v = 1
		}
		dst[i] = v
	}
}

func storeBool[C Convertible](dst []byte, src []C) {
	d := dst[:len(src)]
	for i := range d {
		var v byte
		if src[i] != 0 {
			v = 1
		}
		d[i] = v
	}
}
