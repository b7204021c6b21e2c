package frame

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/simd"
)

// Element is a function of each element: of its number alone, or of a parameter of the node, too.
type Element struct {
	plain func(dst, src []float32)
	param func(n *graph.Node, dst, src []float32)
	Cost  int // about as many additions take as long; 0 for no function
}

// Elements are the functions of each element, by tag.
var Elements = [graph.Tags]Element{
	graph.TagSigmoid: {plain: simd.Sigmoid, Cost: 8}, graph.TagFloor: {plain: simd.Floor, Cost: 8},
	graph.TagSquareRoot: {plain: simd.Sqrt, Cost: 8}, graph.TagCeiling: {plain: simd.Ceil, Cost: 8},
	graph.TagHardswish: {plain: simd.HardswishProduct, Cost: 8}, graph.TagNegate: {plain: simd.Neg, Cost: 8},
	graph.TagSquare: {plain: square, Cost: 8}, graph.TagAbs: {plain: simd.Abs, Cost: 8},
	graph.TagReciprocalSquareRoot: {plain: simd.Rsqrt, Cost: 8}, graph.TagLog: {plain: simd.Log, Cost: 8},
	graph.TagGelu: {plain: simd.GELU, Cost: 8}, graph.TagTanh: {plain: simd.Tanh, Cost: 8}, graph.TagExp: {plain: simd.Exp, Cost: 8},
	graph.TagSin: {plain: simd.Sin, Cost: 8}, graph.TagCos: {plain: simd.Cos, Cost: 8}, graph.TagSiLU: {plain: simd.SiLU, Cost: 8},
	graph.TagLeakyReLU: {param: leakyReLU, Cost: 4}, graph.TagELU: {param: elu, Cost: 4}, graph.TagClamp: {param: clamp, Cost: 1},
	graph.TagConvert: {plain: move, Cost: 1},
}

// Of returns the function of a node.
func (x *Element) Of(n *graph.Node) func(dst, src []float32) {
	if x.plain != nil {
		return x.plain
	}
	return func(dst, src []float32) { x.param(n, dst, src) }
}

// Apply computes elements for a node.
func (x *Element) Apply(n *graph.Node, dst, src []float32) {
	if x.plain != nil {
		x.plain(dst, src)
	} else {
		x.param(n, dst, src)
	}
}

func square(dst, src []float32) { simd.Mul(dst, src, src) }

func move(dst, src []float32) { copy(dst, src) }

func leakyReLU(n *graph.Node, dst, src []float32) {
	simd.LeakyReLU(dst, src, graph.Params[graph.ScalarParams](n).Value)
}

func elu(n *graph.Node, dst, src []float32) {
	simd.ELU(dst, src, graph.Params[graph.ScalarParams](n).Value, 1, 1)
}

func clamp(n *graph.Node, dst, src []float32) { simd.Clamp(dst, src, n.Min, n.Max) }
