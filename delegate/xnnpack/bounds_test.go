package xnnpack

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// bounds are the largest differences, per value and in dequantized numbers, between two engines
// that compute every node within its tolerance. They are 0 at the inputs. A node multiplies its
// inputs' bounds by its largest amplification and adds its own tolerance: none for data movement,
// selection and sums of quantized products, a step for other quantized results, rounding errors for
// floats. A difference of less than a step may still change a quantized result by a step.
// The bound is infinite, and nothing is compared, if a difference grows without limit (a logarithm
// or quotient of inexact numbers), and after numbers that are not finite or whose sums may overflow.
type bounds struct {
	graph  *graph.Graph
	shapes []graph.Shape
	run    map[int]*tensor.Tensor // arguments and values between nodes after a run
	err    []float64
	most   []float64 // largest magnitude of a value's numbers, infinite if one is not finite
	least  []float64 // smallest number
	small  []float64 // smallest magnitude
	known  []bool    // whether most, least and small are set
}

var infinity = math.Inf(1)

// boundsOf computes the bounds of all values of a run of the Go engine.
func boundsOf(g *graph.Graph, shapes []graph.Shape, run map[int]*tensor.Tensor) *bounds {
	n := len(g.Values)
	b := &bounds{graph: g, shapes: shapes, run: run, err: make([]float64, n), most: make([]float64, n), least: make([]float64, n),
		small: make([]float64, n), known: make([]bool, n)}
	for i := range g.Nodes {
		b.node(&g.Nodes[i])
	}
	return b
}

// numbers returns a value's dequantized elements.
func (b *bounds) numbers(v int) []float32 {
	x := &b.graph.Values[v]
	out := make([]float32, b.shapes[v].Numel())
	switch x.Datatype {
	case graph.QDInt8: // those that are quantized, and up to half a step more
		for i := range b.graph.Nodes {
			if n := &b.graph.Nodes[i]; n.Out[0] == v {
				copy(out, b.numbers(n.In[0]))
			}
		}
		for i := range out {
			out[i] *= 1 + 1.0/127
		}
	case graph.QCInt4:
		spread(out, 8*slices.Max(x.Quant.Scales))
	case graph.QBInt4:
		for _, s := range x.Quant.Blocks {
			spread(out, max(out[0], 8*math.Float32frombits(uint32(s)<<16)))
		}
	default:
		if x.IsConst() {
			constantNumbers(out, x)
			break
		}
		for i, q := range graphtest.NumbersOf(b.run[v]) {
			if out[i] = float32(q); x.Datatype.Info().Quant == graph.PerTensor {
				out[i] = (out[i] - float32(x.Quant.ZeroPoint)) * x.Quant.Scale
			}
		}
	}
	return out
}

// constantNumbers decodes a constant. Biases of sums are integers.
func constantNumbers(out []float32, x *graph.Value) {
	switch {
	case x.Datatype.IsFloat():
		graph.DecodeFloats(out, x.Datatype, x.Data)
	case x.Datatype == graph.Int32 || x.Datatype == graph.QInt32 || x.Datatype == graph.QCInt32:
		for i, q := range tensor.View[int32](x.Data)[:len(out)] {
			out[i] = float32(q)
		}
	default:
		copy(out, tensor.View[float32](x.Dequantized()))
	}
}

func spread(out []float32, x float32) {
	for i := range out {
		out[i] = x
	}
}

// magnitude returns the largest magnitude of a value's numbers.
func (b *bounds) magnitude(v int) float64 {
	if !b.known[v] {
		b.known[v], b.least[v], b.small[v] = true, infinity, infinity
		for _, x := range b.numbers(v) {
			if x != x {
				b.most[v] = infinity
			}
			b.most[v] = max(b.most[v], math.Abs(float64(x)))
			b.least[v], b.small[v] = min(b.least[v], float64(x)), min(b.small[v], math.Abs(float64(x)))
		}
	}
	return b.most[v]
}

