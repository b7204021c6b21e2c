package serve

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/serve/oip"
)

// classify replaces the outputs of which a request wants the largest elements, as in Triton's classification extension: by
// strings VALUE:INDEX, the largest first. The first dimension counts rows if there are several; each row has its own.
func (c *call) classify() error {
	for k, w := range c.wanted {
		if w.classes == 0 {
			continue
		}
		out := &c.outputs[k]
		d, _ := out.Datatype.DType()
		describe := describers[d]
		if describe == nil {
			return requestError("output %q: classification of %s, want numbers", out.Name, out.Datatype)
		}
		rows, n := classesIn(out, w.classes)
		texts, shape := [][]byte{}, []int(nil)
		if len(out.Shape) > 1 {
			shape = []int{out.Shape[0]}
		}
		if n > 0 {
			for row := range slices.Chunk(out.Data, len(out.Data)/rows) {
				texts = append(texts, describe(row, n)...)
			}
		}
		*out = oip.Tensor{Name: out.Name, Datatype: oip.Bytes, Shape: append(shape, n), Texts: texts, Binary: out.Binary}
	}
	return nil
}

// classesIn returns the rows of an output, and how many of the n largest elements each has.
func classesIn(out *oip.Tensor, n int) (rows, each int) {
	rows = 1
	if len(out.Shape) > 1 {
		rows = out.Shape[0]
	}
	d, ok := out.Datatype.DType()
	if total := len(out.Data); ok && total > 0 {
		return rows, min(n, total/d.Size()/rows)
	}
	return rows, 0
}

// Bytes of the text of an element, and of its form in the answer.
const (
	classText = 152
	classWide = 712 // of a float64, which may have 309 digits before the point
	// classOrder is the size of the order of an element, and of a half float's value.
	classOrder = 8
)

// classBytes bounds the memory of the texts that replace an output, and of their form in the answer.
func classBytes(out *oip.Tensor, n int) int64 {
	rows, each := classesIn(out, n)
	text := int64(classText)
	if out.Datatype == "FP64" {
		text = classWide
	}
	return add(mul(mul(int64(rows), int64(each)), text), int64(len(out.Data))*classOrder)
}

// describers return the n largest elements of data as texts.
var describers = map[tensor.DType]func(data []byte, n int) [][]byte{
	tensor.Uint8: integers[uint8], tensor.Uint16: integers[uint16], tensor.Uint32: integers[uint32], tensor.Uint64: integers[uint64],
	tensor.Int8: integers[int8], tensor.Int16: integers[int16], tensor.Int32: integers[int32], tensor.Int64: integers[int64],
	tensor.Float16: halves(tensor.Float16), tensor.BFloat16: halves(tensor.BFloat16),
	tensor.Float32: floats[float32], tensor.Float64: floats[float64],
}

// number is a type of elements with an order.
type number interface {
	cmp.Ordered
	tensor.Element
}

func integers[T number](data []byte, n int) [][]byte {
	return largest(tensor.View[T](data), n, "%d:%d")
}

func floats[T number](data []byte, n int) [][]byte {
	return largest(tensor.View[T](data), n, "%f:%d")
}

func halves(d tensor.DType) func(data []byte, n int) [][]byte {
	return func(data []byte, n int) [][]byte {
		values := make([]float32, len(data)/d.Size())
		tensor.Loader[float32](d)(values, data)
		return largest(values, n, "%f:%d")
	}
}

// largest describes the n largest values by a format. NaN is the smallest.
func largest[T cmp.Ordered](values []T, n int, format string) (texts [][]byte) {
	order := make([]int32, len(values))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Or(cmp.Compare(values[b], values[a]), cmp.Compare(a, b)) })
	for _, i := range order[:n] {
		texts = append(texts, fmt.Appendf(nil, format, values[i], i))
	}
	return texts
}
