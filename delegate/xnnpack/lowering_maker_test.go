package xnnpack

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable"
	"github.com/etrun-go/etrun/kernels/quantized"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var portableSet = kernels.NewSet(portable.Ops(), quantized.Ops())

// calls builds a graph of operators for tests. Each call runs the portable kernel immediately, which
// determines the sizes and the expected elements of its results.
type calls struct {
	g       *lowering.Graph
	r       *rand.Rand
	tensors []*tensor.Tensor // by value; nil if it is not a tensor
	lo, hi  float64
	allowed float64        // absolute tolerance; 0: use the relative one
	err     error          // first error of a kernel
	again   []func() error // repeat the calls
	float   tensor.DType   // default dtype of tensors
}

// val is a value of the graph as an argument of a call; vals are a list of them.
type (
	val  int
	vals []val
)

func newCalls(seed uint64) *calls {
	return &calls{g: &lowering.Graph{Method: "forward"}, r: rand.New(rand.NewPCG(seed, 7)), lo: -2, hi: 2, float: tensor.Float32}
}

func (c *calls) add(v lowering.GraphValue, t *tensor.Tensor) val {
	c.g.Values, c.tensors = append(c.g.Values, v), append(c.tensors, t)
	return val(len(c.g.Values) - 1)
}

// tensor adds a tensor value.
func (c *calls) tensor(t *tensor.Tensor) val {
	return c.add(lowering.GraphValue{Kind: tensor.KindTensor, DType: t.DType, Sizes: slices.Clone(t.Sizes), DimOrder: t.DimOrder}, t)
}

func (c *calls) random(order []uint8, sizes ...int) *tensor.Tensor {
	t := tensor.Make(c.float, sizes, order, tensor.Static)
	t.Bind(tensor.AlignedBytes(t.NBytes()))
	numbers := make([]float32, t.Numel())
	for i := range numbers {
		numbers[i] = float32(c.lo + (c.hi-c.lo)*c.r.Float64())
	}
	tensor.Storer[float32](c.float)(t.Data, numbers)
	return t
}

func (c *calls) input(sizes ...int) val { return c.inputIn(nil, sizes...) }

func (c *calls) inputIn(order []uint8, sizes ...int) val {
	v := c.tensor(c.random(order, sizes...))
	c.g.Inputs = append(c.g.Inputs, int(v))
	return v
}

func (c *calls) constant(sizes ...int) val { return c.constantOf(c.random(nil, sizes...)) }

// repeated returns a tensor of equal items.
func (c *calls) repeated(sizes ...int) *tensor.Tensor {
	t := c.random(nil, sizes...)
	for n := len(t.Data) / sizes[0]; n < len(t.Data); n *= 2 {
		copy(t.Data[n:], t.Data[:n])
	}
	return t
}

func (c *calls) constantOf(t *tensor.Tensor) val {
	t.Const = true
	v := c.tensor(t)
	c.g.Values[v].Data = t.Data
	return v
}

// argument returns the graph value and kernel argument for a Go value: nil is None.
func (c *calls) argument(a any) (val, *tensor.Value) {
	var v tensor.Value
	switch a := a.(type) {
	case nil:
	case val:
		return a, new(tensor.TensorValue(c.tensors[a]))
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
	case []int, vals:
		return c.list(a)
	default:
		panic(fmt.Sprintf("argument of type %T", a))
	}
	return c.add(lowering.GraphValue{Kind: v.Kind, Bool: v.Bool, Int: v.Int, Double: v.Double, Str: v.Str, Doubles: v.Doubles}, nil), &v
}

func (c *calls) list(a any) (val, *tensor.Value) {
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
	case vals:
		kind = tensor.KindTensorList
		for _, x := range a {
			one(x)
		}
	}
	return c.add(lowering.GraphValue{Kind: kind, Items: items}, nil), new(tensor.NewList(kind, values))
}

// out describes the tensors that a call computes.
type out struct {
	rank  int
	order []uint8
	dtype tensor.DType // 0: calls.float
	one   bool         // has one element before the call
	list  int          // number of tensors in a list; 0: one tensor, no list
}

func (c *calls) result(o out) val {
	d := o.dtype
	if d == 0 {
		d = c.float
	}
	t := tensor.Make(d, make([]int, o.rank), o.order, tensor.DynamicUnbound)
	if o.one {
		t = tensor.New(d, 1)
	}
	return c.tensor(t)
}

