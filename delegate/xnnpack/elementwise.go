package xnnpack

import (
	"math"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/internal/simd"
)

var inf = float32(math.Inf(1))

// Tags used elsewhere.
const (
	tagSigmoid  = 4
	tagClamp    = 6
	tagMultiply = 15
	tagConvert  = 18
	tagPReLU    = 31
	tagCopy     = 46
)

// unaryNodes are functions of one operand, element by element.
var unaryNodes = []nodeType{
	unaryNode(tagSigmoid, "Sigmoid", xnn.Sigmoid, simd.Sigmoid),
	clampNode(tagClamp, "Clamp"),
	unaryNode(17, "Floor", xnn.Floor, simd.Floor),
	convertNode(tagConvert, "Convert"),
	unaryNode(22, "SquareRoot", xnn.SquareRoot, simd.Sqrt),
	unaryNode(23, "Ceiling", xnn.Ceiling, simd.Ceil),
	unaryNode(24, "Hardswish", xnn.Hardswish, simd.HardswishProduct),
	limited(unaryParamNode(25, "LeakyReLU", "negative_slope", xnn.LeakyReLU, simd.LeakyReLU), every(finiteScalar, leakyLimits)),
	unaryNode(27, "Negate", xnn.Negate, simd.Neg),
	unaryNode(28, "Square", xnn.Square, func(dst, src []float32) { simd.Mul(dst, src, src) }),
	unaryParamNode(29, "ELU", "alpha", xnn.ELU, elu),
	unaryNode(30, "Abs", xnn.Abs, simd.Abs),
	unaryNode(40, "ReciprocalSquareRoot", xnn.ReciprocalSquareRoot, simd.Rsqrt),
	unaryNode(41, "Log", xnn.Log, simd.Log),
	unaryNode(42, "Gelu", xnn.Gelu, simd.GELU),
	unaryNode(43, "Tanh", xnn.Tanh, simd.Tanh),
	unaryNode(44, "Exp", xnn.Exp, simd.Exp),
	unaryNode(45, "Sin", xnn.Sine, simd.Sin),
	unaryNode(47, "Cos", xnn.Cosine, simd.Cos),
}

func elu(dst, src []float32, alpha float32) { simd.ELU(dst, src, alpha, 1, 1) }

// unaryNode returns the table entry of a function without parameters.
func unaryNode(tag uint8, name string, op xnn.UnaryOperator, f func(dst, src []float32)) nodeType {
	each := func(_ *node, dst, src []float32) { f(dst, src) }
	return nodeType{tag: tag, name: name, read: readUnary, check: checkUnary, shape: sameShape, inPlace: true, cost: transcendental,
		elements: each,
		define:   func(b *builder, n *node) call { return b.unary(op, nil, n) },
		work:     elementWork,
		run:      func(e *reference, n *node) { e.mapUnary(n, 8, each) }}
}

// unaryParamNode returns the table entry of a function with one parameter.
func unaryParamNode(tag uint8, name, param string, op xnn.UnaryOperator, f func(dst, src []float32, p float32)) nodeType {
	each := func(n *node, dst, src []float32) { f(dst, src, params[scalarParams](n).value) }
	return nodeType{tag: tag, name: name, read: readUnaryParam(param), check: checkUnary, shape: sameShape, inPlace: true,
		native: finiteScalar, params: newParams[scalarParams], elements: each,
		define: func(b *builder, n *node) call { return b.unary(op, &xnn.UnaryParams{params[scalarParams](n).value}, n) },
		work:   elementWork,
		run:    func(e *reference, n *node) { e.mapUnary(n, 4, each) }}
}

func clampNode(tag uint8, name string) nodeType {
	return nodeType{tag: tag, name: name, read: readUnary, check: checkUnary, shape: sameShape, inPlace: true, bounded: true,
		native: every(sameQuantization, boundLimits),
		define: func(b *builder, n *node) call { return b.unary(xnn.Clamp, &xnn.UnaryParams{n.Min, n.Max}, n) },
		work:   elementWork,
		run:    func(e *reference, n *node) { e.mapUnary(n, 1, clampElements) }}
}

func clampElements(n *node, dst, src []float32) { simd.Clamp(dst, src, n.Min, n.Max) }

// bound clamps numbers to the node's bounds, in place.
func (n *node) bound(x []float32) {
	if n.Min == -inf && n.Max == inf {
		return
	}
	simd.Clamp(x, x, n.Min, n.Max)
}

