package lowering_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/callstest"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/lowering"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// halfTolerance is relative to the largest number: the library rounds sums after each product.
const halfTolerance = 8e-3

// notHalves are the classes of operators that are not lowered for float16 tensors.
var notHalves = []opclass.Class{
	opclass.Gelu, opclass.Elu, opclass.Clamp, opclass.Maximum, opclass.Minimum,
	opclass.AddScalar, opclass.SubScalar, opclass.RsubScalar, opclass.MulScalar, opclass.DivScalar,
}

// quantizing are the classes of operators on quantized elements, and those that convert them.
var quantizing = []opclass.Class{
	opclass.Quantize, opclass.Dequantize, opclass.DequantizePerChannel,
	opclass.ChooseQParams, opclass.QuantizeDynamic, opclass.DequantizeDynamic,
}

// TestLoweringHalves runs the cases of TestLoweringRows with float16 tensors.
func TestLoweringHalves(t *testing.T) {
	taken, refused := make(map[opclass.Class]bool), make(map[opclass.Class]string)
	for _, test := range loweringCases() {
		if strings.HasPrefix(test.name, "quantized ") || strings.HasPrefix(test.name, "dynamic ") {
			continue
		}
		c := callstest.New(3)
		c.Float = tensor.Float16
		test.build(c)
		if c.Err != nil { // an operator does not support float16
			continue
		}
		why := ""
		for i := range c.Graph.Calls {
			if op := c.Graph.Calls[i].Op; op != nil {
				if reason := rejected(c.Graph, i); reason != "" {
					why, refused[op.Class] = reason, reason
				} else {
					taken[op.Class] = true
				}
			}
		}
		if why == "" {
			t.Run(test.name, func(t *testing.T) { checkCalls(t, c, halfTolerance) })
		}
	}
	for class := range opclass.Count {
		if !lowering.Supports(&kernels.Op{Class: class}) || slices.Contains(quantizing, class) {
			continue
		}
		if want := !slices.Contains(notHalves, class); taken[class] != want {
			t.Errorf("class %v: got accepted %v, want %v: %s", class, taken[class], want, refused[class])
		}
	}
}