// within reports whether all numbers of a node's values, and sum, are far from the largest number of
// their datatypes.
func (b *bounds) within(n *graph.Node, sum float64) bool {
	limit := 1e37
	for _, list := range [2][]int{n.In, n.Out} {
		for _, v := range list {
			if v == graph.None {
				continue
			}
			if b.graph.Values[v].Datatype == graph.FP16 {
				limit = min(limit, 6e4)
			}
			sum = max(sum, b.magnitude(v))
		}
	}
	return sum < limit
}

// largeOperand is the largest operand of functions whose results are compared: beyond it some of
// the library's approximations return NaN.
const largeOperand = 1e4

// denormal is the smallest normal float32. The library treats smaller numbers as 0.
const denormal = 0x1p-126

// denormal16 is the smallest normal float16.
const denormal16 = 0x1p-14

// flushed is the largest change of a selecting node's result if denormal numbers are treated as 0
// or its bounds are rounded to half precision.
func (b *bounds) flushed(n *graph.Node) float64 {
	d := b.graph.Values[n.Out[0]].Datatype
	if half := d == graph.FP16 || d == graph.BF16; selecting[n.Type.Name] && half && (n.Min > -graph.Inf || n.Max < graph.Inf) {
		return roundings[d] * max(b.magnitude(n.Out[0]), denormal16)
	}
	if !selecting[n.Type.Name] || d != graph.FP32 {
		return 0
	}
	for _, v := range append(slices.Clone(n.In), n.Out...) {
		for _, x := range b.numbers(v) {
			if x != 0 && math.Abs(float64(x)) < denormal {
				return denormal
			}
		}
	}
	return 0
}

// regular reports whether a node's function is defined and continuous at its operands, with an error
// of up to e. The library treats denormal numbers as 0.
func (b *bounds) regular(n *graph.Node, e float64) bool {
	switch n.Type.Name {
	case "Floor", "Ceiling":
		for _, x := range b.numbers(n.In[0]) {
			if x != 0 && math.Abs(float64(x)) < denormal {
				return false
			}
		}
	case "SquareRoot":
		b.magnitude(n.In[0])
		return b.least[n.In[0]] >= e
	case "Log", "ReciprocalSquareRoot":
		b.magnitude(n.In[0])
		return b.least[n.In[0]] >= denormal
	case "Div":
		b.magnitude(n.In[1])
		return b.small[n.In[1]] >= denormal
	}
	return true
}

// roundings are the tolerances of floats, relative to the largest number a node reads or writes.
var roundings = map[graph.Datatype]float64{graph.FP32: 8e-6, graph.FP16: 8e-3, graph.BF16: 1.6e-2}

func (b *bounds) node(n *graph.Node) {
	e, out := 0.0, n.Out[0]
	for _, v := range n.In {
		if v != graph.None {
			e = max(e, b.err[v])
		}
	}
	g := b.graph
	exact := b.moves(n)
	switch {
	case exact:
		e += b.flushed(n)
	case !b.within(n, 0) || !b.regular(n, e) || math.IsInf(e, 1):
		e = infinity
	case hasWeights(n) || n.Type.Name == "BatchMatrixMultiply":
		e = b.weighted(n, e)
		exact = g.Values[n.In[0]].Datatype.Info().Quant == graph.PerTensor
	case isBinary(n):
		e = b.binary(n)
	default:
		e = amplify(n, e, b.magnitude(n.In[0]))
	}
	for _, v := range n.Out {
		b.err[v] = b.rounded(n, v, e, exact)
	}
	if n.Type.Name == "ArgMaxPooling2d" && e > 0 {
		b.err[n.Out[1]] = infinity
	}
	if exact && g.Values[out].Datatype.Info().Quant != graph.PerTensor {
		b.err[out] = e
	}
}

// moving nodes copy elements unchanged; selecting nodes compare elements and copy some of them.
var (
	moving    = map[string]bool{"StaticTranspose": true, "StaticReshape": true, "StaticSlice": true, "StaticConstantPad": true, "Copy": true}
	selecting = map[string]bool{"Clamp": true, "MaxPooling2d": true, "Minimum": true, "Maximum": true, "ArgMaxPooling2d": true}
)

