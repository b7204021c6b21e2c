package ethosu

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// planOutput says how an output gets from the NPU to its tensor. The cases are those
// of the Arm runtime (EthosUBackend.cpp, copy_with_layout_adjustment), decided at load.
// o describes the output should its type be stale; asked says that a run asks how it is
// quantised.
func planOutput(r *record, a *delegate.ArgSpec, permuted bool, o *StaleOutput, asked bool) (transfer, error) {
	t, err := newTransfer(r, a)
	if err != nil {
		return t, err
	}
	integer := inputTypes[a.DType] != 0
	switch {
	case integer && t.bytes == r.bytes():
		t.copy = copyBytes
		if permuted && channelsMove(a, r) {
			t.copy = channelsFirst
		}
		return t, nil
	case t.elements == r.elements() && (!integer || a.DType.Size() > r.elemSize):
		return t, t.requantize(o, asked)
	case integer:
		return t, t.adjust(a.DType)
	}
	return t, fmt.Errorf("%v %s, the NPU writes %v %s", a.DType, tensor.FormatSizes(a.Sizes), written(r.elemSize), tensor.FormatSizes(r.shape[:]))
}

// adjust serves outputs whose size at the NPU is another than the tensor's: rows with
// padding at their end, or 4-bit numbers. Rows are the record's last dimension.
func (t *transfer) adjust(d tensor.DType) error {
	rows := t.rec.elements() / t.rec.shape[5]
	if t.bytes%rows != 0 {
		return fmt.Errorf("%d bytes do not divide into the %d rows that the NPU writes", t.bytes, rows)
	}
	t.chunk, t.stride = t.bytes/rows, t.rec.shape[5]*t.rec.elemSize
	if t.stride >= t.chunk {
		t.copy = trim
		return nil
	}
	if t.chunk%t.stride != 0 {
		return fmt.Errorf("rows of %d bytes of %v, the NPU writes %d", t.chunk, d, t.stride)
	}
	factor := t.chunk / t.stride
	if factor == 2 && t.rec.elemSize == 1 && d == tensor.Int8 {
		t.copy = unpackInt4
		return nil
	}
	return fmt.Errorf("declared %v, the NPU writes %v (expansion factor %d, element size %d)",
		d, written(t.rec.elemSize), factor, t.rec.elemSize)
}

// written names what the NPU writes.
func written(elemSize int) tensor.DType {
	switch elemSize {
	case 1:
		return tensor.Int8
	case 2:
		return tensor.Int16
	case 4:
		return tensor.Int32
	}
	return tensor.Int64
}

// trim leaves out the padding at the end of each row.
func trim(t *transfer, dst, src []byte) {
	for len(dst) >= t.chunk && t.chunk > 0 {
		copy(dst[:t.chunk], src)
		dst = dst[t.chunk:]
		src = src[min(t.stride, len(src)):]
	}
}

// unpackInt4 extends 4-bit numbers, the low half of a byte first.
func unpackInt4(_ *transfer, dst, src []byte) {
	for i := range dst {
		v := src[i/2] >> (4 * (i & 1))
		dst[i] = byte(int8(v<<4) >> 4)
	}
}

// requantize serves a tensor whose declared type is stale: the NPU writes quantised
// numbers and the program was not told. With the scale and zero point the values can
// be had, real ones where the program wants floats, the stored ones where it wants
// wider integers; without them they would be wrong: a *StaleError, unless they will be
// asked for in the run.
func (t *transfer) requantize(o *StaleOutput, asked bool) error {
	switch {
	case t.rec.elemSize > 4:
	case o.Declared == tensor.Float32:
		t.copy = dequantize
	case o.Declared == tensor.Int16, o.Declared == tensor.Int32:
		t.copy = widen
	}
	if t.copy == nil {
		return fmt.Errorf("declared %v, the NPU writes %v: no conversion", o.Declared, o.Written)
	}
	if asked {
		t.stale = o
		return nil
	}
	if o.Known == nil {
		return &StaleError{Outputs: []StaleOutput{*o}}
	}
	return t.quantized(o.Known)
}

// quantized sets the scale and zero point.
func (t *transfer) quantized(q *delegate.QuantUse) error {
	if !(float32(q.Scale) > 0) || math.IsInf(float64(float32(q.Scale)), 0) || q.ZeroPoint < math.MinInt16 || q.ZeroPoint > math.MaxUint16 {
		return fmt.Errorf("scale %v and zero point %d", q.Scale, q.ZeroPoint)
	}
	t.scale, t.zero, t.quant = float32(q.Scale), int32(q.ZeroPoint), q
	return nil
}

// dequantize computes real numbers as PyTorch's dequantize_per_tensor does.
func dequantize(t *transfer, dst, src []byte) {
	for i := range t.elements {
		v := float32(t.stored(src, i)-t.zero) * t.scale
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
	}
}

// widen extends integers to the tensor's size.
func widen(t *transfer, dst, src []byte) {
	size := t.bytes / t.elements
	for i := range t.elements {
		if v := t.stored(src, i); size == 2 {
			binary.LittleEndian.PutUint16(dst[2*i:], uint16(v))
		} else {
			binary.LittleEndian.PutUint32(dst[4*i:], uint32(v))
		}
	}
}

// stored is element i of what the NPU wrote.
func (t *transfer) stored(src []byte, i int) int32 {
	switch t.rec.elemSize {
	case 1:
		return int32(int8(src[i]))
	case 2:
		return int32(int16(binary.LittleEndian.Uint16(src[2*i:])))
	}
	return int32(binary.LittleEndian.Uint32(src[4*i:]))
}

// channelsMove reports the tensors that the runtime of ExecuTorch 0.7 and before moves
// from NCHW to NHWC and back: rank 4 with one byte an element.
func channelsMove(a *delegate.ArgSpec, r *record) bool {
	if len(a.Sizes) != 4 || a.DType != tensor.Int8 && a.DType != tensor.Bool {
		return false
	}
	n, c, h, w := a.Sizes[0], a.Sizes[1], a.Sizes[2], a.Sizes[3]
	return r.shape == [6]int{1, 1, n, h, w, c}
}

// channelsLast moves bytes from NCHW to NHWC.
func channelsLast(t *transfer, dst, src []byte) {
	n, pixels, c := t.rec.shape[2], t.rec.shape[3]*t.rec.shape[4], t.rec.shape[5]
	transpose(dst, src, n, c, pixels)
}

// channelsFirst moves bytes from NHWC to NCHW.
func channelsFirst(t *transfer, dst, src []byte) {
	n, pixels, c := t.rec.shape[2], t.rec.shape[3]*t.rec.shape[4], t.rec.shape[5]
	transpose(dst, src, n, pixels, c)
}

// transpose turns n matrices of rows by columns.
func transpose(dst, src []byte, n, rows, columns int) {
	for range n {
		for i := range rows {
			for j := range columns {
				dst[j*rows+i] = src[i*columns+j]
			}
		}
		dst, src = dst[rows*columns:], src[rows*columns:]
	}
}
