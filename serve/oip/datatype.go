package oip

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// Datatype is an element type of the protocol.
type Datatype string

// Bytes is the datatype of strings, which have no fixed size.
const Bytes Datatype = "BYTES"

// format defines the JSON form of a datatype's elements. parse and print are nil if there is none.
type format struct {
	name  Datatype
	dtype tensor.DType
	parse func(dst, text []byte) bool
	print func(dst, src []byte) ([]byte, bool)
}

// formats are the datatypes of fixed size. Half floats have no JSON form.
var formats = []format{
	{"BOOL", tensor.Bool, parseBool, printBool},
	{"UINT8", tensor.Uint8, parseUint(8), printUint(8)},
	{"UINT16", tensor.Uint16, parseUint(16), printUint(16)},
	{"UINT32", tensor.Uint32, parseUint(32), printUint(32)},
	{"UINT64", tensor.Uint64, parseUint(64), printUint(64)},
	{"INT8", tensor.Int8, parseInt(8), printInt(8)},
	{"INT16", tensor.Int16, parseInt(16), printInt(16)},
	{"INT32", tensor.Int32, parseInt(32), printInt(32)},
	{"INT64", tensor.Int64, parseInt(64), printInt(64)},
	{"FP16", tensor.Float16, nil, nil},
	{"BF16", tensor.BFloat16, nil, nil},
	{"FP32", tensor.Float32, parseFloat32, printFloat(32)},
	{"FP64", tensor.Float64, parseFloat64, printFloat(64)},
}

// formatOf returns nil for BYTES and for unknown datatypes.
func formatOf(d Datatype) *format {
	for i := range formats {
		if formats[i].name == d {
			return &formats[i]
		}
	}
	return nil
}

// DatatypeOf returns the datatype of a tensor's elements; ok is false if the protocol has none.
func DatatypeOf(d tensor.DType) (name Datatype, ok bool) {
	for i := range formats {
		if formats[i].dtype == d {
			return formats[i].name, true
		}
	}
	return "", false
}

// DType returns the element type of a datatype of fixed size.
func (d Datatype) DType() (t tensor.DType, ok bool) {
	if f := formatOf(d); f != nil {
		return f.dtype, true
	}
	return tensor.NoDType, false
}

// put stores the low bits of x, as many as fit into dst.
func put(dst []byte, x uint64) {
	for i := range dst {
		dst[i] = byte(x >> (8 * i))
	}
}

// bits loads the bits of an element.
func bits(src []byte) (x uint64) {
	for i, b := range src {
		x |= uint64(b) << (8 * i)
	}
	return x
}

func parseBool(dst, text []byte) bool {
	switch string(text) {
	case "true", "1":
		dst[0] = 1
	case "false", "0":
		dst[0] = 0
	default:
		return false
	}
	return true
}

func printBool(dst, src []byte) ([]byte, bool) {
	return strconv.AppendBool(dst, src[0] != 0), true
}

func parseUint(size int) func(dst, text []byte) bool {
	return func(dst, text []byte) bool {
		x, err := strconv.ParseUint(string(text), 10, size)
		put(dst, x)
		return err == nil
	}
}

func parseInt(size int) func(dst, text []byte) bool {
	return func(dst, text []byte) bool {
		x, err := strconv.ParseInt(string(text), 10, size)
		put(dst, uint64(x))
		return err == nil
	}
}

func parseFloat32(dst, text []byte) bool {
	x, ok := fast32(text)
	if !ok {
		wide, err := strconv.ParseFloat(string(text), 32)
		x, ok = float32(wide), err == nil
	}
	binary.LittleEndian.PutUint32(dst, math.Float32bits(x))
	return ok
}

func parseFloat64(dst, text []byte) bool {
	x, ok := fast64(text)
	if !ok {
		var err error
		x, err = strconv.ParseFloat(string(text), 64)
		ok = err == nil
	}
	binary.LittleEndian.PutUint64(dst, math.Float64bits(x))
	return ok
}

func printUint(int) func(dst, src []byte) ([]byte, bool) {
	return func(dst, src []byte) ([]byte, bool) { return strconv.AppendUint(dst, bits(src), 10), true }
}

func printInt(size int) func(dst, src []byte) ([]byte, bool) {
	return func(dst, src []byte) ([]byte, bool) {
		return strconv.AppendInt(dst, int64(bits(src)<<(64-size))>>(64-size), 10), true
	}
}

// printFloat returns a printer of the shortest text that parses to the same number. NaN and
// infinity have no JSON form.
func printFloat(size int) func(dst, src []byte) ([]byte, bool) {
	return func(dst, src []byte) ([]byte, bool) {
		x := math.Float64frombits(bits(src))
		if size == 32 {
			x = float64(math.Float32frombits(uint32(bits(src))))
		}
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return dst, false
		}
		return strconv.AppendFloat(dst, x, 'g', -1, size), true
	}
}
