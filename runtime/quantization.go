package runtime

import (
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// quantizers are the operators that tell how their first argument is quantised: by
// their second, a scale, and their third, a zero point.
var quantizers = map[string]bool{
	"quantized_decomposed::quantize_per_tensor.out":   true,
	"quantized_decomposed::dequantize_per_tensor.out": true,
}

// quantizations finds the values that an instruction quantises or dequantises: what a
// delegate needs to know of an output whose declared type is stale.
func quantizations(m *pte.Method) map[int]*delegate.Quantization {
	found := make(map[int]*delegate.Quantization)
	for c := range m.Chains {
		for _, in := range m.Chains[c].Instructions {
			if in.Kind != pte.KernelCall || len(in.Args) < 3 || !quantizers[m.Operators[in.Index].FullName()] {
				continue
			}
			scale, zero := &m.Values[in.Args[1]], &m.Values[in.Args[2]]
			if scale.Kind == tensor.KindDouble && zero.Kind == tensor.KindInt && found[in.Args[0]] == nil {
				found[in.Args[0]] = &delegate.Quantization{Scale: scale.Double, ZeroPoint: zero.Int}
			}
		}
	}
	return found
}