// moves reports whether a node moves or selects elements without changing them.
func (b *bounds) moves(n *graph.Node) bool {
	if strings.HasPrefix(n.Type.Name, "Concatenate") {
		return true
	}
	if moving[n.Type.Name] {
		return true
	}
	if selecting[n.Type.Name] {
		for _, v := range n.In {
			x, y := &b.graph.Values[v].Quant, &b.graph.Values[n.Out[0]].Quant
			if x.Scale != y.Scale || x.ZeroPoint != y.ZeroPoint || !b.within(n, 0) {
				return false
			}
		}
		return true
	}
	return false
}

// rounded adds a node's tolerance to the difference e of a result.
func (b *bounds) rounded(n *graph.Node, v int, e float64, exact bool) float64 {
	x := &b.graph.Values[v]
	if math.IsInf(e, 1) {
		return e
	}
	switch x.Datatype.Info().Quant {
	case graph.PerTensor:
		steps := 1.0
		if exact {
			steps = 0
		}
		if scale := float64(x.Quant.Scale); e > 0 {
			steps += math.Floor(e/scale*1.0001) + 1
		}
		return steps * float64(x.Quant.Scale)
	case graph.PerToken: // a step: a 255th of the range of the numbers
		if e > 0 || b.graph.Values[n.In[0]].Datatype == graph.FP16 {
			return e + 2*(b.magnitude(n.In[0])+e)/127
		}
		return 0
	}
	if exact {
		return e
	}
	most := 1e-3
	for _, in := range n.In {
		if in != graph.None && !hasWeights(n) {
			most = max(most, b.magnitude(in))
		}
	}
	if n.Type.Tag == graph.TagResizeBilinear2D || n.Type.Tag == graph.TagResizePlanes { // positions are computed in float32
		in := b.shapes[n.In[0]]
		e += 0x1p-20 * float64(max(in.Dim[1], in.Dim[2])) * most
	}
	return e + roundings[x.Datatype]*max(most, b.magnitude(v))
}

// amplify returns the largest difference between results of a function of one operand, if the
// operands are up to most and differ by up to e.
func amplify(n *graph.Node, e, most float64) float64 {
	switch n.Type.Name {
	case "Sin", "Cos":
		if most > 1e3 {
			return infinity
		}
	case "Sigmoid", "Tanh":
		if most > largeOperand {
			return infinity
		}
	case "Hardswish", "Gelu":
		if most > largeOperand {
			return infinity
		}
		return 1.5 * e
	case "Softmax":
		return 2 * e
	case "LeakyReLU", "ELU": // a small factor of a large one may become 0
		return (e + denormal) * max(1, math.Abs(float64(graph.Params[graph.ScalarParams](n).Value)))
	case "Square":
		return e * (2*most + e)
	case "Exp":
		if most > 80 {
			return infinity
		}
		return math.Exp(most) * math.Expm1(e)
	case "SquareRoot":
		return math.Sqrt(e)
	case "Floor", "Ceiling":
		if e > 0 {
			return e + 1
		}
	case "Log", "ReciprocalSquareRoot":
		if e > 0 {
			return infinity
		}
	}
	return e
}

func (b *bounds) binary(n *graph.Node) float64 {
	x, y := n.In[0], n.In[1]
	ex, ey := b.err[x], b.err[y]
	switch n.Type.Name {
	case "Add", "Subtract":
		return ex + ey
	case "Multiply":
		return ex*b.magnitude(y) + ey*b.magnitude(x) + ex*ey
	case "PReLU":
		return ex*max(1, b.magnitude(y)) + ey*(b.magnitude(x)+ex)
	case "Div":
		if ex+ey > 0 {
			return infinity
		}
	}
	return max(ex, ey)
}

