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
		d, ok := out.Datatype.DType()
		if !ok || out.Datatype == "BOOL" {
			return requestError("output %q: classification of %s, want numbers", out.Name, out.Datatype)
		}
		rows, shape := 1, []int(nil)
		if len(out.Shape) > 1 {
			rows, shape = out.Shape[0], []int{out.Shape[0]}
		}
		texts, n := [][]byte{}, 0
		if total := len(out.Data) / d.Size(); total > 0 {
			size := total / rows * d.Size()
			n = min(w.classes, total/rows)
			for row := range slices.Chunk(out.Data, size) {
				texts = append(texts, largest(row, d, n)...)
			}
		}
		*out = oip.Tensor{Name: out.Name, Datatype: oip.Bytes, Shape: append(shape, n), Texts: texts, Binary: out.Binary}
	}
	return nil
}

// largest describes the n largest elements. NaN is the smallest.
func largest(data []byte, d tensor.DType, n int) (texts [][]byte) {
	values := make([]float64, len(data)/d.Size())
	order := make([]int32, len(values))
	for i := range values {
		values[i], _ = tensor.Get[float64](data[i*d.Size():], d)
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(values[b], values[a]) })
	for _, i := range order[:n] {
		texts = append(texts, fmt.Appendf(nil, "%f:%d", values[i], i))
	}
	return texts
}
