package callstest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable"
	"github.com/etrun-go/etrun/kernels/quantized"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var portableSet = kernels.NewSet(portable.Ops(), quantized.Ops())

// NHWC is the dim order of images whose channels are innermost.
var NHWC = []uint8{0, 2, 3, 1}

// Calls builds a graph of operators for tests. Each call runs the portable kernel immediately, which
// determines the sizes and the expected elements of its results.
type Calls struct {
	Graph   *lowering.Graph
	Rand    *rand.Rand
	Tensors []*tensor.Tensor // by value; nil if it is not a tensor
	Lo, Hi  float64
	Allowed float64        // absolute tolerance; 0: use the relative one
	Err     error          // first error of a kernel
	Again   []func() error // repeat the calls
	Float   tensor.DType   // default dtype of tensors
}

// A Val is a value of the graph as an argument of a call; Vals are a list of them.
type (
	Val  int
	Vals []Val
)

// New returns an empty graph. The seed is of its random numbers.
func New(seed uint64) *Calls {
	return &Calls{Graph: &lowering.Graph{Method: "forward"}, Rand: rand.New(rand.NewPCG(seed, 7)), Lo: -2, Hi: 2, Float: tensor.Float32}
}

func (c *Calls) add(v lowering.GraphValue, t *tensor.Tensor) Val {
	c.Graph.Values, c.Tensors = append(c.Graph.Values, v), append(c.Tensors, t)
	return Val(len(c.Graph.Values) - 1)
}

// Tensor adds a tensor value.
func (c *Calls) Tensor(t *tensor.Tensor) Val {
	return c.add(lowering.GraphValue{Kind: tensor.KindTensor, DType: t.DType, Sizes: slices.Clone(t.Sizes), DimOrder: t.DimOrder}, t)
}

// Random returns a tensor of random numbers from Lo to Hi.
func (c *Calls) Random(order []uint8, sizes ...int) *tensor.Tensor {
	t := tensor.Make(c.Float, sizes, order, tensor.Static)
	t.Bind(tensor.AlignedBytes(t.NBytes()))
	numbers := make([]float32, t.Numel())
	for i := range numbers {
		numbers[i] = float32(c.Lo + (c.Hi-c.Lo)*c.Rand.Float64())
	}
	tensor.Storer[float32](c.Float)(t.Data, numbers)
	return t
}

// Input adds an input of random numbers.
func (c *Calls) Input(sizes ...int) Val { return c.InputIn(nil, sizes...) }

// InputIn adds an input of random numbers in a dim order.
func (c *Calls) InputIn(order []uint8, sizes ...int) Val {
	v := c.Tensor(c.Random(order, sizes...))
	c.Graph.Inputs = append(c.Graph.Inputs, int(v))
	return v
}

// Constant adds a constant of random numbers.
func (c *Calls) Constant(sizes ...int) Val { return c.ConstantOf(c.Random(nil, sizes...)) }

// Repeated returns a tensor of equal items.
func (c *Calls) Repeated(sizes ...int) *tensor.Tensor {
	t := c.Random(nil, sizes...)
	for n := len(t.Data) / sizes[0]; n < len(t.Data); n *= 2 {
		copy(t.Data[n:], t.Data[:n])
	}
	return t
}

// ConstantOf adds a constant.
func (c *Calls) ConstantOf(t *tensor.Tensor) Val {
	t.Const = true
	v := c.Tensor(t)
	c.Graph.Values[v].Data = t.Data
	return v
}

// argument returns the graph value and kernel argument for a Go value: nil is None.
func (c *Calls) argument(a any) (Val, *tensor.Value) {
	var v tensor.Value
	switch a := a.(type) {
	case nil:
	case Val:
		return a, new(tensor.TensorValue(c.Tensors[a]))
	case int:
		v = tensor.IntValue(int64(a))
	case float64:
		v = tensor.DoubleValue(a)
	case bool:
		v = tensor.BoolValue(a)
	case string:
		v = tensor.StringValue(a)
	case []float64:
		v = tensor.Value{Kind: tensor.KindDoubleList, Doubles: a}
	case []int, Vals:
		return c.list(a)
	default:
		panic(fmt.Sprintf("argument of type %T", a))
	}
	return c.add(lowering.GraphValue{Kind: v.Kind, Bool: v.Bool, Int: v.Int, Double: v.Double, Str: v.Str, Doubles: v.Doubles}, nil), &v
}

