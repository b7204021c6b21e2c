package xnnpack

import "math"

var inf = float32(math.Inf(1))

// unaryNodes are functions of one operand, element by element.
var unaryNodes = []nodeType{
	unaryNode(tagSigmoid, "Sigmoid"),
	clampNode(tagClamp, "Clamp"),
	unaryNode(tagFloor, "Floor"),
	convertNode(tagConvert, "Convert"),
	unaryNode(tagSquareRoot, "SquareRoot"),
	unaryNode(tagCeiling, "Ceiling"),
	unaryNode(tagHardswish, "Hardswish"),
	unaryParamNode(tagLeakyReLU, "LeakyReLU", "negative_slope"),
	unaryNode(tagNegate, "Negate"),
	unaryNode(tagSquare, "Square"),
	unaryParamNode(tagELU, "ELU", "alpha"),
	unaryNode(tagAbs, "Abs"),
	unaryNode(tagReciprocalSquareRoot, "ReciprocalSquareRoot"),
	unaryNode(tagLog, "Log"),
	unaryNode(tagGelu, "Gelu"),
	unaryNode(tagTanh, "Tanh"),
	unaryNode(tagExp, "Exp"),
	unaryNode(tagSin, "Sin"),
	unaryNode(tagCos, "Cos"),
}

// unaryNode returns the table entry of a function without parameters.
func unaryNode(tag uint8, name string) nodeType {
	return nodeType{tag: tag, name: name, read: readUnary, check: checkUnary, shape: sameShape, inPlace: true, cost: transcendental}
}

// unaryParamNode returns the table entry of a function with one parameter.
func unaryParamNode(tag uint8, name, param string) nodeType {
	return nodeType{tag: tag, name: name, read: readUnaryParam(param), check: checkUnary, shape: sameShape, inPlace: true,
		params: newParams[scalarParams]}
}

func clampNode(tag uint8, name string) nodeType {
	return nodeType{tag: tag, name: name, read: readUnary, check: checkUnary, shape: sameShape, inPlace: true, bounded: true}
}

// convertNode returns the table entry of a conversion to another datatype. For dynamically quantized
// outputs, scale and zero point of each group of inner dimensions are computed first.
func convertNode(tag uint8, name string) nodeType {
	return nodeType{tag: tag, name: name, read: readUnary, shape: convertShape, inPlace: true,
		check: func(g *graph, n *node) error {
			in, out := n.In[0], n.Out[0]
			if err := wantDatatype(g, n, in, elementwiseTypes...); err != nil {
				return err
			}
			if g.Values[out].Datatype == qdint8 {
				return wantDatatype(g, n, in, fp32, fp16)
			}
			return wantDatatype(g, n, out, elementwiseTypes...)
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
	binaryNode(tagAdd, "Add", true),
	binaryNode(tagDiv, "Div", true),
	binaryNode(tagMinimum, "Minimum", false),
	binaryNode(tagMultiply, "Multiply", true),
	binaryNode(tagSubtract, "Subtract", true),
	binaryNode(tagMaximum, "Maximum", false),
	binaryNode(tagPReLU, "PReLU", false),
}

// binaryNode returns the table entry of a function. Bounded functions clamp their output.
func binaryNode(tag uint8, name string, bounded bool) nodeType {
	return nodeType{tag: tag, name: name, read: readBinary, shape: broadcastShape, inPlace: true, bounded: bounded,
		check: func(g *graph, n *node) error {
			if err := wantDatatype(g, n, n.In[0], elementwiseTypes...); err != nil {
				return err
			}
			if err := wantDatatype(g, n, n.In[1], g.Values[n.In[0]].Datatype); err != nil {
				return err
			}
			return wantDatatype(g, n, n.Out[0], g.Values[n.In[0]].Datatype)
		}}
}

func broadcastShape(g *graph, n *node, s []shape) error {
	out, ok := broadcast(s[n.In[0]], s[n.In[1]])
	if !ok {
		return n.fault("operands of sizes %v and %v do not broadcast", s[n.In[0]], s[n.In[1]])
	}
	s[n.Out[0]] = out
	return nil
}

// isFunction reports whether nodes of the type compute a function of each element, which is not a bound or a
// conversion.
func (t *nodeType) isFunction() bool {
	return t.isIn(unaryNodes) && t.tag != tagClamp && t.tag != tagConvert
}
