package lower

import (
	"strings"

	"github.com/etrun-go/etrun/kernels"
)

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
	"aten::sigmoid":                     written(classSigmoid),
	"aten::silu":                        written(classSigmoid),
	"aten::hardswish":                   written(classArith),
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