// convertNode returns the table entry of a conversion to another datatype. For dynamically quantized
// outputs, scale and zero point of each group of inner dimensions are computed first.
func convertNode(tag uint8, name string) nodeType {
	return nodeType{tag: tag, name: name, read: readUnary, shape: convertShape, inPlace: true, native: convertLimits,
		check: func(g *graph, n *node) error {
			in, out := n.In[0], n.Out[0]
			if err := wantDatatype(g, n, in, elementwiseTypes...); err != nil {
				return err
			}
			if g.Values[out].Datatype == qdint8 {
				return wantDatatype(g, n, in, fp32, fp16)
			}
			return wantDatatype(g, n, out, elementwiseTypes...)
		},
		define: func(b *builder, n *node) call { return b.unary(xnn.Convert, nil, n) },
		work:   convertWork,
		run: func(e *reference, n *node) {
			if e.int8Convert(n) {
				return
			}
			x := e.load(0, n.In[0])
			if e.graph.Values[n.Out[0]].Datatype == qdint8 {
				e.quantizeDynamic(n.Out[0], x, e.graph.Values[n.In[0]].Datatype == fp16)
				return
			}
			copy(e.result(n.Out[0]), x)
			e.store(n.Out[0])
		}}
}

func convertShape(g *graph, n *node, s []shape) error {
	s[n.Out[0]] = s[n.In[0]]
	if k := g.Values[n.Out[0]].Quant.Nonbatch; k > s[n.In[0]].rank {
		return n.fault("%d dimensions share a scale, of an input of sizes %v", k, s[n.In[0]])
	}
	return nil
}

// checkUnary requires that input and output have the same datatype; quantizations may differ.
func checkUnary(g *graph, n *node) error {
	if err := wantDatatype(g, n, n.In[0], elementwiseTypes...); err != nil {
		return err
	}
	return wantDatatype(g, n, n.Out[0], g.Values[n.In[0]].Datatype)
}

func sameShape(_ *graph, n *node, s []shape) error {
	s[n.Out[0]] = s[n.In[0]]
	return nil
}

// transcendental returns the cost of transcendental functions, about eight multiplications per
// element.
func transcendental(_ *graph, n *node, s []shape) int64 { return times(8, s[n.Out[0]].numel()) }

// binaryNodes are functions of two broadcast operands.
var binaryNodes = []nodeType{
	limited(binaryNode(1, "Add", xnn.Add, true, simd.Add), every(sumLimits, boundLimits)),
	limited(binaryNode(8, "Div", xnn.Divide, true, simd.Div), boundLimits),
	binaryNode(12, "Minimum", xnn.Minimum, false, simd.Minimum),
	limited(binaryNode(tagMultiply, "Multiply", xnn.Multiply, true, simd.Mul), every(productLimits, boundLimits)),
	limited(binaryNode(16, "Subtract", xnn.Subtract, true, simd.Sub), every(sumLimits, boundLimits)),
	binaryNode(26, "Maximum", xnn.Maximum, false, simd.Maximum),
	binaryNode(tagPReLU, "PReLU", xnn.PReLU, false, simd.PReLU),
}

// limited returns the table entry with another rule for the library.
func limited(t nodeType, native rule) nodeType {
	t.native = native
	return t
}

// binaryNode returns the table entry of a function. Bounded functions clamp their output.
func binaryNode(tag uint8, name string, op xnn.BinaryOperator, bounded bool, f func(dst, a, b []float32)) nodeType {
	return nodeType{tag: tag, name: name, read: readBinary, shape: broadcastShape, inPlace: true,
		bounded: bounded, clampsApart: true,
		check: func(g *graph, n *node) error {
			if err := wantDatatype(g, n, n.In[0], elementwiseTypes...); err != nil {
				return err
			}
			if err := wantDatatype(g, n, n.In[1], g.Values[n.In[0]].Datatype); err != nil {
				return err
			}
			return wantDatatype(g, n, n.Out[0], g.Values[n.In[0]].Datatype)
		},
		define: func(b *builder, n *node) call {
			var params *xnn.BinaryParams
			if bounded {
				params = &xnn.BinaryParams{OutputMin: float64(n.Min), OutputMax: float64(n.Max)}
			}
			return b.binary(op, params, n)
		},
		work: binaryWork,
		run:  func(e *reference, n *node) { e.mapBinary(n, f) }}
}

func broadcastShape(g *graph, n *node, s []shape) error {
	out, ok := broadcast(s[n.In[0]], s[n.In[1]])
	if !ok {
		return n.fault("operands of sizes %v and %v do not broadcast", s[n.In[0]], s[n.In[1]])
	}
	s[n.Out[0]] = out
	return nil
}
