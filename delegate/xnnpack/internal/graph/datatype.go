package graph

import (
	"fmt"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Datatype is an element type, numbered as in payloads (XNNDatatype); the library's numbers differ.
type Datatype uint8

// Element types of payloads.
const (
	FP32    Datatype = 1
	FP16    Datatype = 2
	QInt8   Datatype = 3
	QUInt8  Datatype = 4
	QInt32  Datatype = 5
	QCInt8  Datatype = 6
	QCInt32 Datatype = 7
	QCInt4  Datatype = 8
	QDInt8  Datatype = 9
	QBInt4  Datatype = 10
	Int32   Datatype = 12
	BF16    Datatype = 14
)

// quantKind is a kind of quantization.
type quantKind uint8

const (
	Unquantized quantKind = iota // the elements are the numbers
	PerTensor                    // one scale and zero point (PerTensorQuant)
	PerChannel                   // one scale per channel (PerChannelQuant)
	PerToken                     // scale and zero point computed at run time (PerTokenDynamicQuant)
	PerGroup                     // one bfloat16 scale per group of input channels (PerChannelGroupQuant)
)

func (k quantKind) String() string {
	return [...]string{"unquantized", "per tensor", "per channel", "dynamic", "per channel group"}[k]
}

type datatypeInfo struct {
	name    string
	Bits    int
	Quant   quantKind
	Native  int // xnn.Datatype, or NoNative
	Tensor  tensor.DType
	MinZero int32 // range of zero points
	MaxZero int32
}

// NoNative is the number of datatypes that the library does not have.
const NoNative = -1

var datatypes = [...]datatypeInfo{
	FP32:    {name: "fp32", Bits: 32, Native: int(xnn.FP32), Tensor: tensor.Float32},
	FP16:    {name: "fp16", Bits: 16, Native: int(xnn.FP16), Tensor: tensor.Float16},
	QInt8:   {name: "qint8", Bits: 8, Quant: PerTensor, Native: int(xnn.QInt8), Tensor: tensor.Int8, MinZero: -128, MaxZero: 127},
	QUInt8:  {name: "quint8", Bits: 8, Quant: PerTensor, Native: int(xnn.QUint8), Tensor: tensor.Uint8, MaxZero: 255},
	QInt32:  {name: "qint32", Bits: 32, Quant: PerTensor, Native: int(xnn.QInt32), Tensor: tensor.Int32},
	QCInt8:  {name: "qcint8", Bits: 8, Quant: PerChannel, Native: int(xnn.QCInt8), Tensor: tensor.Int8},
	QCInt32: {name: "qcint32", Bits: 32, Quant: PerChannel, Native: int(xnn.QCInt32), Tensor: tensor.Int32},
	QCInt4:  {name: "qcint4", Bits: 4, Quant: PerChannel, Native: int(xnn.QCInt4), Tensor: tensor.Uint8},
	QDInt8:  {name: "qdint8", Bits: 8, Quant: PerToken, Native: int(xnn.QDInt8), Tensor: tensor.Int8},
	QBInt4:  {name: "qbint4", Bits: 4, Quant: PerGroup, Native: int(xnn.QBInt4), Tensor: tensor.Uint8},
	Int32:   {name: "int32", Bits: 32, Native: int(xnn.Int32), Tensor: tensor.Int32},
	BF16:    {name: "bf16", Bits: 16, Native: NoNative, Tensor: tensor.BFloat16},
}

// Valid reports whether the element type is supported.
func (d Datatype) Valid() bool { return int(d) < len(datatypes) && datatypes[d].Bits > 0 }

// String returns the name.
func (d Datatype) String() string {
	if !d.Valid() {
		return fmt.Sprintf("datatype %d", uint8(d))
	}
	return datatypes[d].name
}

// Info returns the properties of the datatype, which must not be modified.
func (d Datatype) Info() *datatypeInfo { return &datatypes[d] }

// IsFloat reports whether elements are floating-point numbers.
func (d Datatype) IsFloat() bool { return d == FP32 || d == FP16 || d == BF16 }

// Bytes returns the size of a dense value in bytes. Rows of 4-bit elements start at byte boundaries.
func (d Datatype) Bytes(s Shape) int {
	if d.Info().Bits == 4 {
		if s.Rank == 0 {
			return 1
		}
		row := (s.Dim[s.Rank-1] + 1) / 2
		return s.Leading(s.Rank-1) * row
	}
	return s.Numel() * d.Info().Bits / 8
}
