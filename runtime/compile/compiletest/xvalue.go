package compiletest

import (
	"encoding/binary"
	"math"
)

// xvalue is a value of a payload.
type xvalue struct {
	id, external, flags, buffer uint32
	datatype                    int16
	dims                        []uint32
	quant                       uint8
	written                     bool
	nonbatch                    int32
	scale                       float32 // per tensor
	zero                        int32
	scales                      []float32 // per channel or group
	data                        []byte    // of a constant
	key                         string    // of named data
	readers                     []uint8   // tags
	shape                       []int     // as the library computes it, nil if it is not known
}

// Datatypes of payloads.
const (
	none    = 0
	fp32    = 1
	fp16    = 2
	qint8   = 3
	qint32  = 5
	qcint8  = 6
	qcint32 = 7
	qcint4  = 8
	qdint8  = 9
	qbint4  = 10
	int32s  = 12
)

// bits of an element, and the scalar type of tensors that are arguments.
var bits = map[int16]uint64{fp32: 32, fp16: 16, qint8: 8, 4: 8, qint32: 32, qcint8: 8, qcint32: 32, qcint4: 4, qdint8: 8, qbint4: 4, int32s: 32}
var scalarType = map[int16]int8{fp32: 6, fp16: 5, qint8: 1, 4: 0, int32s: 3, qint32: 3}

func (x *xvalue) bytes() uint64 {
	n := uint64(1)
	for i, d := range x.dims {
		if i == len(x.dims)-1 && bits[x.datatype] == 4 {
			d = (d + 1) / 2 * 2
		}
		n *= uint64(d)
	}
	return n * bits[x.datatype] / 8
}

// type of a value that may be absent.
func (x *xvalue) typed() int16 {
	if x == nil {
		return none
	}
	return x.datatype
}

// channels returns the scales of a quantized value.
func (x *xvalue) channels() []float32 {
	if len(x.scales) > 0 {
		return x.scales
	}
	return []float32{x.scale}
}

func normal(s float32) bool { return s >= 0x1p-126 && s <= math.MaxFloat32 }

// floats32 reads floats.
func floats32(b []byte) (list []float32) {
	for ; len(b) >= 4; b = b[4:] {
		list = append(list, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return list
}
