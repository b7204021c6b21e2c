package tensor

import (
	"fmt"
	"math"

	"github.com/etrun-go/etrun/internal/simd"
)

// DType is the type of a tensor's elements. The values are those of ExecuTorch's ScalarType
// (program.fbs), so that a file's byte converts directly.
type DType int8

// Element types. QInt8 and later quantized types occur in files as raw bytes only; no operator
// computes on them.
const (
	Uint8        DType = 0
	Int8         DType = 1
	Int16        DType = 2
	Int32        DType = 3
	Int64        DType = 4
	Float16      DType = 5
	Float32      DType = 6
	Float64      DType = 7
	Complex32    DType = 8
	Complex64    DType = 9
	Complex128   DType = 10
	Bool         DType = 11
	QInt8        DType = 12
	QUint8       DType = 13
	QInt32       DType = 14
	BFloat16     DType = 15
	QUint4x2     DType = 16
	QUint2x4     DType = 17
	Bits16       DType = 22
	Float8E5M2   DType = 23
	Float8E4M3FN DType = 24
	Float8E5M2UZ DType = 25
	Float8E4M3UZ DType = 26
	Uint16       DType = 27
	Uint32       DType = 28
	Uint64       DType = 29
	NumDTypes          = 30
)

// kind is the kind of a type, in the order of type promotion.
type kind uint8

const (
	kindNone kind = iota // stored only: no operator computes on it
	kindWide             // uint16, uint32 and uint64, added to PyTorch later
	kindBool
	kindInt
	kindFloat
	kindComplex
)

// dtypeInfo contains the facts of a type. A new type is a row of dtypes, and the loops that convert it.
type dtypeInfo struct {
	name     string
	size     int // bytes
	kind     kind
	lo, hi   int64                 // bounds of an integer type, as far as they fit int64
	eps, max float64               // of a float, or a complex type's parts: distance from 1 to the next number, and largest number
	part     DType                 // component of a complex type
	truth    func(dst, src []byte) // see Truth

	// Conversions from and to the types that operators calculate in. They are nil for types that operators do not
	// compute on, and for floats from the type to int32.
	f32 codec[float32]
	f64 codec[float64]
	i64 codec[int64]
	i32 codec[int32]
}

// codec contains the conversions between a storage type and C.
type codec[C Convertible] struct {
	load  LoadFunc[C]
	store StoreFunc[C]
}

