package lower

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
)

// amountsOf returns the class and amounts of a call.
type amountsOf func(o *operation) (class, amounts)

// byClass are the classes of operators that dominate the time of models.
var byClass = [opclass.Count]amountsOf{
	opclass.Convolution:          convolution,
	opclass.Linear:               product,
	opclass.AddMM:                product,
	opclass.MM:                   product,
	opclass.BMM:                  product,
	opclass.Permute:              permuted,
	opclass.Transpose:            permuted,
	opclass.Softmax:              softmax,
	opclass.Add:                  broadcast,
	opclass.AddScalar:            broadcast,
	opclass.Sub:                  broadcast,
	opclass.SubScalar:            broadcast,
	opclass.Mul:                  broadcast,
	opclass.MulScalar:            broadcast,
	opclass.Div:                  broadcast,
	opclass.DivScalar:            broadcast,
	opclass.Maximum:              broadcast,
	opclass.Minimum:              broadcast,
	opclass.MaxPool2d:            pool(classMaximum),
	opclass.AvgPool2d:            pool(classAverage),
	opclass.Mean:                 reduced(classMean),
	opclass.Gelu:                 written(classGelu),
	opclass.Sigmoid:              written(classSigmoid),
	opclass.Silu:                 written(classSigmoid),
	opclass.Hardswish:            written(classArith),
	opclass.Tanh:                 written(classTanh),
	opclass.UpsampleBilinear2d:   planes(classResize),
	opclass.PowScalar:            written(classTanh),
	opclass.Cat:                  joined,
	opclass.Slice:                copied,
	opclass.SplitWithSizes:       copied,
	opclass.Split:                copied,
	opclass.ConstantPad:          copied,
	opclass.Copy:                 written(classCopy),
	opclass.Quantize:             written(classQuantize),
	opclass.QuantizeDynamic:      written(classQuantize),
	opclass.Dequantize:           written(classDequantize),
	opclass.DequantizeDynamic:    written(classDequantize),
	opclass.DequantizePerChannel: written(classDequantize),
	opclass.LayerNorm:            rows(classLayerNorm),
	opclass.BatchNorm:            planes(classBatchNorm),
}

// families are all other operators.
var families = [...]amountsOf{
	kernels.Exact:     written(classExact),
	kernels.Arith:     written(classArith),
	kernels.Pointwise: written(classPointwise),
	kernels.Sum:       reduced(classSum),
	kernels.Loose:     reduced(classLoose),
}

// rowOf returns the row of an operator's class or of its family.
func rowOf(op *kernels.Op) amountsOf {
	if row := byClass[op.Class]; row != nil {
		return row
	}
	return families[op.Family]
}
