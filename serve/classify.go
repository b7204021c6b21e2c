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
	// classOrder is the size of the order of an element, and of its value in 64 bits.
	classOrder = 12
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
	tensor.Uint8: integers(tensor.Uint8), tensor.Uint16: integers(tensor.Uint16), tensor.Uint32: integers(tensor.Uint32),
	tensor.Uint64: func(data []byte, n int) [][]byte { return largest(tensor.View[uint64](data), n, "%d:%d") },
	tensor.Int8:   integers(tensor.Int8), tensor.Int16: integers(tensor.Int16), tensor.Int32: integers(tensor.Int32), tensor.Int64: integers(tensor.Int64),
	tensor.Float16: floats(tensor.Float16), tensor.BFloat16: floats(tensor.BFloat16),
	tensor.Float32: floats(tensor.Float32), tensor.Float64: floats(tensor.Float64),
}

func integers(d tensor.DType) func(data []byte, n int) [][]byte {
	return func(data []byte, n int) [][]byte {
		values := make([]int64, len(data)/d.Size())
		tensor.Loader[int64](d)(values, data)
		return largest(values, n, "%d:%d")
	}
}

func floats(d tensor.DType) func(data []byte, n int) [][]byte {
	return func(data []byte, n int) [][]byte {
		values := make([]float64, len(data)/d.Size())
		tensor.Loader[float64](d)(values, data)
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