var dtypes = [NumDTypes]dtypeInfo{
	Uint8: {name: "uint8", size: 1, kind: kindInt, lo: 0, hi: math.MaxUint8, truth: truth8,
		f32: codec[float32]{loadVector(simd.Uint8ToFloat, load[float32, uint8], 1), storeVector(simd.FloatTo8, storeTrunc64[uint8, float32], 1)},
		f64: codec[float64]{load[float64, uint8], storeTrunc64[uint8, float64]},
		i64: codec[int64]{load[int64, uint8], store[uint8, int64]},
		i32: codec[int32]{loadVector(simd.Uint8ToInt32, load[int32, uint8], 1), storeVector(simd.Int32To8, store[uint8, int32], 1)}},
	Int8: {name: "int8", size: 1, kind: kindInt, lo: math.MinInt8, hi: math.MaxInt8, truth: truth8,
		f32: codec[float32]{loadVector(simd.Int8ToFloat, load[float32, int8], 1), storeVector(simd.FloatTo8, storeTrunc32[int8, float32], 1)},
		f64: codec[float64]{load[float64, int8], storeTrunc32[int8, float64]},
		i64: codec[int64]{load[int64, int8], store[int8, int64]},
		i32: codec[int32]{loadVector(simd.Int8ToInt32, load[int32, int8], 1), storeVector(simd.Int32To8, store[int8, int32], 1)}},
	Int16: {name: "int16", size: 2, kind: kindInt, lo: math.MinInt16, hi: math.MaxInt16, truth: truth[uint16](0xffff),
		f32: codec[float32]{loadVector(simd.Int16ToFloat, load[float32, int16], 2), storeVector(simd.FloatTo16, storeTrunc32[int16, float32], 2)},
		f64: codec[float64]{load[float64, int16], storeTrunc32[int16, float64]},
		i64: codec[int64]{load[int64, int16], store[int16, int64]},
		i32: codec[int32]{loadVector(simd.Int16ToInt32, load[int32, int16], 2), storeVector(simd.Int32To16, store[int16, int32], 2)}},
	Int32: {name: "int32", size: 4, kind: kindInt, lo: math.MinInt32, hi: math.MaxInt32, truth: truth[uint32](math.MaxUint32),
		f32: codec[float32]{loadVector(simd.Int32ToFloat, load[float32, int32], 4), storeVector(simd.FloatToInt32, storeTrunc32[int32, float32], 4)},
		f64: codec[float64]{load[float64, int32], storeTrunc32[int32, float64]},
		i64: codec[int64]{load[int64, int32], store[int32, int64]},
		i32: codec[int32]{loadSame[int32], storeSame[int32]}},
	Int64: {name: "int64", size: 8, kind: kindInt, lo: math.MinInt64, hi: math.MaxInt64, truth: truth[uint64](math.MaxUint64),
		f32: codec[float32]{load[float32, int64], storeTrunc64[int64, float32]},
		f64: codec[float64]{load[float64, int64], storeTrunc64[int64, float64]},
		i64: codec[int64]{loadSame[int64], storeSame[int64]},
		i32: codec[int32]{load[int32, int64], store[int64, int32]}},
	Uint16: {name: "uint16", size: 2, kind: kindWide, lo: 0, hi: math.MaxUint16, truth: truth[uint16](0xffff),
		f32: codec[float32]{loadVector(simd.Uint16ToFloat, load[float32, uint16], 2), storeVector(simd.FloatTo16, storeTrunc32[uint16, float32], 2)},
		f64: codec[float64]{load[float64, uint16], storeTrunc32[uint16, float64]},
		i64: codec[int64]{load[int64, uint16], store[uint16, int64]},
		i32: codec[int32]{loadVector(simd.Uint16ToInt32, load[int32, uint16], 2), storeVector(simd.Int32To16, store[uint16, int32], 2)}},
	Uint32: {name: "uint32", size: 4, kind: kindWide, lo: 0, hi: math.MaxUint32, truth: truth[uint32](math.MaxUint32),
		f32: codec[float32]{load[float32, uint32], storeTrunc64[uint32, float32]},
		f64: codec[float64]{load[float64, uint32], storeTrunc64[uint32, float64]},
		i64: codec[int64]{load[int64, uint32], store[uint32, int64]},
		i32: codec[int32]{load[int32, uint32], store[uint32, int32]}},
	Uint64: {name: "uint64", size: 8, kind: kindWide, lo: 0, hi: math.MaxInt64, truth: truth[uint64](math.MaxUint64),
		f32: codec[float32]{load[float32, uint64], storeUint64[float32]},
		f64: codec[float64]{load[float64, uint64], storeUint64[float64]},
		i64: codec[int64]{load[int64, uint64], store[uint64, int64]},
		i32: codec[int32]{load[int32, uint64], store[uint64, int32]}},
	Bool: {name: "bool", size: 1, kind: kindBool, truth: truth8,
		f32: codec[float32]{loadVector(simd.BoolToFloat, loadBool[float32], 1), storeVector(simd.FloatToBool, storeBool[float32], 1)},
		f64: codec[float64]{loadBool[float64], storeBool[float64]},
		i64: codec[int64]{loadBool[int64], storeBool[int64]},
		i32: codec[int32]{loadVector(simd.BoolToInt32, loadBool[int32], 1), storeVector(simd.Int32ToBool, storeBool[int32], 1)}},
	Float16: {name: "float16", size: 2, kind: kindFloat, eps: 0x1p-10, max: 65504, truth: truth[uint16](0x7fff),
		f32: codec[float32]{loadVector(simd.HalfToFloat, loadHalf[float32], 2), storeVector(simd.FloatToHalf, storeHalf[float32], 2)},
		f64: codec[float64]{loadHalf[float64], storeHalf[float64]},
		i64: codec[int64]{loadHalfInt, storeHalf[int64]},
		i32: codec[int32]{nil, storeHalf[int32]}},
	BFloat16: {name: "bfloat16", size: 2, kind: kindFloat, eps: 0x1p-7, max: 0x1.fep127, truth: truth[uint16](0x7fff),
		f32: codec[float32]{loadVector(simd.BFloatToFloat, loadBFloat[float32], 2), storeVector(simd.FloatToBFloat, storeBFloat[float32], 2)},
		f64: codec[float64]{loadBFloat[float64], storeBFloat[float64]},
		i64: codec[int64]{loadBFloatInt, storeBFloat[int64]},
		i32: codec[int32]{nil, storeBFloat[int32]}},
	Float32: {name: "float32", size: 4, kind: kindFloat, eps: 0x1p-23, max: math.MaxFloat32, truth: truth[uint32](0x7fff_ffff),
		f32: codec[float32]{loadSame[float32], storeSame[float32]},
		f64: codec[float64]{load[float64, float32], store[float32, float64]},
		i64: codec[int64]{loadTrunc[float32], store[float32, int64]},
		i32: codec[int32]{nil, store[float32, int32]}},
	Float64: {name: "float64", size: 8, kind: kindFloat, eps: 0x1p-52, max: math.MaxFloat64, truth: truth[uint64](0x7fff_ffff_ffff_ffff),
		f32: codec[float32]{load[float32, float64], store[float64, float32]},
		f64: codec[float64]{loadSame[float64], storeSame[float64]},
		i64: codec[int64]{loadTrunc[float64], store[float64, int64]},
		i32: codec[int32]{nil, store[float64, int32]}},

	Complex32:  {name: "complex32", size: 4, kind: kindComplex, part: Float16, eps: 0x1p-10, truth: truth[uint32](0x7fff_7fff)},
	Complex64:  {name: "complex64", size: 8, kind: kindComplex, part: Float32, eps: 0x1p-23, truth: truth[uint64](0x7fff_ffff_7fff_ffff)},
	Complex128: {name: "complex128", size: 16, kind: kindComplex, part: Float64, eps: 0x1p-52},

	QInt8: {name: "qint8", size: 1}, QUint8: {name: "quint8", size: 1}, QInt32: {name: "qint32", size: 4},
	QUint4x2: {name: "quint4x2", size: 1}, QUint2x4: {name: "quint2x4", size: 1}, Bits16: {name: "bits16", size: 2},
	Float8E5M2: {name: "float8_e5m2", size: 1}, Float8E4M3FN: {name: "float8_e4m3fn", size: 1},
	Float8E5M2UZ: {name: "float8_e5m2fnuz", size: 1}, Float8E4M3UZ: {name: "float8_e4m3fnuz", size: 1},
}

