package tensor

import "fmt"

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

type dtypeInfo struct {
	name string
	size int
}

var dtypes = [NumDTypes]dtypeInfo{
	Uint8: {"uint8", 1}, Int8: {"int8", 1}, Int16: {"int16", 2}, Int32: {"int32", 4}, Int64: {"int64", 8},
	Float16: {"float16", 2}, Float32: {"float32", 4}, Float64: {"float64", 8},
	Complex32: {"complex32", 4}, Complex64: {"complex64", 8}, Complex128: {"complex128", 16},
	Bool: {"bool", 1}, QInt8: {"qint8", 1}, QUint8: {"quint8", 1}, QInt32: {"qint32", 4},
	BFloat16: {"bfloat16", 2}, QUint4x2: {"quint4x2", 1}, QUint2x4: {"quint2x4", 1}, Bits16: {"bits16", 2},
	Float8E5M2: {"float8_e5m2", 1}, Float8E4M3FN: {"float8_e4m3fn", 1},
	Float8E5M2UZ: {"float8_e5m2fnuz", 1}, Float8E4M3UZ: {"float8_e4m3fnuz", 1},
	Uint16: {"uint16", 2}, Uint32: {"uint32", 4}, Uint64: {"uint64", 8},
}

// Valid reports whether d is an element type of the format.
func (d DType) Valid() bool { return d >= 0 && d < NumDTypes && dtypes[d].size > 0 }

// Size returns the size of one element in bytes, 0 if d is not valid.
func (d DType) Size() int {
	if !d.Valid() {
		return 0
	}
	return dtypes[d].size
}

// String returns PyTorch's name of the type ("float32").
func (d DType) String() string {
	if !d.Valid() {
		return fmt.Sprintf("dtype(%d)", int8(d))
	}
	return dtypes[d].name
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
func (d DType) IsFloat() bool {
	return d == Float32 || d == Float64 || d == Float16 || d == BFloat16
}

// IsInt reports whether d is an integer type; Bool is not.
func (d DType) IsInt() bool { return d >= Uint8 && d <= Int64 || d >= Uint16 && d <= Uint64 }

// IsComplex reports whether d is a complex type.
func (d DType) IsComplex() bool { return d >= Complex32 && d <= Complex128 }