// call adds a call and runs it. The outs follow the arguments; the slot of the result is last.
func (c *calls) call(op string, outs []out, args ...any) vals {
	row, sig, ok, err := portableSet.Lookup(op)
	if !ok || err != nil {
		panic("no operator " + op)
	}
	var slots []int
	var values kernels.Args
	add := func(v val, x *tensor.Value) { slots, values = append(slots, int(v)), append(values, x) }
	for _, a := range args {
		add(c.argument(a))
	}
	var results vals
	for _, o := range outs {
		if o.list == 0 {
			v := c.result(o)
			results = append(results, v)
			add(c.argument(v))
			continue
		}
		for range o.list {
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
	c.again = append(c.again, again)
	if err := again(); err != nil && c.err == nil {
		c.err = fmt.Errorf("%s: %w", op, err)
	}
	for _, v := range results {
		c.g.Values[v].Sizes = slices.Clone(c.tensors[v].Sizes)
	}
	c.g.Calls = append(c.g.Calls, lowering.GraphCall{Op: row, Sig: sig, Args: slots, Place: fmt.Sprintf("call %d (%s)", len(c.g.Calls), op)})
	return results
}

// do adds a call with one contiguous result.
func (c *calls) do(op string, rank int, args ...any) val {
	return c.call(op, []out{{rank: rank}}, args...)[0]
}

// view adds a view without an operator.
func (c *calls) view(x val, sizes ...int) val {
	t := tensor.Make(c.float, sizes, nil, tensor.Static)
	t.Bind(c.tensors[x].Data)
	v := c.tensor(t)
	c.g.Calls = append(c.g.Calls, lowering.GraphCall{View: true, Args: []int{int(x), int(v)}, Place: fmt.Sprintf("call %d (view)", len(c.g.Calls))})
	return v
}

func (c *calls) outputs(list ...val) *calls {
	for _, v := range list {
		if !slices.Contains(c.g.Outputs, int(v)) {
			c.g.Outputs = append(c.g.Outputs, int(v))
		}
	}
	return c
}

// arguments returns the inputs' tensors and new ones for the outputs.
func (c *calls) arguments() (args []*tensor.Value) {
	for _, v := range c.g.Inputs {
		args = append(args, new(tensor.TensorValue(c.tensors[v])))
	}
	for _, v := range c.g.Outputs {
		x := &c.g.Values[v]
		t := tensor.Make(x.DType, x.Sizes, x.DimOrder, x.Dynamism)
		t.Bind(tensor.AlignedBytes(t.NBytes()))
		args = append(args, new(tensor.TensorValue(t)))
	}
	return args
}

// compilers returns a backend per available engine.
func compilers() (list []Backend) {
	list = append(list, Backend{Engine: EngineGo})
	if _, err := xnn.Open(xnntest.Path()); err == nil {
		list = append(list, Backend{Engine: EngineNative, Library: xnntest.Path()})
	}
	return list
}

// check compiles the graph for each engine and compares its outputs with those of the
// portable kernels. Every call must be accepted.
func (c *calls) check(t *testing.T, tolerance float64) {
	t.Helper()
	if c.err != nil {
		t.Fatal(c.err)
	}
	for i := range c.g.Calls {
		if reason := (Backend{}).Accepts(c.g, i); reason != "" {
			t.Fatalf("%s: got %q, want it accepted", c.g.Calls[i].Place, reason)
		}
	}
	for _, b := range compilers() {
		img, err := b.CompileGraph(context.Background(), c.g)
		if isFault(err) {
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", b.Engine, err)
		}
		if err := c.run(img, tolerance); err != nil {
			t.Errorf("%s: %v", b.Engine, err)
		}
		img.Close()
	}
}

func (c *calls) run(img delegate.Image, tolerance float64) error {
	u, err := img.Unit(delegate.Instance{Pool: cpu.NewPool(1)})
	if err != nil {
		return err
	}
	defer u.Close()
	args := c.arguments()
	if err := u.Execute(context.Background(), args); err != nil {
		return err
	}
	for i, v := range c.g.Outputs {
		if c.allowed > 0 {
			tolerance = c.allowed / max(1, graphtest.Largest(graphtest.NumbersOf(c.tensors[v])))
		}
		if err := near(args[len(c.g.Inputs)+i].Tensor, c.tensors[v], tolerance); err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
	}
	return nil
}

// near compares tensors with a tolerance relative to the largest number.
func near(got, want *tensor.Tensor, tolerance float64) error {
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
