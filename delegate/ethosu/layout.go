package ethosu

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// planOutput prepares the transfer of an output from the NPU. The cases are those of the Arm
// runtime (EthosUBackend.cpp, copy_with_layout_adjustment), decided at load. o describes the output
// in case its type is stale; calibrated means that each run requests its quantization.
func planOutput(r *record, a *delegate.ArgSpec, permuted bool, o *StaleOutput, calibrated bool) (transfer, error) {
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
		return t, t.requantize(o, calibrated)
	case integer:
		return t, t.adjust(a.DType)
	}
	return t, fmt.Errorf("declared %v %s, the NPU writes %v %s", a.DType, tensor.FormatSizes(a.Sizes), written(r.elemSize), tensor.FormatSizes(r.shape[:]))
}

// adjust handles outputs whose size in the NPU's memory differs from the tensor's: rows with
// trailing padding, or 4-bit integers. Rows are the record's last dimension.
func (t *transfer) adjust(d tensor.DType) error {
	rows := t.rec.elements() / t.rec.shape[5]
	if t.bytes%rows != 0 {
		return fmt.Errorf("%d bytes are not divisible by the %d rows that the NPU writes", t.bytes, rows)
	}
	t.chunk, t.stride = t.bytes/rows, t.rec.shape[5]*t.rec.elemSize
	if t.stride >= t.chunk {
		t.copy = trim
		return nil
	}
	if t.chunk%t.stride != 0 {
		return fmt.Errorf("declared rows of %d bytes of %v, the NPU writes %d", t.chunk, d, t.stride)
	}
	factor := t.chunk / t.stride
	if factor == 2 && t.rec.elemSize == 1 && d == tensor.Int8 {
		t.copy = unpackInt4
		return nil
	}
	return fmt.Errorf("declared %v, the NPU writes %v (expansion factor %d, element size %d)",
		d, written(t.rec.elemSize), factor, t.rec.elemSize)
}

// written returns the type that the NPU writes.
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

// trim removes the padding at the end of each row.
func trim(t *transfer, dst, src []byte) {
	for len(dst) >= t.chunk && t.chunk > 0 {
		copy(dst[:t.chunk], src)
		dst = dst[t.chunk:]
		src = src[min(t.stride, len(src)):]
	}
}

// unpackInt4 sign-extends 4-bit integers, low nibble first.
func unpackInt4(_ *transfer, dst, src []byte) {
	for i := range dst {
		v := src[i/2] >> (4 * (i & 1))
		dst[i] = byte(int8(v<<4) >> 4)
	}
}

// requantize handles a tensor whose declared type is stale: the NPU writes quantized integers, but
// the exporter did not update the type. If scale and zero point are known, floats are dequantized,
// and wider integers get the stored values. Otherwise the error is a *StaleError, unless each run
// requests the quantization.
func (t *transfer) requantize(o *StaleOutput, calibrated bool) error {
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
	if calibrated {
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
		return fmt.Errorf("invalid scale %v and zero point %d", q.Scale, q.ZeroPoint)
	}
	t.scale, t.zero, t.quant = float32(q.Scale), int32(q.ZeroPoint), q
	return nil
}

// dequantize converts like PyTorch's dequantize_per_tensor.
func dequantize(t *transfer, dst, src []byte) {
	for i := range t.elements {
		v := float32(t.stored(src, i)-t.zero) * t.scale
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
	}
}

// widen sign-extends integers to the tensor's element size.
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

// stored returns element i as written by the NPU.
func (t *transfer) stored(src []byte, i int) int32 {
	switch t.rec.elemSize {
	case 1:
		return int32(int8(src[i]))
	case 2:
		return int32(int16(binary.LittleEndian.Uint16(src[2*i:])))
	}
	return int32(binary.LittleEndian.Uint32(src[4*i:]))
}

