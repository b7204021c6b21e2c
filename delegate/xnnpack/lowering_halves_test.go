package xnnpack

import (
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/lowering"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// halfTolerance is relative to the largest number: the library rounds sums after each product.
const halfTolerance = 8e-3

// notHalves are the operators that are not lowered for float16 tensors.
var notHalves = []string{
	"aten::gelu.out", "aten::elu.out", "aten::clamp.out", "aten::maximum.out", "aten::minimum.out",
	"aten::add.Scalar_out", "aten::sub.Scalar_out", "aten::rsub.Scalar_out", "aten::mul.Scalar_out", "aten::div.Scalar_out",
}

// TestLoweringHalves runs the cases of TestLoweringRows with float16 tensors.
func TestLoweringHalves(t *testing.T) {
	taken, refused := make(map[string]bool), make(map[string]string)
	for _, test := range loweringCases() {
		if strings.HasPrefix(test.name, "quantized ") || strings.HasPrefix(test.name, "dynamic ") {
			continue
		}
		c := newCalls(3)
		c.float = tensor.Float16
		test.build(c)
		if c.err != nil { // an operator does not support float16
			continue
		}
		why := ""
		for i := range c.g.Calls {
			if sig := c.g.Calls[i].Sig; sig != nil {
				if reason := (Backend{}).Accepts(c.g, i); reason != "" {
					why, refused[sig.Name] = reason, reason
				} else {
					taken[sig.Name] = true
				}
			}
		}
		if why == "" {
			t.Run(test.name, func(t *testing.T) { c.check(t, halfTolerance) })
		}
	}
	for op := range lowering.Lowerings {
		if strings.HasPrefix(op, "quantized_decomposed::") {
			continue
		}
		if want := !slices.Contains(notHalves, op); taken[op] != want {
			t.Errorf("%s: got accepted %v, want %v: %s", op, taken[op], want, refused[op])
		}
	}
}
