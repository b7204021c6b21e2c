package xnnpack

import (
	"fmt"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// datatype is an element type, numbered as in payloads (XNNDatatype); the library's numbers differ.
type datatype uint8

// Element types of payloads.
const (
	fp32       datatype = 1
	fp16       datatype = 2
	qint8      datatype = 3
	quint8     datatype = 4
	qint32     datatype = 5
	qcint8     datatype = 6
	qcint32    datatype = 7
	qcint4     datatype = 8
	qdint8     datatype = 9
	qbint4     datatype = 10
	plainInt32 datatype = 12
	bf16       datatype = 14
)

// quantKind is a kind of quantization.
type quantKind uint8

const (
	plain      quantKind = iota // the elements are the numbers
	perTensor                   // one scale and zero point (PerTensorQuant)
	perChannel                  // one scale per channel (PerChannelQuant)
	perToken                    // scale and zero point computed at run time (PerTokenDynamicQuant)
	perGroup                    // one bfloat16 scale per group of input channels (PerChannelGroupQuant)
)

func (k quantKind) String() string {
	return [...]string{"unquantized", "per tensor", "per channel", "dynamic", "per channel group"}[k]
}

type datatypeInfo struct {
	name    string
	bits    int
	quant   quantKind
	native  int // xnn.Datatype, or noNative
	tensor  tensor.DType
	minZero int32 // range of zero points
	maxZero int32
}

const noNative = -1

var datatypes = [...]datatypeInfo{
	fp32:       {name: "fp32", bits: 32, native: int(xnn.FP32), tensor: tensor.Float32},
	fp16:       {name: "fp16", bits: 16, native: int(xnn.FP16), tensor: tensor.Float16},
	qint8:      {name: "qint8", bits: 8, quant: perTensor, native: int(xnn.QInt8), tensor: tensor.Int8, minZero: -128, maxZero: 127},
	quint8:     {name: "quint8", bits: 8, quant: perTensor, native: int(xnn.QUint8), tensor: tensor.Uint8, maxZero: 255},
	qint32:     {name: "qint32", bits: 32, quant: perTensor, native: int(xnn.QInt32), tensor: tensor.Int32},
	qcint8:     {name: "qcint8", bits: 8, quant: perChannel, native: int(xnn.QCInt8), tensor: tensor.Int8},
	qcint32:    {name: "qcint32", bits: 32, quant: perChannel, native: int(xnn.QCInt32), tensor: tensor.Int32},
	qcint4:     {name: "qcint4", bits: 4, quant: perChannel, native: int(xnn.QCInt4), tensor: tensor.Uint8},
	qdint8:     {name: "qdint8", bits: 8, quant: perToken, native: int(xnn.QDInt8), tensor: tensor.Int8},
	qbint4:     {name: "qbint4", bits: 4, quant: perGroup, native: int(xnn.QBInt4), tensor: tensor.Uint8},
	plainInt32: {name: "int32", bits: 32, native: int(xnn.Int32), tensor: tensor.Int32},
	bf16:       {name: "bf16", bits: 16, native: noNative, tensor: tensor.BFloat16},
}

// Valid reports whether the element type is supported.
func (d datatype) Valid() bool { return int(d) < len(datatypes) && datatypes[d].bits > 0 }

func (d datatype) String() string {
	if !d.Valid() {
		return fmt.Sprintf("datatype %d", uint8(d))
	}
	return datatypes[d].name
}

func (d datatype) info() *datatypeInfo { return &datatypes[d] }

// isFloat reports whether elements are floating-point numbers.
func (d datatype) isFloat() bool { return d == fp32 || d == fp16 || d == bf16 }

// bytes returns the size of a dense value in bytes. Rows of 4-bit elements start at byte boundaries.
func (d datatype) bytes(s shape) int {
	if d.info().bits == 4 {
		if s.rank == 0 {
			return 1
		}
		row := (s.dim[s.rank-1] + 1) / 2
		return s.leading(s.rank-1) * row
	}
	return s.numel() * d.info().bits / 8
}
