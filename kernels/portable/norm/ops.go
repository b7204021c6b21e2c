package norm

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
)

// Ops returns the operators of the package.
func Ops() []kernels.Op {
	row := func(c opclass.Class, flow opclass.Flow, schema string, f kernels.Func) kernels.Op {
		return kernels.Op{Schema: schema, Func: f, Class: c, Flow: flow, DTypes: floatTypes, Family: kernels.Loose}
	}
	return []kernels.Op{
		{Schema: "etrun::zero_masked_rows.out(Tensor self, Tensor scores, *, Tensor(a!) out)", Func: zeroMaskedRows,
			Flow: opclass.Pairs, DTypes: floatTypes, Note: "no exporter calls it: rows of self, zeros where all scores of the row are -inf"},
		row(opclass.Softmax, opclass.Along, "aten::_softmax.out(Tensor self, int dim, bool half_to_float, *, Tensor(a!) out)", softmax),
		row(opclass.LogSoftmax, opclass.Along, "aten::_log_softmax.out(Tensor self, int dim, bool half_to_float, *, Tensor(a!) out)", logSoftmax),
		row(opclass.LayerNorm, opclass.Normalized, "aten::native_layer_norm.out(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps, *, "+
			"Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2)", layerNorm),
		row(opclass.None, opclass.Samples, "aten::native_group_norm.out(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float eps, *, "+
			"Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2)", groupNorm),
		row(opclass.BatchNorm, opclass.Samples, "aten::_native_batch_norm_legit_no_training.out(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, "+
			"Tensor running_var, float momentum, float eps, *, Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2)", batchNormNoTraining),
		row(opclass.None, opclass.Mixed, "aten::_native_batch_norm_legit.out(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, "+
			"Tensor running_var, bool training, float momentum, float eps, *, Tensor(a!) out, Tensor(b!) save_mean, Tensor(c!) save_invstd)", batchNorm),
		row(opclass.None, opclass.Mixed, "aten::_native_batch_norm_legit.no_stats_out(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, float eps, *, "+
			"Tensor(a!) out, Tensor(b!) save_mean, Tensor(c!) save_invstd)", batchNormNoStats),
	}
}