// weighted returns the largest difference between sums of products if the inputs differ by up to e.
// It includes the rounding errors of float sums.
func (b *bounds) weighted(n *graph.Node, e float64) float64 {
	g := b.graph
	x, k, rows := b.magnitude(n.In[0]), b.terms(n), b.rowSum(n)
	bias := 0.0
	if len(n.In) == 3 && n.In[2] != graph.None {
		bias = b.magnitude(n.In[2])
	}
	if g.Values[n.In[0]].Datatype.Info().Quant == graph.PerTensor { // int32 sums
		if sum := bias + k*255*255; max(1, b.ratio(n))*sum > math.MaxInt32 {
			return infinity
		}
		return e * rows
	}
	sum := rows*x + bias
	if !b.within(n, sum) {
		return infinity
	}
	unit := 4e-7
	if g.Values[n.Out[0]].Datatype == graph.FP16 || g.Values[n.In[0]].Datatype == graph.FP16 {
		unit = 2e-3 // some processors accumulate in half precision
	}
	e = e*rows + b.err[n.In[1]]*k*(x+e) + unit*(k+8)*sum
	if len(n.In) == 3 && n.In[2] != graph.None {
		e += b.err[n.In[2]]
	}
	return e
}

// ratio is the largest factor from a node's int32 sums to its output's elements.
func (b *bounds) ratio(n *graph.Node) float64 {
	x, f, y := &b.graph.Values[n.In[0]].Quant, &b.graph.Values[n.In[1]].Quant, &b.graph.Values[n.Out[0]].Quant
	largest := f.Scale
	for _, s := range f.Scales {
		largest = max(largest, s)
	}
	return float64(x.Scale) * float64(largest) / float64(y.Scale)
}

// terms is the number of products per sum of a node with weights.
func (b *bounds) terms(n *graph.Node) float64 {
	f := b.shapes[n.In[1]]
	switch {
	case n.Type.Tag == graph.TagDepthwiseConv2d:
		return float64(f.Dim[1] * f.Dim[2])
	case n.Type.Convolution:
		return float64(f.Trailing(1))
	}
	return float64(b.shapes[n.In[0]].Last())
}

// rowSum is the largest sum of the magnitudes of an output channel's weights.
func (b *bounds) rowSum(n *graph.Node) float64 {
	f, w := b.shapes[n.In[1]], b.numbers(n.In[1])
	transposed := n.Type.Tag == graph.TagFullyConnected && n.Flags&graph.FlagTransposeWeights != 0
	if !hasWeights(n) {
		return b.terms(n) * b.magnitude(n.In[1])
	}
	channels := f.Dim[0]
	strided := transposed || n.Type.Tag == graph.TagDepthwiseConv2d
	if strided {
		channels = f.Last()
	}
	sums := make([]float64, channels)
	for i, x := range w {
		c := i / (len(w) / channels)
		if strided {
			c = i % channels
		}
		sums[c] += math.Abs(float64(x))
	}
	return slices.Max(sums)
}

// proven is the number of outputs with a finite bound.
func (b *bounds) proven() (n int) {
	for _, v := range b.graph.Args[b.graph.Inputs:] {
		if !math.IsInf(b.err[v], 1) {
			n++
		}
	}
	return n
}

// compare returns an error for the first output element whose difference from the reference
// exceeds the bound.
func (b *bounds) compare(got, want []*tensor.Value) error {
	g := b.graph
	for i := g.Inputs; i < len(g.Args); i++ {
		x, y := got[i].Tensor, want[i].Tensor
		if !slices.Equal(x.Sizes, y.Sizes) {
			return fmt.Errorf("output %d: got sizes %v, want %v", i-g.Inputs, x.Sizes, y.Sizes)
		}
		v := g.Args[i]
		allowed := b.err[v]
		if math.IsInf(allowed, 1) {
			continue
		}
		if q := &g.Values[v].Quant; g.Values[v].Datatype.Info().Quant == graph.PerTensor && allowed > 0 {
			allowed = math.Round(allowed / float64(q.Scale))
		}
		xs, ys := graphtest.NumbersOf(x), graphtest.NumbersOf(y)
		for j := range ys {
			if xs[j] == ys[j] || math.Abs(xs[j]-ys[j]) <= allowed || math.IsNaN(xs[j]) && math.IsNaN(ys[j]) {
				continue
			}
			return fmt.Errorf("output %d, element %d: native %v, reference %v, difference %g, allowed %g",
				i-g.Inputs, j, xs[j], ys[j], math.Abs(xs[j]-ys[j]), allowed)
		}
	}
	return nil
}