// info returns the row of d, an empty one if d is not valid.
func (d DType) info() *dtypeInfo {
	if uint8(d) < NumDTypes {
		return &dtypes[d]
	}
	return &dtypes[unused]
}

// unused is a value that the format does not assign.
const unused = 18

// Valid reports whether d is an element type of the format.
func (d DType) Valid() bool { return d.info().size > 0 }

// Size returns the size of one element in bytes, 0 if d is not valid.
func (d DType) Size() int { return d.info().size }

// String returns PyTorch's name of the type ("float32").
func (d DType) String() string {
	if !d.Valid() {
		return fmt.Sprintf("dtype(%d)", int8(d))
	}
	return d.info().name
}

// ParseDType is the inverse of [DType.String].
func ParseDType(name string) (DType, error) {
	for d, info := range dtypes {
		if info.size > 0 && info.name == name {
			return DType(d), nil
		}
	}
	return 0, fmt.Errorf("unknown dtype %q", name)
}

// IsFloat reports whether d is a real floating type that operators compute on.
func (d DType) IsFloat() bool { return d.info().kind == kindFloat }

// IsInt reports whether d is an integer type; Bool is not.
func (d DType) IsInt() bool {
	k := d.info().kind
	return k == kindInt || k == kindWide
}

// IsComplex reports whether d is a complex type.
func (d DType) IsComplex() bool { return d.info().kind == kindComplex }

// IntRange returns the bounds of an integer type, and 0, 0 for other types. The upper bound of Uint64 is MaxInt64.
func (d DType) IntRange() (lo, hi int64) { return d.info().lo, d.info().hi }

// Epsilon returns the distance from 1 to the next number of a floating type, and of a complex type's parts; 0 for other
// types.
func (d DType) Epsilon() float64 { return d.info().eps }

// MaxFloat returns the largest finite number of a real floating type, 0 for other types.
func (d DType) MaxFloat() float64 { return d.info().max }

// Component returns the type of a complex type's parts, d itself for other types.
func (d DType) Component() DType {
	if d.IsComplex() {
		return d.info().part
	}
	return d
}

// ComputeType returns the type in which operators calculate on d by default: Float32, Float64 or Int64. ok is false for
// types that operators do not compute on.
func ComputeType(d DType) (c DType, ok bool) {
	switch k := d.info().kind; {
	case d == Float64:
		return Float64, true
	case k == kindFloat:
		return Float32, true
	case k == kindNone || k == kindComplex:
		return d, false
	}
	return Int64, true
}

// codecOf returns the conversions between d and C.
func codecOf[C Convertible](d DType) *codec[C] {
	info := d.info()
	var t any
	switch any(C(0)).(type) {
	case float32:
		t = &info.f32
	case float64:
		t = &info.f64
	case int32:
		t = &info.i32
	default:
		t = &info.i64
	}
	return t.(*codec[C])
}

// Truth returns a function that writes one byte per element of type d in src, for len(dst)
// elements: 0 if the element is zero, else another value. Negative zero is zero, NaN is not. The
// result is nil for types that operators do not compute on.
func Truth(d DType) func(dst, src []byte) { return d.info().truth }

// TypeOf returns the DType of T. For uint16 it is Uint16, never a half float.
func TypeOf[T Element]() DType {
	var z T
	switch any(z).(type) {
	case uint8:
		return Uint8
	case int8:
		return Int8
	case int16:
		return Int16
	case int32:
		return Int32
	case int64:
		return Int64
	case uint16:
		return Uint16
	case uint32:
		return Uint32
	case uint64:
		return Uint64
	case float32:
		return Float32
	case float64:
		return Float64
	case bool:
		return Bool
	case complex64:
		return Complex64
	}
	return Complex128
}

// Stores reports whether T is the Go type of d's elements; half floats are uint16.
func Stores[T Element](d DType) bool {
	own := TypeOf[T]()
	return own == d || own == Uint16 && (d == Float16 || d == BFloat16 || d == Bits16)
}