// channelsMove reports whether the runtime of ExecuTorch 0.7 and earlier converts the tensor from
// NCHW to NHWC and back: rank 4 with one byte per element.
func channelsMove(a *delegate.ArgSpec, r *record) bool {
	if len(a.Sizes) != 4 || a.DType != tensor.Int8 && a.DType != tensor.Bool {
		return false
	}
	n, c, h, w := a.Sizes[0], a.Sizes[1], a.Sizes[2], a.Sizes[3]
	return r.shape == [6]int{1, 1, n, h, w, c}
}

// channelsLast converts from NCHW to NHWC.
func channelsLast(t *transfer, dst, src []byte) {
	n, pixels, c := t.rec.shape[2], t.rec.shape[3]*t.rec.shape[4], t.rec.shape[5]
	transpose(dst, src, n, c, pixels)
}

// channelsFirst converts from NHWC to NCHW.
func channelsFirst(t *transfer, dst, src []byte) {
	n, pixels, c := t.rec.shape[2], t.rec.shape[3]*t.rec.shape[4], t.rec.shape[5]
	transpose(dst, src, n, pixels, c)
}

// transpose transposes n matrices of rows by columns.
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

// transfer describes how an argument is copied to or from the NPU's memory.
type transfer struct {
	rec      *record
	bytes    int // size of the argument
	elements int
	copy     func(t *transfer, dst, src []byte)
	chunk    int // bytes of the argument that are contiguous in the NPU's memory
	stride   int // bytes in the NPU's memory from one chunk to the next
	scale    float32
	zero     int32
	quant    *delegate.QuantUse // origin of scale and zero, nil if unused
	stale    *StaleOutput       // set for an output that is calibrated in each run
}

// newTransfer performs the checks common to all arguments.
func newTransfer(r *record, a *delegate.ArgSpec) (transfer, error) {
	t := transfer{rec: r}
	if a == nil {
		return t, fmt.Errorf("not a tensor")
	}
	n, ok := tensor.Product(a.Sizes)
	if !ok || !a.DType.Valid() {
		return t, fmt.Errorf("%v %s", a.DType, tensor.FormatSizes(a.Sizes))
	}
	t.elements, t.bytes = n, n*a.DType.Size()
	return t, nil
}

// inputTypes maps the supported types of inputs to the element size that the NPU reads.
var inputTypes = [tensor.NumDTypes]int{tensor.Int32: 4, tensor.Int8: 1, tensor.Uint8: 1, tensor.Int16: 2, tensor.Bool: 1}

// copyBytes copies the argument unchanged.
func copyBytes(_ *transfer, dst, src []byte) { copy(dst, src) }

// calibrated returns the transfer of an output with the quantization that [Backend.Calibrate]
// returns for it.
func (t *transfer) calibrated(b *Backend, src []byte) (*transfer, error) {
	c := Calibration{StaleOutput: *t.stale, Stored: make([]int32, t.elements)}
	for i := range c.Stored {
		c.Stored[i] = t.stored(src, i)
	}
	q, err := b.Calibrate(&c)
	if err != nil {
		return nil, fmt.Errorf("delegate %d output %d: %w", c.Delegate, c.Output, err)
	}
	fitted := *t
	if err := fitted.quantized(&delegate.QuantUse{Quantization: q, By: "the caller"}); err != nil {
		return nil, delegate.Errorf(ID, delegate.ErrArgument, fmt.Sprintf("output %d", c.Output), "%w", err)
	}
	return &fitted, nil
}

func planInput(r *record, a *delegate.ArgSpec, permuted bool) (transfer, error) {
	t, err := newTransfer(r, a)
	if err != nil {
		return t, err
	}
	if inputTypes[a.DType] != r.elemSize {
		return t, fmt.Errorf("got elements of %v, want %d bytes each", a.DType, r.elemSize)
	}
	if t.elements != r.elements() {
		return t, fmt.Errorf("got %s with %d elements, want %s with %d", tensor.FormatSizes(a.Sizes), t.elements, tensor.FormatSizes(r.shape[:]), r.elements())
	}
	t.copy = copyBytes
	if permuted && channelsMove(a, r) {
		t.copy = channelsLast
	}
	return t, nil
}
