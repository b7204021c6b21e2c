// Package verify runs the test cases of bundled programs.
package verify

import (
	"math"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// stepFinder computes how far one quantization step may move the outputs of a method.
type stepFinder struct {
	prog    *etrun.Program
	method  *pte.Method
	values  map[int]float64      // by value
	places  map[[2]int64]float64 // by arena and offset, of the last write
	written map[int]bool
}

// OutputSteps returns, by output, how far one step of the quantized values behind a float
// output may move it, 0 if there are none or if unknown. It reads bytes that loading a
// method of the program may release.
func OutputSteps(prog *etrun.Program, m *pte.Method) []float64 {
	f := &stepFinder{prog: prog, method: m, values: map[int]float64{}, places: map[[2]int64]float64{}, written: map[int]bool{}}
	for _, v := range m.Inputs {
		f.write(v, 0)
	}
	for c := range m.Chains {
		for _, in := range m.Chains[c].Instructions {
			f.instruction(in)
		}
	}
	steps := make([]float64, len(m.Outputs))
	for i, v := range m.Outputs {
		if t := m.Values[v].Tensor; t != nil && t.DType.IsFloat() {
			steps[i] = f.of(v)
		}
	}
	return steps
}

func (f *stepFinder) instruction(in pte.Instruction) {
	switch in.Kind {
	case pte.KernelCall:
		f.call(f.method.Operators[in.Index], in.Args)
	case pte.DelegateCall:
		f.delegate(&f.method.Delegates[in.Index], in.Args)
	case pte.MoveCall:
		f.write(in.Target, f.of(in.Index))
	}
}

// slopes are classes of operators whose result consists of elements of their first argument, of values between them, or
// of a function of them with this maximum slope.
var slopes = map[opclass.Class]float64{
	opclass.Mean: 1, opclass.Relu: 1, opclass.Hardtanh: 1, opclass.Tanh: 1, opclass.Sigmoid: 0.25,
	opclass.Softmax: 0.5, opclass.LogSoftmax: 2, // sums over a row
}

// call computes the step of an operator's result, its last argument.
func (f *stepFinder) call(o pte.Operator, args []int) {
	if len(args) < 2 {
		return
	}
	op, sig, ok, err := etrun.DefaultOperators().Lookup(o.FullName())
	step, last := 0.0, args[len(args)-1]
	switch {
	case !ok || err != nil:
	case len(op.Quants) > 0:
		step = f.dequantized(op.Quants[0], args)
	case op.Moves:
		step = f.smallest(sig, args)
	default:
		step = slopes[op.Class] * f.of(args[0])
	}
	f.write(last, step)
}

// dequantized returns the scale of the elements that an operator converts to floats, 0 for other operators.
func (f *stepFinder) dequantized(q kernels.Quant, args []int) float64 {
	out := f.method.Values[args[len(args)-1]].Tensor
	if out == nil || !out.DType.IsFloat() || q.Scale >= len(args) {
		return 0
	}
	if scale := &f.method.Values[args[q.Scale]]; scale.Kind == tensor.KindDouble {
		return scale.Double
	}
	return 0
}

// smallest returns the smallest step of the tensors that a call reads.
func (f *stepFinder) smallest(sig *kernels.Signature, args []int) float64 {
	least := math.Inf(1)
	for i := range min(len(sig.Args), len(args)) {
		x := &f.method.Values[args[i]]
		switch {
		case sig.Args[i].Out:
		case x.Kind == tensor.KindTensor:
			least = min(least, f.of(args[i]))
		case x.Kind == tensor.KindTensorList:
			for _, item := range x.Items {
				least = min(least, f.of(item))
			}
		}
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return least
}

// delegate computes the steps of a delegate's outputs, its last arguments. The load reports
// malformed payloads.
func (f *stepFinder) delegate(d *pte.Delegate, args []int) {
	var steps []float64
	if d.ID == xnnpack.ID {
		steps, _ = xnnpack.OutputSteps(d.Data, f.prog)
	}
	first := len(args) - len(steps)
	for i, v := range args {
		step := 0.0
		if i >= first && first >= 0 {
			step = steps[i-first]
		}
		f.write(v, step)
	}
}

// place returns the arena and offset of a planned tensor.
func (f *stepFinder) place(v int) (at [2]int64, ok bool) {
	t := f.method.Values[v].Tensor
	if t == nil || t.Storage != pte.Planned {
		return at, false
	}
	return [2]int64{int64(t.Arena), t.Offset}, true
}

// write records the step of a value; if several branches write it, the smallest is used.
func (f *stepFinder) write(v int, step float64) {
	if at, ok := f.place(v); ok {
		f.places[at] = step
	}
	if f.written[v] {
		step = min(step, f.values[v])
	}
	f.values[v], f.written[v] = step, true
}

// of returns the step of a value. A value that is not written is a view of the value at its offset.
func (f *stepFinder) of(v int) float64 {
	if at, ok := f.place(v); ok && !f.written[v] {
		return f.places[at]
	}
	return f.values[v]
}