func (c *Calls) list(a any) (Val, *tensor.Value) {
	kind := tensor.KindIntList
	var items []int
	var values []*tensor.Value
	one := func(a any) {
		item, value := c.argument(a)
		items, values = append(items, int(item)), append(values, value)
	}
	switch a := a.(type) {
	case []int:
		for _, x := range a {
			one(x)
		}
	case Vals:
		kind = tensor.KindTensorList
		for _, x := range a {
			one(x)
		}
	}
	return c.add(lowering.GraphValue{Kind: kind, Items: items}, nil), new(tensor.NewList(kind, values))
}

// Out describes the tensors that a call computes.
type Out struct {
	Rank  int
	Order []uint8
	DType tensor.DType // 0: Calls.Float
	One   bool         // has one element before the call
	List  int          // number of tensors in a list; 0: one tensor, no list
}

func (c *Calls) result(o Out) Val {
	d := o.DType
	if d == 0 {
		d = c.Float
	}
	t := tensor.Make(d, make([]int, o.Rank), o.Order, tensor.DynamicUnbound)
	if o.One {
		t = tensor.New(d, 1)
	}
	return c.Tensor(t)
}

// Call adds a call and runs it. The outs follow the arguments; the slot of the result is last.
func (c *Calls) Call(op string, outs []Out, args ...any) Vals {
	row, sig, ok, err := portableSet.Lookup(op)
	if !ok || err != nil {
		panic("no operator " + op)
	}
	var slots []int
	var values kernels.Args
	add := func(v Val, x *tensor.Value) { slots, values = append(slots, int(v)), append(values, x) }
	for _, a := range args {
		add(c.argument(a))
	}
	var results Vals
	for _, o := range outs {
		if o.List == 0 {
			v := c.result(o)
			results = append(results, v)
			add(c.argument(v))
			continue
		}
		for range o.List {
			results = append(results, c.result(o))
		}
		add(c.argument(results))
	}
	if len(slots) < sig.Slots() {
		slots, values = append(slots, slots[len(slots)-1]), append(values, values[len(values)-1])
	}
	if err := sig.Check(values); err != nil {
		panic(err)
	}
	again := func() error { return row.Func(kernels.NewCtx(nil), values) }
	c.Again = append(c.Again, again)
	if err := again(); err != nil && c.Err == nil {
		c.Err = fmt.Errorf("%s: %w", op, err)
	}
	for _, v := range results {
		c.Graph.Values[v].Sizes = slices.Clone(c.Tensors[v].Sizes)
	}
	c.Graph.Calls = append(c.Graph.Calls, lowering.GraphCall{Op: row, Sig: sig, Args: slots,
		Place: fmt.Sprintf("call %d (%s)", len(c.Graph.Calls), op)})
	return results
}

// Do adds a call with one contiguous result.
func (c *Calls) Do(op string, rank int, args ...any) Val {
	return c.Call(op, []Out{{Rank: rank}}, args...)[0]
}

// View adds a view without an operator.
func (c *Calls) View(x Val, sizes ...int) Val {
	t := tensor.Make(c.Float, sizes, nil, tensor.Static)
	t.Bind(c.Tensors[x].Data)
	v := c.Tensor(t)
	c.Graph.Calls = append(c.Graph.Calls, lowering.GraphCall{View: true, Args: []int{int(x), int(v)},
		Place: fmt.Sprintf("call %d (view)", len(c.Graph.Calls))})
	return v
}

// Outputs makes values outputs of the graph.
func (c *Calls) Outputs(list ...Val) *Calls {
	for _, v := range list {
		if !slices.Contains(c.Graph.Outputs, int(v)) {
			c.Graph.Outputs = append(c.Graph.Outputs, int(v))
		}
	}
	return c
}

