// Package weight reads constants of programs: their elements as stored, those of four or two bits unpacked, or the
// numbers that quantized elements mean.
package weight

import (
	"fmt"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Weight is a constant. Its bytes are those of the program.
type Weight struct {
	Name     string
	DType    tensor.DType
	Sizes    []int
	DimOrder []uint8 // nil for contiguous elements
	Data     []byte
	*delegate.Elements
}

// New returns a weight, nil if the sizes contradict the bytes. e may be nil; it does not count if it contradicts them.
func New(name string, t tensor.DType, sizes []int, order []uint8, data []byte, e *delegate.Elements) *Weight {
	w := &Weight{Name: name, DType: t, Sizes: sizes, DimOrder: order, Data: data, Elements: e}
	if e != nil && e.Bits < 8 {
		w.Sizes, w.DimOrder = e.Sizes, nil
	}
	if e != nil && !w.scaled() {
		return New(name, t, sizes, order, data, nil)
	}
	n, ok := tensor.Product(w.Sizes)
	if size := t.Size(); !ok || len(data) == 0 || size == 0 || !w.packed() && len(data)/size < n {
		return nil
	}
	return w
}

// scaled reports whether the bytes have all packed elements, and each element has a scale.
func (w *Weight) scaled() bool {
	e, rank := w.Elements, len(w.Sizes)
	switch {
	case rank > 0 && w.packed() && !w.fills():
		return false
	case rank == 0 || len(w.Zeros) > 0 && len(w.Zeros) != len(w.Scales):
		return false
	case e.Group > 0:
		n, ok := tensor.Product(w.Sizes)
		return ok && w.Sizes[rank-1]%e.Group == 0 && len(e.Scales) == n/e.Group
	case len(e.Scales) == 1:
		return true
	}
	return e.Dim >= 0 && e.Dim < rank && len(e.Scales) == w.Sizes[e.Dim]
}

func (w *Weight) packed() bool { return w.Elements != nil && w.Bits < 8 }

// fills reports whether packed elements have exactly the bytes.
func (w *Weight) fills() bool {
	rows, ok := tensor.Product(w.Sizes[:len(w.Sizes)-1])
	return (w.Bits == 2 || w.Bits == 4) && ok && rows <= len(w.Data) && w.Sizes[len(w.Sizes)-1] <= 8*len(w.Data) && rows*w.rowBytes() == len(w.Data)
}

// rowBytes is the number of bytes of a row of packed elements.
func (w *Weight) rowBytes() int {
	per := 8 / w.Bits
	return (w.Sizes[len(w.Sizes)-1] + per - 1) / per
}

// Quantized reports whether the elements mean other numbers.
func (w *Weight) Quantized() bool { return w.Elements != nil }

// Count is the number of elements.
func (w *Weight) Count() int {
	n, _ := tensor.Product(w.Sizes)
	return n
}

// Type formats the type: "int4 8x32" for packed elements.
func (w *Weight) Type() string {
	name := w.DType.String()
	if w.packed() {
		name = fmt.Sprintf("int%d", w.Bits)
	}
	return name + " " + tensor.FormatSizes(w.Sizes)
}

// Load loads elements from index from on, in the order of the bytes: dequantized if real is set. It reports whether the type has
// numbers.
func (w *Weight) Load(dst []float64, from int, real bool) bool {
	if w.packed() {
		for i := range dst {
			dst[i] = float64(w.unpacked(from + i))
		}
	} else {
		load, size := tensor.Loader[float64](w.DType), w.DType.Size()
		if load == nil {
			return false
		}
		aligned := tensor.AlignedBytes(len(dst) * size) // the bytes of a file need not be
		copy(aligned, w.Data[from*size:])
		load(dst, aligned)
		for i := range dst {
			if real && w.Elements != nil {
				dst[i] -= float64(w.ZeroPoint)
			}
		}
	}
	for i := range dst {
		if real && w.Elements != nil {
			k := w.scale(from + i)
			if len(w.Zeros) > 0 {
				dst[i] -= float64(w.Zeros[k])
			}
			dst[i] *= float64(w.Scales[k])
		}
	}
	return true
}

// unpacked returns packed element i, less the zero point.
func (w *Weight) unpacked(i int) int {
	cols, per := w.Sizes[len(w.Sizes)-1], 8/w.Bits
	row, col := i/cols, i%cols
	at := col % per
	if w.HighFirst {
		at = per - 1 - at
	}
	return int(w.Data[row*w.rowBytes()+col/per]>>(at*w.Bits))&(1<<w.Bits-1) - w.ZeroPoint
}

// scale returns the index of the scale of element i.
func (w *Weight) scale(i int) int {
	switch {
	case w.Group > 0:
		return i / w.Group
	case len(w.Scales) == 1:
		return 0
	}
	inner, _ := tensor.Product(w.Sizes[w.Dim+1:])
	return i / inner % w.Sizes[w.Dim]
}

// Tensor returns the elements as a tensor: as stored, those that are packed as int8, or float32 if real is set.
func (w *Weight) Tensor(real bool) *tensor.Tensor {
	real = real && w.Quantized()
	if !real && !w.packed() {
		t := tensor.Make(w.DType, w.Sizes, w.DimOrder, tensor.Static)
		t.Data = w.Data[:t.NBytes():t.NBytes()]
		return t
	}
	t := tensor.New(tensor.Int8, w.Sizes...)
	if real {
		t = tensor.New(tensor.Float32, w.Sizes...)
	}
	row, store := make([]float64, 1024), tensor.Storer[float64](t.DType)
	size := t.DType.Size()
	for at := 0; at < w.Count(); at += len(row) {
		row = row[:min(len(row), w.Count()-at)]
		w.Load(row, at, real)
		store(t.Data[at*size:][:len(row)*size], row)
	}
	return t
}
