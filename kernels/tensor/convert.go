package tensor

import "github.com/etrun-go/etrun/internal/simd"

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

// Loader returns the conversion from d to C, nil for types that operators do not compute on, and
// from floats to int32. Integers that do not fit C wrap; floats are converted to int64 by
// [FloatToInt].
func Loader[C Convertible](d DType) LoadFunc[C] {
	if !d.Valid() {
		return nil
	}
	return conversion[C]().load[d]
}

// Storer returns the conversion from C to d, nil for types that operators do not compute on.
func Storer[C Convertible](d DType) StoreFunc[C] {
	if !d.Valid() {
		return nil
	}
	return conversion[C]().store[d]
}

// ComputeType returns the type in which operators calculate on d by default: Float32, Float64 or
// Int64. ok is false for types that operators do not compute on.
func ComputeType(d DType) (c DType, ok bool) {
	switch {
	case d == Float64:
		return Float64, true
	case d.IsFloat():
		return Float32, true
	case d.IsInt() || d == Bool:
		return Int64, true
	}
	return d, false
}

// conversions are the tables of one compute type.
type conversions[C Convertible] struct {
	load  [NumDTypes]LoadFunc[C]
	store [NumDTypes]StoreFunc[C]
}

var (
	toFloat32 = conversions[float32]{
		load: [NumDTypes]LoadFunc[float32]{
			Uint8: loadBlocks(simd.Uint8ToFloat, load[float32, uint8], 1), Int8: loadBlocks(simd.Int8ToFloat, load[float32, int8], 1),
			Int16: loadBlocks(simd.Int16ToFloat, load[float32, int16], 2), Uint16: loadBlocks(simd.Uint16ToFloat, load[float32, uint16], 2),
			Int32: loadBlocks(simd.Int32ToFloat, load[float32, int32], 4), Uint32: load[float32, uint32],
			Int64: load[float32, int64], Uint64: load[float32, uint64], Bool: loadBlocks(simd.BoolToFloat, loadBool[float32], 1),
			Float16: loadBlocks(simd.HalfToFloat, loadHalf[float32], 2), BFloat16: loadBlocks(simd.BFloatToFloat, loadBFloat[float32], 2),
			Float32: loadSame[float32], Float64: load[float32, float64],
		},
		store: [NumDTypes]StoreFunc[float32]{
			Uint8: storeBlocks(simd.FloatTo8, storeTrunc64[uint8, float32], 1), Int8: storeBlocks(simd.FloatTo8, storeTrunc32[int8, float32], 1),
			Int16: storeBlocks(simd.FloatTo16, storeTrunc32[int16, float32], 2), Uint16: storeBlocks(simd.FloatTo16, storeTrunc32[uint16, float32], 2),
			Int32: storeBlocks(simd.FloatToInt32, storeTrunc32[int32, float32], 4), Uint32: storeTrunc64[uint32, float32],
			Int64: storeTrunc64[int64, float32], Uint64: storeUint64[float32], Bool: storeBlocks(simd.FloatToBool, storeBool[float32], 1),
			Float16: storeBlocks(simd.FloatToHalf, storeHalf[float32], 2), BFloat16: storeBlocks(simd.FloatToBFloat, storeBFloat[float32], 2),
			Float32: storeSame[float32], Float64: store[float64, float32],
		},
	}
	toFloat64 = conversions[float64]{
		load: [NumDTypes]LoadFunc[float64]{
			Uint8: load[float64, uint8], Int8: load[float64, int8], Int16: load[float64, int16],
			Int32: load[float64, int32], Int64: load[float64, int64], Uint16: load[float64, uint16],
			Uint32: load[float64, uint32], Uint64: load[float64, uint64], Bool: loadBool[float64],
			Float16: loadHalf[float64], BFloat16: loadBFloat[float64], Float32: load[float64, float32], Float64: loadSame[float64],
		},
		store: [NumDTypes]StoreFunc[float64]{
			Uint8: storeTrunc64[uint8, float64], Int8: storeTrunc32[int8, float64], Int16: storeTrunc32[int16, float64],
			Int32: storeTrunc32[int32, float64], Int64: storeTrunc64[int64, float64], Uint16: storeTrunc32[uint16, float64],
			Uint32: storeTrunc64[uint32, float64], Uint64: storeUint64[float64], Bool: storeBool[float64],
			Float16: storeHalf[float64], BFloat16: storeBFloat[float64], Float32: store[float32, float64], Float64: storeSame[float64],
		},
	}
	toInt64 = conversions[int64]{
		load: [NumDTypes]LoadFunc[int64]{
			Uint8: load[int64, uint8], Int8: load[int64, int8], Int16: load[int64, int16],
			Int32: load[int64, int32], Int64: loadSame[int64], Uint16: load[int64, uint16],
			Uint32: load[int64, uint32], Uint64: load[int64, uint64], Bool: loadBool[int64],
			Float16: loadHalfInt, BFloat16: loadBFloatInt, Float32: loadTrunc[float32], Float64: loadTrunc[float64],
		},
		store: [NumDTypes]StoreFunc[int64]{
			Uint8: store[uint8, int64], Int8: store[int8, int64], Int16: store[int16, int64],
			Int32: store[int32, int64], Int64: storeSame[int64], Uint16: store[uint16, int64],
			Uint32: store[uint32, int64], Uint64: store[uint64, int64], Bool: storeBool[int64],
			Float16: storeHalf[int64], BFloat16: storeBFloat[int64], Float32: store[float32, int64], Float64: store[float64, int64],
		},
	}
	toInt32 = conversions[int32]{
		load: [NumDTypes]LoadFunc[int32]{
			Uint8: loadBlocks(simd.Uint8ToInt32, load[int32, uint8], 1), Int8: loadBlocks(simd.Int8ToInt32, load[int32, int8], 1),
			Int16: loadBlocks(simd.Int16ToInt32, load[int32, int16], 2), Uint16: loadBlocks(simd.Uint16ToInt32, load[int32, uint16], 2),
			Int32: loadSame[int32], Uint32: load[int32, uint32], Int64: load[int32, int64], Uint64: load[int32, uint64],
			Bool: loadBlocks(simd.BoolToInt32, loadBool[int32], 1),
		},
		store: [NumDTypes]StoreFunc[int32]{
			Uint8: storeBlocks(simd.Int32To8, store[uint8, int32], 1), Int8: storeBlocks(simd.Int32To8, store[int8, int32], 1),
			Int16: storeBlocks(simd.Int32To16, store[int16, int32], 2), Uint16: storeBlocks(simd.Int32To16, store[uint16, int32], 2),
			Int32: storeSame[int32], Int64: store[int64, int32], Uint32: store[uint32, int32], Uint64: store[uint64, int32],
			Bool: storeBlocks(simd.Int32ToBool, storeBool[int32], 1), Float16: storeHalf[int32], BFloat16: storeBFloat[int32],
			Float32: store[float32, int32], Float64: store[float64, int32],
		},
	}
)

// loadBlocks and storeBlocks convert with vectors, and the rest with scalar loops. size is the
// element size in bytes.

func loadBlocks[C Convertible](vectors func(dst []C, src []byte) int, rest LoadFunc[C], size int) LoadFunc[C] {
	return func(dst []C, src []byte) {
		if n := vectors(dst, src); n < len(dst) {
			rest(dst[n:], src[n*size:])
		}
	}
}

func storeBlocks[C Convertible](vectors func(dst []byte, src []C) int, rest StoreFunc[C], size int) StoreFunc[C] {
	return func(dst []byte, src []C) {
		if n := vectors(dst, src); n < len(src) {
			rest(dst[n*size:], src[n:])
		}
	}
}

func conversion[C Convertible]() *conversions[C] {
	var t any
	switch any(C(0)).(type) {
	case float32:
		t = &toFloat32
	case float64:
		t = &toFloat64
	case int32:
		t = &toInt32
	default:
		t = &toInt64
	}
	return t.(*conversions[C])
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
