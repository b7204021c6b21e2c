package lower

import (
	"strings"

	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
)

// class is a kind of operator call. The calls of a class take the same time per unit of what a term counts.
type class uint8

// The classes.
const (
	classCall          class = iota // of every call: starts
	classHalf                       // of 16-bit floats, which are converted: elements of all arguments
	classPoint                      // convolutions with windows of one element
	classWindow                     // convolutions that copy windows
	classStrided                    // the same, with a stride
	classPlanes                     // depthwise convolutions, plane by plane
	classPlanesStrided              //
	classPixels                     // depthwise convolutions of all channels at once, on copies
	classTransposed                 // transposed convolutions
	classLinear                     // products with a matrix whose columns are contiguous
	classMatrix                     // products with a matrix whose rows are contiguous
	classBatch                      // batches of these
	classMaximum                    // pools
	classAverage                    //
	classMean                       //
	classSoftmax                    //
	classResize                     // bilinear
	classBinary                     // functions of two tensors
	classJoin                       // concatenations
	classMoveRows                   // permutations in which runs of elements stay contiguous
	classMoveElements               // other permutations
	classCopy                       //
	classQuantize                   //
	classDequantize                 //
	classLayerNorm                  //
	classBatchNorm                  //
	classGelu                       //
	classSigmoid                    // and SiLU
	classTanh                       //
	classExact                      // other operators, by family
	classArith                      //
	classPointwise                  //
	classSum                        //
	classLoose                      //
	classes
)

// term is what a part of a call's time is proportional to.
type term uint8

// The terms.
const (
	termStart   term = iota // calls
	termRow                 // what is computed one after the other: rows, tiles
	termPlane               // planes, matrices
	termTap                 // elements that are copied first, or do not stay in the nearest cache
	termLine                // runs of elements that are copied first
	termWork                // MACs, with tiles filled up; elements of windows
	termElement             // of the results
	termWeight              // elements of the filter
	terms
)

// amounts are the amounts of a call's terms.
type amounts [terms]float64

// rateTable are times in nanoseconds, on one thread.
type rateTable [classes]amounts

// ratesOf has the rates by instruction set. The files are made by "make rates", which measures calls of all classes on one
// thread.
var ratesOf = map[string]*rateTable{"avx512": &ratesAVX512, "avx2": &ratesAVX2, "neon": &ratesNEON, "go": &ratesNone}

// selected are the rates of this processor.
var selected = ratesOf[instructionSet()]

func instructionSet() string {
	if level := simd.Level(); ratesOf[level] != nil {
		return level
	}
	return "go"
}

// amountsOf returns the class and amounts of a call.
type amountsOf func(o *operation) (class, amounts)

// operators are the operators that dominate the time of models, by name without overload.
var operators = map[string]amountsOf{
	"aten::convolution":                 convolution,
	"aten::linear":                      product,
	"aten::addmm":                       product,
	"aten::mm":                          product,
	"aten::bmm":                         product,
	"aten::permute_copy":                permuted,
	"aten::transpose_copy":              permuted,
	"aten::_softmax":                    softmax,
	"aten::add":                         broadcast,
	"aten::sub":                         broadcast,
	"aten::mul":                         broadcast,
	"aten::div":                         broadcast,
	"aten::maximum":                     broadcast,
	"aten::minimum":                     broadcast,
	"aten::max_pool2d_with_indices":     pool(classMaximum),
	"aten::avg_pool2d":                  pool(classAverage),
	"aten::mean":                        reduced(classMean),
	"aten::gelu":                        written(classGelu),
	"aten::silu":                        written(classSigmoid),
	"aten::tanh":                        written(classTanh),
	"aten::upsample_bilinear2d":         planes(classResize),
	"aten::pow":                         written(classTanh),
	"aten::cat":                         joined,
	"aten::slice_copy":                  copied,
	"aten::split_with_sizes_copy":       copied,
	"aten::split_copy":                  copied,
	"aten::constant_pad_nd":             copied,
	"quantized_decomposed::quantize":    written(classQuantize),
	"quantized_decomposed::dequantize":  written(classDequantize),
	"aten::native_layer_norm":           rows(classLayerNorm),
	"aten::_native_batch_norm_legit_no": planes(classBatchNorm),
	"dim_order_ops::_clone_dim_order":   written(classCopy),
	"dim_order_ops::_to_dim_order_copy": written(classCopy),
}

// families are all other operators.
var families = [...]amountsOf{
	kernels.Exact:     written(classExact),
	kernels.Arith:     written(classArith),
	kernels.Pointwise: written(classPointwise),
	kernels.Sum:       reduced(classSum),
	kernels.Loose:     reduced(classLoose),
}

// rowOf returns the row of an operator or of its family.
func rowOf(op *kernels.Op) amountsOf {
	name, _, _ := strings.Cut(op.Name(), ".")
	for _, suffix := range [...]string{"", "_per_tensor", "_per_channel", "_per_token", "_training"} {
		if short, ok := strings.CutSuffix(name, suffix); ok {
			if row, ok := operators[short]; ok {
				return row
			}
		}
	}
	return families[op.Family]
}
