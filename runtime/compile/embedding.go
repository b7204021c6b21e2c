package compile

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/tree"
)

// Embeddings are rows of a table of floats. As 8-bit integers with a scale for each row they are read by another operator, which the
// quantized kernels of ExecuTorch have since 1.0.

const (
	embeddingOp  = "aten::embedding.out"
	embedding8Op = "quantized_decomposed::embedding_byte"
)

// embeddings returns the calls of a method whose tables are quantized, by chain and instruction: those of an operator all of whose calls
// have a constant table. named returns whether a call is quantized, by its name.
func (w *writer) embeddings(m *pte.Method, named func(string) bool) (calls map[[2]int]int, names []string) {
	calls = make(map[[2]int]int)
	for op := range m.Operators {
		if m.Operators[op].FullName() != embeddingOp {
			continue
		}
		found, list := make(map[[2]int]int), []string(nil)
		for c := range m.Chains {
			for i := range m.Chains[c].Instructions {
				in := &m.Chains[c].Instructions[i]
				if in.Kind != pte.KernelCall || in.Index != op {
					continue
				}
				name := fmt.Sprintf("%s:embedding:%d:%d", m.Name, c, i)
				if len(in.Args) != 7 || !w.isTable(m, in.Args) || !named(name) {
					found, list = nil, nil
					break
				}
				found[[2]int{c, i}] = op
				list = append(list, name)
			}
			if found == nil {
				break
			}
		}
		maps.Copy(calls, found)
		names = append(names, list...)
	}
	return calls, names
}

// isTable reports whether the table of an embedding is constant, and the types are those of the other operator.
func (w *writer) isTable(m *pte.Method, args []int) bool {
	for _, k := range []int{0, 1, 5} {
		if args[k] < 0 || m.Values[args[k]].Kind != tensor.KindTensor {
			return false
		}
	}
	t := m.Values[args[0]].Tensor
	spec := w.argSpec(m, args[0])
	n := int64(len(spec.Const))
	if t.DType != tensor.Float32 || len(t.Sizes) != 2 || n == 0 || n != t.NBytes() || !slices.IsSorted(t.DimOrder) {
		return false
	}
	for _, x := range floatsOf(spec.Const) {
		if x-x != 0 {
			return false
		}
	}
	return m.Values[args[1]].Tensor.DType == tensor.Int64 && m.Values[args[5]].Tensor.DType == tensor.Float32
}

// floatsOf returns the elements of a constant, which may have any alignment.
func floatsOf(data []byte) []float32 {
	if !tensor.Aligned(data, 4) {
		data = append(tensor.AlignedBytes(len(data))[:0], data...)
	}
	return tensor.View[float32](data)
}

// leastRowScale is the scale of rows of zeros, and the smallest one.
const leastRowScale = 0x1p-40

// rows8 quantizes the rows of a table.
func rows8(table []float32, rows int) (data []byte, scales []float32) {
	data, scales = make([]byte, len(table)), make([]float32, rows)
	n := len(table) / rows
	for r := range rows {
		row, most := table[r*n:][:n], float32(0)
		for _, x := range row {
			most = max(most, x, -x)
		}
		scales[r] = max(most/127, leastRowScale)
		for i, x := range row {
			data[r*n+i] = byte(int8(min(max(math.RoundToEven(float64(x/scales[r])), -127), 127)))
		}
	}
	return data, scales
}

// embedding8 returns the values of a quantized table, and its limits, which become values first, first+1, …, and the
// arguments of the call.
func (w *writer) embedding8(m *pte.Method, args []int, first int) (values []*tree.Node, to []tree.Scalar) {
	t := m.Values[args[0]].Tensor
	data, scales := rows8(floatsOf(w.argSpec(m, args[0]).Const), t.Sizes[0])
	number := func(x int) *tree.Node { return evalue(tree.New("Int").With("int_val", tree.Scalar(x))) }
	values = []*tree.Node{
		w.constant(tensorNode(tensor.Int8, t.Sizes, nil), data),
		w.constant(tensorNode(tensor.Float32, t.Sizes[:1], nil), tensor.BytesOf(scales)),
		evalue(tree.New("Null")), number(math.MinInt8), number(math.MaxInt8),
	}
	for i := range values {
		to = append(to, tree.Scalar(first+i))
	}
	return values, append(to, tree.Scalar(args[1]), tree.Scalar(args[5]), tree.Scalar(args[6]))
}