// Arguments returns the inputs' tensors and new ones for the outputs.
func (c *Calls) Arguments() (args []*tensor.Value) {
	for _, v := range c.Graph.Inputs {
		args = append(args, new(tensor.TensorValue(c.Tensors[v])))
	}
	for _, v := range c.Graph.Outputs {
		x := &c.Graph.Values[v]
		t := tensor.Make(x.DType, x.Sizes, x.DimOrder, x.Dynamism)
		t.Bind(tensor.AlignedBytes(t.NBytes()))
		args = append(args, new(tensor.TensorValue(t)))
	}
	return args
}

// Near compares tensors with a tolerance relative to the largest number.
func Near(got, want *tensor.Tensor, tolerance float64) error {
	if !slices.Equal(got.Sizes, want.Sizes) || !slices.Equal(got.DimOrder, want.DimOrder) {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	x, y := graphtest.NumbersOf(got), graphtest.NumbersOf(want)
	allowed := tolerance * max(1, graphtest.Largest(y))
	for i := range y {
		if d := math.Abs(x[i] - y[i]); x[i] != y[i] && !(d <= allowed) && !(math.IsNaN(x[i]) && math.IsNaN(y[i])) {
			return fmt.Errorf("element %d of %v: got %v, want %v, difference %g, allowed %g", i, want.Sizes, x[i], y[i], d, allowed)
		}
	}
	return nil
}

// Scalar changes a tensor of one element to rank 0.
func (v Val) Scalar(c *Calls) Val {
	t := tensor.Make(c.Tensors[v].DType, nil, nil, tensor.Static)
	t.Bind(c.Tensors[v].Data)
	c.Tensors[v], c.Graph.Values[v].Sizes, c.Graph.Values[v].DimOrder = t, nil, nil
	return v
}

// Convolve adds a 3x3 convolution.
func (c *Calls) Convolve(x Val, in, to int) Val {
	return c.Do("aten::convolution.out", 4, x, c.Constant(to, in, 3, 3), c.Constant(to),
		[]int{1, 1}, []int{1, 1}, []int{1, 1}, false, []int{0, 0}, 1)
}

// Dynamic gives all non-constant tensors dynamic sizes, bounded by the declared ones.
func (c *Calls) Dynamic() {
	for v := range c.Graph.Values {
		if x := &c.Graph.Values[v]; x.Kind == tensor.KindTensor && !x.IsConst() {
			x.Dynamism = tensor.DynamicBound
		}
	}
	for _, v := range c.Graph.Inputs {
		t := tensor.Make(tensor.Float32, c.Graph.Values[v].Sizes, c.Graph.Values[v].DimOrder, tensor.DynamicBound)
		t.Bind(slices.Clone(c.Tensors[v].Data))
		*c.Tensors[v] = *t
	}
}

// The operators of quantization.
const (
	quantizeOp   = "quantized_decomposed::quantize_per_tensor.out"
	dequantizeOp = "quantized_decomposed::dequantize_per_tensor.out"
)

// Quantize adds a call that quantizes a tensor to int8.
func (c *Calls) Quantize(x Val, scale float64, zero int) Val {
	return c.Call(quantizeOp, []Out{{Rank: len(c.Graph.Values[x].Sizes), Order: c.Graph.Values[x].DimOrder, DType: tensor.Int8}},
		x, scale, zero, -128, 127, int(tensor.Int8))[0]
}

// Dequantize adds a call that dequantizes a tensor of int8.
func (c *Calls) Dequantize(x Val, scale float64, zero int) Val {
	return c.Call(dequantizeOp, []Out{{Rank: len(c.Graph.Values[x].Sizes), Order: c.Graph.Values[x].DimOrder}},
		x, scale, zero, -128, 127, int(tensor.Int8), nil)[0]
}

// Weights adds a float constant whose elements are multiples of per-channel scales along the first
// dimension.
func (c *Calls) Weights(sizes ...int) Val {
	t := c.Random(nil, sizes...)
	list := tensor.View[float32](t.Data)
	inner := len(list) / sizes[0]
	for i := range list {
		list[i] = float32(c.Rand.IntN(255)-127) * (0.003 + 0.0007*float32(i/inner))
	}
	return c.ConstantOf(t)
}
