package graph

import (
	"cmp"
	"math"
)

// Inf is infinity.
var Inf = float32(math.Inf(1))

// UnaryNodes are functions of one operand, element by element.
var UnaryNodes = []NodeType{
	unaryNode(TagSigmoid, "Sigmoid"),
	clampNode(TagClamp, "Clamp"),
	unaryNode(TagFloor, "Floor"),
	convertNode(TagConvert, "Convert"),
	unaryNode(TagSquareRoot, "SquareRoot"),
	unaryNode(TagCeiling, "Ceiling"),
	unaryNode(TagHardswish, "Hardswish"),
	unaryParamNode(TagLeakyReLU, "LeakyReLU", "negative_slope"),
	unaryNode(TagNegate, "Negate"),
	unaryNode(TagSquare, "Square"),
	unaryParamNode(TagELU, "ELU", "alpha"),
	unaryNode(TagAbs, "Abs"),
	unaryNode(TagReciprocalSquareRoot, "ReciprocalSquareRoot"),
	unaryNode(TagLog, "Log"),
	unaryNode(TagGelu, "Gelu"),
	unaryNode(TagTanh, "Tanh"),
	unaryNode(TagExp, "Exp"),
	unaryNode(TagSin, "Sin"),
	unaryNode(TagCos, "Cos"),
}

// unaryNode returns the table entry of a function without parameters.
func unaryNode(tag uint8, name string) NodeType {
	return NodeType{Tag: tag, Name: name, read: readUnary, Check: checkUnary, Shape: sameShape, InPlace: true, Cost: transcendental}
}

// unaryParamNode returns the table entry of a function with one parameter.
func unaryParamNode(tag uint8, name, param string) NodeType {
	return NodeType{Tag: tag, Name: name, read: readUnaryParam(param), Check: checkUnary, Shape: sameShape, InPlace: true,
		Params: newParams[ScalarParams]}
}

func clampNode(tag uint8, name string) NodeType {
	return NodeType{Tag: tag, Name: name, read: readUnary, Check: checkUnary, Shape: sameShape, InPlace: true, Bounded: true}
}

// convertNode returns the table entry of a conversion to another datatype. For dynamically quantized
// outputs, scale and zero point of each group of inner dimensions are computed first.
func convertNode(tag uint8, name string) NodeType {
	return NodeType{Tag: tag, Name: name, read: readUnary, Shape: convertShape, InPlace: true,
		Check: func(g *Graph, n *Node) error {
			in, out := n.In[0], n.Out[0]
			if err := wantDatatype(g, n, in, ElementwiseTypes...); err != nil {
				return err
			}
			if g.Values[out].Datatype == QDInt8 {
				return wantDatatype(g, n, in, FP32, FP16)
			}
			return wantDatatype(g, n, out, ElementwiseTypes...)
		}}
}

func convertShape(g *Graph, n *Node, s []Shape) error {
	s[n.Out[0]] = s[n.In[0]]
	if k := g.Values[n.Out[0]].Quant.Nonbatch; k > s[n.In[0]].Rank {
		return n.fault("%d dimensions share a scale, of an input of sizes %v", k, s[n.In[0]])
	}
	return nil
}

// checkUnary requires that input and output have the same datatype; quantizations may differ.
func checkUnary(g *Graph, n *Node) error {
	return cmp.Or(wantDatatype(g, n, n.In[0], ElementwiseTypes...), wantDatatype(g, n, n.Out[0], g.Values[n.In[0]].Datatype))
}

// sameShape sets the shape of the output to that of the first input.
func sameShape(_ *Graph, n *Node, s []Shape) error {
	s[n.Out[0]] = s[n.In[0]]
	return nil
}

// transcendental returns the cost of transcendental functions, about eight multiplications per
// element.
func transcendental(_ *Graph, n *Node, s []Shape) int64 { return Times(8, s[n.Out[0]].Numel()) }

// BinaryNodes are functions of two broadcast operands.
var BinaryNodes = []NodeType{
	binaryNode(TagAdd, "Add", true),
	binaryNode(TagDiv, "Div", true),
	binaryNode(TagMinimum, "Minimum", false),
	binaryNode(TagMultiply, "Multiply", true),
	binaryNode(TagSubtract, "Subtract", true),
	binaryNode(TagMaximum, "Maximum", false),
	binaryNode(TagPReLU, "PReLU", false),
}

// binaryNode returns the table entry of a function. Bounded functions clamp their output.
func binaryNode(tag uint8, name string, bounded bool) NodeType {
	return NodeType{Tag: tag, Name: name, read: readBinary, Shape: broadcastShape, InPlace: true, Bounded: bounded,
		Check: func(g *Graph, n *Node) error {
			d := g.Values[n.In[0]].Datatype
			return cmp.Or(wantDatatype(g, n, n.In[0], ElementwiseTypes...), wantDatatype(g, n, n.In[1], d), wantDatatype(g, n, n.Out[0], d))
		}}
}

func broadcastShape(g *Graph, n *Node, s []Shape) error {
	out, ok := Broadcast(s[n.In[0]], s[n.In[1]])
	if !ok {
		return n.fault("operands of sizes %v and %v do not broadcast", s[n.In[0]], s[n.In[1]])
	}
	s[n.Out[0]] = out
	return nil
}

// IsFunction reports whether nodes of the type compute a function of each element, which is not a bound or a
// conversion.
func (t *NodeType) IsFunction() bool {
	return t.IsIn(UnaryNodes) && t.Tag != TagClamp && t.Tag != TagConvert
}
