package goengine

import (
	"math"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/floats"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/frame"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/numbers"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// plainLoop computes a node with a filter by the definition, as products of rows of the input and columns of the filter. Quantized
// elements are integers in float32.
type plainLoop struct{}

// plainProduct is such a node: for each row of the output, in each group, the products of a row of k numbers and n columns.
type plainProduct struct {
	rows, groups, k, n int
	row                func(dst []float32, group, at int)
	matrices           int
	matrix             func(group, at int) int // that row at of a group is multiplied by
	weight             func(m, i, j int) int   // the index of element i of column j of a matrix
	token              func(at int) int        // the group of dynamically quantized elements of row at, of so many
}

func plainOfNode(e *frame.Frame, n *graph.Node) plainProduct {
	x, in, out := factors(e, 0, n.In[0]), e.Shapes[n.In[0]], e.Shapes[n.Out[0]]
	flipped := n.Flags&graph.FlagTransposeWeights != 0
	p := plainProduct{rows: out.Numel() / out.Last(), groups: 1, k: in.Last(), n: out.Last(), matrices: 1}
	p.token = func(at int) int { return at * len(e.Tokens[n.In[0]]) / p.rows }
	p.matrix = func(group, _ int) int { return group }
	switch w := n.Window(); {
	case n.Type.Tag == graph.TagBatchMatrixMultiply:
		m, b := out.FromEnd(1), e.Shapes[n.In[1]]
		p.matrices, flipped = b.Leading(b.Rank-2), !flipped
		p.token = func(at int) int { return frame.BatchOffset(at/m, out, in)*m + at%m }
		p.matrix = func(_, at int) int { return frame.BatchOffset(at/m, out, b) }
		p.row = func(dst []float32, _, at int) { copy(dst, x[p.token(at)*p.k:]) }
	case w == nil:
		p.k = n.InputChannels(e.Graph)
		p.row = func(dst []float32, _, at int) { copy(dst, x[at*p.k:]) }
	default:
		windows := frame.RowsOf(n, in, out, x)
		p.groups, p.matrices, p.k, p.n = w.Groups, w.Groups, w.KernelH*w.KernelW*w.GroupIn, w.GroupOut
		p.row = func(dst []float32, group, at int) { windows.Gather(dst, group, at, 0, 0) }
	}
	p.weight = func(m, i, j int) int { return (m*p.n+j)*p.k + i }
	if flipped {
		p.weight = func(m, i, j int) int { return (m*p.k+i)*p.n + j }
	} else if n.Type.Tag == graph.TagDepthwiseConv2d {
		p.weight = func(m, i, j int) int { return (i*p.groups+m)*p.n + j }
	}
	return p
}

func (plainLoop) Bind(*frame.Frame, *graph.Node) {}

func (plainLoop) Compute(e *frame.Frame, n *graph.Node) {
	p, weights := plainOfNode(e, n), integerWeights(e, n.In[1])
	columns, row := make([]float32, p.matrices*p.n*p.k), make([]float32, p.k)
	for i := range columns {
		columns[i] = weights[p.weight(i/p.k/p.n, i%p.k, i/p.k%p.n)]
	}
	out := e.Graph.Values[n.Out[0]].Datatype
	quantized := out == graph.QInt8 || out == graph.QUInt8
	y, bias := e.Result(n.Out[0]), make([]float32, p.groups*p.n)
	if !quantized && len(n.In) > 2 && n.In[2] != graph.None {
		e.Decode(bias, n.In[2])
	}
	for at := range p.rows * p.groups {
		p.row(row, at%p.groups, at/p.groups)
		for j := range p.n {
			column := columns[(p.matrix(at%p.groups, at/p.groups)*p.n+j)*p.k:][:p.k]
			sum, to := plainSum(e, n, row, column, at%p.groups*p.n+j), at*p.n+j
			if quantized {
				e.Data[n.Out[0]][to] = requantized(e, n, sum, at%p.groups*p.n+j)
			} else {
				y[to] = plainNumber(e, n, float32(sum), at%p.groups*p.n+j, p.token(at/p.groups)) + bias[at%p.groups*p.n+j]
			}
		}
	}
	if quantized {
		return
	}
	frame.BoundFloats(n, y)
	if n.Then != nil {
		frame.Elements[n.Then.Type.Tag].Apply(n.Then, y, y)
	}
	e.Store(n.Out[0])
}

// exactTerms is of how many products of 8-bit numbers sums are exact in float32.
const exactTerms = 512

// plainSum multiplies a row by a column of a channel. Elements of groups are multiplied by their scales.
func plainSum(e *frame.Frame, n *graph.Node, row, column []float32, channel int) (sum float64) {
	q := &e.Graph.Values[n.In[1]].Quant
	step := exactTerms
	if len(q.Blocks) > 0 {
		step = q.GroupSize
	}
	for k := 0; k < len(row); k += step {
		part, end := 0.0, min(len(row), k+step)
		for from := k; from < end; from += exactTerms {
			to := min(end, from+exactTerms)
			part += float64(simd.Dot(row[from:to], column[from:to]))
		}
		if len(q.Blocks) > 0 {
			part *= float64(math.Float32frombits(uint32(q.Blocks[channel*(len(row)/step)+k/step]) << 16))
		}
		sum += part
	}
	return sum
}

// plainScale returns the scale of a channel of a filter, 1 if groups have scales of their own, or it has none.
func plainScale(x *graph.Value, channel int) float32 {
	switch x.Datatype.Info().Quant {
	case graph.PerTensor:
		return x.Quant.Scale
	case graph.PerChannel:
		return x.Quant.Scales[channel]
	}
	return 1
}

// requantized returns the element of a sum of a channel.
func requantized(e *frame.Frame, n *graph.Node, sum float64, channel int) byte {
	if n.In[2] != graph.None {
		sum += float64(tensor.View[int32](e.Data[n.In[2]])[channel])
	}
	r := numbers.RequantizerOf(e.Graph, n)
	q := r.Quantized(true)
	return byte(graph.Quantize(float32(sum)*r.Scale(plainScale(&e.Graph.Values[n.In[1]], channel)), q.Zero, q.Lo, q.Hi))
}

// plainNumber returns the number of a sum of a channel, without the bias.
func plainNumber(e *frame.Frame, n *graph.Node, sum float32, channel, token int) float32 {
	if e.Graph.Values[n.In[0]].Datatype == graph.QDInt8 {
		sum *= e.Tokens[n.In[0]][token].Scale
	}
	return float32(sum * plainScale(&e.Graph.Values[n.In[1]], channel))
}

// integerWeights returns the weights of a filter: integers, less the zero point, if they are quantized.
func integerWeights(e *frame.Frame, v int) []float32 {
	x, list := e.Graph.Values[v], make([]float32, e.Shapes[v].Numel())
	if len(x.Quant.Blocks)+len(x.Quant.Scales) == 0 {
		return factors(e, 2, v)
	}
	x.Quant.Scales, x.Quant.Blocks = ones(x.Quant.Scales, 1), ones(x.Quant.Blocks, 0x3f80)
	(&numbers.Values{Graph: &graph.Graph{Values: []graph.Value{x}}, Shapes: e.Shapes[v:][:1], Data: e.Data[v:][:1]}).Decode(list, 0)
	return list
}

// ones returns as many elements of a scale of 1.
func ones[T any](scales []T, one T) []T {
	list := make([]T, len(scales))
	for i := range list {
		list[i] = one
	}
	return list
}

// plainTokens quantizes groups of elements, each with its own scale.
type plainTokens struct{}

func (plainTokens) Bind(*frame.Frame, *graph.Node) {}

func (plainTokens) Compute(e *frame.Frame, n *graph.Node) {
	v, x, half := n.Out[0], e.Load(0, n.In[0]), e.Graph.Values[n.In[0]].Datatype == graph.FP16
	s := e.Shapes[v]
	groups := s.Leading(s.Rank - e.Graph.Values[v].Quant.Nonbatch)
	e.Tokens[v] = pack.Grow(e.Tokens[v], groups)
	out, size := tensor.View[int8](e.Data[v]), len(x)/groups
	for g := range groups {
		t := numbers.DynamicToken(x[g*size : (g+1)*size])
		e.Tokens[v][g] = t
		scale := numbers.Reciprocal(t, half)
		for i, f := range x[g*size : (g+1)*size] {
			out[g*size+i] = int8(graph.Quantize(f*scale, t.Zero, -128, 127))
		}
	}
}

// newPlainUnit returns a unit of an image with the plain loops, with which tests compare the others: products and elements are
// computed on numbers.
func newPlainUnit(m *Image, in delegate.Instance) *unit {
	e := newUnit(m, in)
	for i := range e.steps {
		if l := plainOf(e.steps[i].node, &e.Frame); l != nil {
			e.steps[i].loop = l
		}
	}
	return e
}

// byteProducts returns the number of nodes whose loops multiply bytes.
func byteProducts(e *unit) (n int) {
	for i := range e.steps {
		if _, ok := e.steps[i].loop.(frame.Planner); ok {
			n++
		}
	}
	return n
}

// plainOf returns the plain loop of a node, nil for none.
func plainOf(n *graph.Node, e *frame.Frame) frame.Loop {
	switch {
	case n.Type.Packs:
		return plainLoop{}
	case n.Type.Tag == graph.TagConvert && e.Graph.Values[n.Out[0]].Datatype == graph.QDInt8:
		return plainTokens{}
	case frame.Elements[n.Type.Tag].Cost > 0:
		return floats.Unary(e, n)
	case n.Type.IsIn(graph.BinaryNodes):
		return floats.Binary(e, n)
	case n.Type.Tag == graph.TagMaxPooling2d:
		return floats.MaxPool(e, n)
	}
	return nil
}

// factors returns the elements of a value as floats for products: the numbers of float values, and
// the differences from the zero point for quantized ones.
func factors(e *frame.Frame, slot, v int) []float32 {
	x := &e.Graph.Values[v]
	n := e.Shapes[v].Numel()
	switch x.Datatype {
	case graph.QInt8:
		e.Slots[slot] = pack.Grow(e.Slots[slot], n)
		for i, q := range tensor.View[int8](e.Data[v])[:n] {
			e.Slots[slot][i] = float32(int32(q) - x.Quant.ZeroPoint)
		}
	case graph.QUInt8:
		e.Slots[slot] = pack.Grow(e.Slots[slot], n)
		for i, q := range e.Data[v][:n] {
			e.Slots[slot][i] = float32(int32(q) - x.Quant.ZeroPoint)
		}
	case graph.QDInt8:
		e.Slots[slot] = pack.Grow(e.Slots[slot], n)
		each := n / len(e.Tokens[v])
		for i, q := range tensor.View[int8](e.Data[v])[:n] {
			e.Slots[slot][i] = float32(int32(q) - e.Tokens[v][i/each].Zero)
		}
	default:
		return e.Load(slot, v)
	}
	return e.Slots[slot]
}
