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

// format defines the JSON form of a datatype's elements. The functions are nil if there is none.
type format struct {
	name  Datatype
	dtype tensor.DType
	// scan reads the element at the begin of a text, which has padding, and returns the number of its bytes: 0 if it is in no usual
	// form, or has ahead bytes or more.
	scan func(dst, text []byte) int
	// parse reads an element of which text, a value of JSON, is all.
	parse func(dst, text []byte) bool
	print func(dst, src []byte) ([]byte, bool)
}

// formats are the datatypes of fixed size. Half floats have no JSON form.
var formats = []format{
	{"BOOL", tensor.Bool, scanBool, parseBool, printBool},
	{"UINT8", tensor.Uint8, scanUint, parseUint(8), printUint(8)},
	{"UINT16", tensor.Uint16, scanUint, parseUint(16), printUint(16)},
	{"UINT32", tensor.Uint32, scanUint, parseUint(32), printUint(32)},
	{"UINT64", tensor.Uint64, scanUint, parseUint(64), printUint(64)},
	{"INT8", tensor.Int8, scanInt, parseInt(8), printInt(8)},
	{"INT16", tensor.Int16, scanInt, parseInt(16), printInt(16)},
	{"INT32", tensor.Int32, scanInt, parseInt(32), printInt(32)},
	{"INT64", tensor.Int64, scanInt, parseInt(64), printInt(64)},
	{"FP16", tensor.Float16, nil, nil, nil},
	{"BF16", tensor.BFloat16, nil, nil, nil},
	{"FP32", tensor.Float32, scanFloat32, parseFloat32, printFloat(32)},
	{"FP64", tensor.Float64, scanFloat64, parseFloat64, printFloat(64)},
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
	switch len(dst) {
	case 1:
		dst[0] = byte(x)
	case 2:
		binary.LittleEndian.PutUint16(dst, uint16(x))
	case 4:
		binary.LittleEndian.PutUint32(dst, uint32(x))
	default:
		binary.LittleEndian.PutUint64(dst, x)
	}
}

// element loads the bits of an element.
func element(src []byte) uint64 {
	switch len(src) {
	case 1:
		return uint64(src[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(src))
	case 4:
		return uint64(binary.LittleEndian.Uint32(src))
	}
	return binary.LittleEndian.Uint64(src)
}

func scanBool(dst, text []byte) int {
	switch {
	case string(text[:4]) == "true":
		dst[0] = 1
		return 4
	case string(text[:5]) == "false":
		dst[0] = 0
		return 5
	}
	return 0
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
	x, err := strconv.ParseFloat(string(text), 32)
	binary.LittleEndian.PutUint32(dst, math.Float32bits(float32(x)))
	return err == nil
}

func parseFloat64(dst, text []byte) bool {
	x, err := strconv.ParseFloat(string(text), 64)
	binary.LittleEndian.PutUint64(dst, math.Float64bits(x))
	return err == nil
}

func scanFloat32(dst, text []byte) int {
	x, n, ok := usual32(text)
	if !ok {
		var d decimal
		d, n = scanDecimal(text)
		if x, ok = d.float32(); n == 0 || n >= ahead || !ok && !parseFloat32(dst, text[:n]) {
			return 0
		}
	}
	if ok {
		binary.LittleEndian.PutUint32(dst, math.Float32bits(x))
	}
	return n
}

func scanFloat64(dst, text []byte) int {
	d, n := scanDecimal(text)
	x, ok := d.float64()
	switch {
	case n == 0 || n >= ahead:
		return 0
	case ok:
		binary.LittleEndian.PutUint64(dst, math.Float64bits(x))
	case !parseFloat64(dst, text[:n]):
		return 0
	}
	return n
}

func scanUint(dst, text []byte) int {
	d, n := scanDecimal(text)
	if d.form != integer || d.negative || d.digits > math.MaxUint64>>(64-8*len(dst)) {
		return 0
	}
	put(dst, d.digits)
	return n
}

func scanInt(dst, text []byte) int {
	d, n := scanDecimal(text)
	most := uint64(math.MaxInt64) >> (64 - 8*len(dst))
	if d.negative {
		most++
	}
	if d.form != integer || d.digits > most {
		return 0
	}
	if d.negative {
		d.digits = -d.digits
	}
	put(dst, d.digits)
	return n
}

func printUint(int) func(dst, src []byte) ([]byte, bool) {
	return func(dst, src []byte) ([]byte, bool) { return strconv.AppendUint(dst, element(src), 10), true }
}

func printInt(size int) func(dst, src []byte) ([]byte, bool) {
	return func(dst, src []byte) ([]byte, bool) {
		return strconv.AppendInt(dst, int64(element(src)<<(64-size))>>(64-size), 10), true
	}
}

// printFloat returns a printer of the shortest text that parses to the same number. NaN and
// infinity have no JSON form.
func printFloat(size int) func(dst, src []byte) ([]byte, bool) {
	return func(dst, src []byte) ([]byte, bool) {
		x := math.Float64frombits(element(src))
		if size == 32 {
			x = float64(math.Float32frombits(uint32(element(src))))
		}
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return dst, false
		}
		return strconv.AppendFloat(dst, x, 'g', -1, size), true
	}
}
