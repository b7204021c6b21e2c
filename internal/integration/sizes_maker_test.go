package integration

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable"
	"github.com/etrun-go/etrun/kernels/quantized"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/exec/exectest"
	"github.com/etrun-go/etrun/runtime/pte"
)

// sizedOps are the operators of programs whose sizes vary.
var sizedOps = kernels.NewSet(portable.Ops(), quantized.Ops())

// sized generates programs of floats whose inputs have sizes that vary, with the calls of real ones.
type sized struct {
	exectest.Flow
	bounds []int   // of the sizes that vary; equal ones vary together, most of the time
	dims   [][]int // by input: the indexes in bounds of the sizes that vary; -1-n for a size of n
	// tensors are the values at the sizes at which a program is evaluated while it is generated: at the bounds of all sizes that
	// vary, at 1, and at about half of the bounds. Without the last, calls may fail at all sizes between the first two.
	tensors []map[int]*tensor.Tensor
	ops     map[string]int // index among the program's operators
	read    map[int]bool   // values that calls read
	results []int          // of calls
	loose   map[int]bool   // values that are declared to vary although they do not
	codes   bool           // it may quantize
	widths  []int          // sizes that do not vary
	rows    bool           // the first size of all inputs is the first bound
	keeps   int            // how many states it has
	states  [][2]val       // and what they become
}

// maxElements bounds the elements of a tensor.
const maxElements = 20000

// narrow are the sizes of inputs that do not vary.
var narrow = []int{1, 2, 3, 4, 8}

// val is a value of the program; the others are numbers, lists and so on.
type val int

// newSized returns a random program, and how its inputs' sizes vary.
func newSized(r *rand.Rand, widths ...int) *sized {
	s := emptySized(r, 2+min(1, r.IntN(4)))
	s.widths = widths
	return s.make()
}

// newRows is newSized with as many rows in each input: the first size.
func newRows(r *rand.Rand) *sized {
	s := emptySized(r, 3)
	s.widths, s.rows = narrow, true
	return s.make()
}

func (s *sized) make() *sized {
	r := s.R
	for range 1 + r.IntN(3) {
		s.bounds = append(s.bounds, 2+r.IntN(7))
		if r.IntN(3) == 0 { // sizes that are declared alike
			s.bounds = append(s.bounds, s.bounds[0])
		}
	}
	s.codes = r.IntN(4) == 0
	s.inputs()
	for range s.keeps {
		s.recurrent()
	}
	calls := 3 + r.IntN(20)
	for tries := 0; tries < 3*calls && s.Next() < calls; tries++ {
		s.grow()
	}
	s.finish()
	return s
}

func emptySized(r *rand.Rand, settings int) *sized {
	s := &sized{Flow: exectest.Flow{R: r}, ops: make(map[string]int), read: make(map[int]bool), loose: make(map[int]bool)}
	s.M.Name, s.M.Chains = "forward", make([]pte.Chain, 1)
	for range settings {
		s.tensors = append(s.tensors, make(map[int]*tensor.Tensor))
	}
	return s
}

// inputs adds up to three inputs, most of them of the same declared sizes or of parts of these.
func (s *sized) inputs() {
	for range 1 + s.R.IntN(3) {
		dims, order := s.newDims(oneOf(s, 2, 2, 2, 3, 4, 4)), []uint8(nil)
		if len(s.dims) > 0 && s.R.IntN(4) > 0 {
			dims = s.likeDims(s.dims[0])
		}
		if len(dims) == 4 && s.R.IntN(3) == 0 {
			order = []uint8{0, 2, 3, 1}
		}
		if s.rows {
			dims[0] = 0
		}
		s.input(order, dims...)
	}
}

// input adds an input; dims are as in s.dims.
func (s *sized) input(order []uint8, dims ...int) val {
	v := s.tensor(tensor.Float32, len(dims), order)
	s.dims = append(s.dims, dims)
	s.M.Inputs, s.Defined = append(s.M.Inputs, v), append(s.Defined, v)
	for k := range s.tensors {
		s.tensors[k][v] = s.random(s.sizesAt(dims, k), order)
	}
	return val(v)
}

func (s *sized) newDims(rank int) []int {
	dims, elements := make([]int, rank), 1
	for i := range dims {
		n := oneOf(s, s.widths...)
		if dims[i] = -1 - n; s.R.IntN(2) == 0 && (rank < 4 || i != 1) {
			dims[i] = s.R.IntN(len(s.bounds))
			n = s.bounds[dims[i]]
		}
		if elements *= n; elements > maxElements {
			dims[i], elements = -2, elements/n
		}
	}
	return dims
}

// likeDims returns the dimensions of another input, some of them as others that are declared alike, or as 1.
func (s *sized) likeDims(dims []int) []int {
	dims = slices.Clone(dims)
	for i, d := range dims {
		switch other := s.R.IntN(len(s.bounds)); {
		case s.R.IntN(8) == 0:
			dims[i] = -2
		case d >= 0 && s.bounds[other] == s.bounds[d]:
			dims[i] = other
		case d < 0 && s.bounds[other] == -1-d:
			dims[i] = other
		}
	}
	return dims
}

// sizesAt returns the sizes of an input in a setting.
func (s *sized) sizesAt(dims []int, setting int) []int {
	sizes := make([]int, len(dims))
	for i, d := range dims {
		if sizes[i] = -1 - d; d >= 0 {
			sizes[i] = []int{s.bounds[d], 1, (s.bounds[d] + 1) / 2}[setting]
		}
	}
	return sizes
}

// sizesOf returns the sizes of all inputs of a random call: within the bounds, and often at them.
func (s *sized) sizesOf(r *rand.Rand) (list [][]int) {
	at := make([]int, len(s.bounds))
	for i, b := range s.bounds {
		at[i] = []int{b, 1, 1 + r.IntN(b), 1 + r.IntN(b)}[r.IntN(4)]
	}
	for _, dims := range s.dims {
		sizes := make([]int, len(dims))
		for i, d := range dims {
			switch {
			case d < 0:
				sizes[i] = -1 - d
			case r.IntN(6) == 0:
				sizes[i] = 1
			default:
				sizes[i] = at[d]
			}
		}
		list = append(list, sizes)
	}
	return list
}

func (s *sized) random(sizes []int, order []uint8) *tensor.Tensor {
	t := tensor.Make(tensor.Float32, sizes, order, tensor.Static)
	t.Bind(tensor.AlignedBytes(t.NBytes()))
	for i := range tensor.Data[float32](t) {
		tensor.Data[float32](t)[i] = float32(4*s.R.Float64() - 2)
	}
	return t
}

// tensor adds a tensor whose sizes are set at the end.
func (s *sized) tensor(d tensor.DType, rank int, order []uint8) int {
	if order == nil {
		order = []uint8{0, 1, 2, 3, 4, 5}[:rank]
	}
	s.M.Values = append(s.M.Values, pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: d, Sizes: make([]int, rank),
		DimOrder: order}})
	return len(s.M.Values) - 1
}

// constant adds a constant of random numbers.
func (s *sized) constant(sizes ...int) val {
	t := s.random(sizes, nil)
	v := s.tensor(tensor.Float32, len(sizes), nil)
	to := s.M.Values[v].Tensor
	to.Sizes, to.Storage, to.Data = sizes, pte.Constant, t.Data
	for k := range s.tensors {
		s.tensors[k][v] = t
	}
	return val(v)
}

// made adds a call that does not fail.
func (s *sized) made(op string, rank int, args ...any) val {
	v, ok := s.do(op, []out{{rank: rank}}, args...)
	if !ok {
		panic(op + " fails")
	}
	s.Defined = append(s.Defined, int(v))
	return v
}

// recurrent adds a state of a row, and a layer that computes the next one from it and the mean row of a value, often with a gate. What is
// behind it may read the next state.
func (s *sized) recurrent() {
	x, n := val(oneOf(s, s.M.Inputs...)), oneOf(s, s.widths...)
	state := val(s.tensor(tensor.Float32, 2, nil))
	t := s.M.Values[state].Tensor
	t.Storage, t.Offset, s.M.Arenas = pte.Planned, int64(4096*len(s.states)), []pte.Arena{{Size: 1 << 20}}
	for k := range s.tensors {
		s.tensors[k][int(state)] = s.random([]int{1, n}, nil)
	}
	row := func(op string, args ...any) val { return s.made("aten::"+op, 2, args...) }
	linear := func(x val) val {
		w := s.constant(n, s.sizes(x)[1])
		for i := range tensor.Data[float32](s.tensors[0][int(w)]) { // noise does not grow from call to call
			tensor.Data[float32](s.tensors[0][int(w)])[i] /= float32(s.sizes(x)[1])
		}
		return row("linear.out", x, w, oneOf[any](s, nil, s.constant(n)))
	}
	seen, next := s.constant(1, n), linear(state)
	if rank := len(s.sizes(x)); rank > 1 && slices.Equal(s.tensors[0][int(x)].Sizes[rank-1:], s.tensors[1][int(x)].Sizes[rank-1:]) {
		mean := s.made("aten::mean.out", 1, x, []int{0, 1, 2}[:rank-1], false, nil)
		seen = linear(row("unsqueeze_copy.out", mean, 0))
	}
	next = row("tanh.out", row("add.out", next, seen, 1))
	if s.R.IntN(2) == 0 { // what is left of the state, and added to it
		gate := row("sigmoid.out", linear(state))
		left := row("mul.out", gate, state)
		next = row("add.out", left, row("mul.out", row("rsub.Scalar_out", gate, 1, 1), next), 1)
	}
	s.states, s.Defined = append(s.states, [2]val{state, next}), append(s.Defined, int(next))
}

// argument adds an argument of a call.
func (s *sized) argument(a any) int {
	v := pte.Value{}
	switch a := a.(type) {
	case val:
		return int(a)
	case nil:
	case int:
		v.Kind, v.Int = tensor.KindInt, int64(a)
	case float64:
		v.Kind, v.Double = tensor.KindDouble, a
	case bool:
		v.Kind, v.Bool = tensor.KindBool, a
	case string:
		v.Kind, v.Long = tensor.KindString, &pte.Long{Str: a}
	case []int:
		v.Kind = tensor.KindIntList
		for _, n := range a {
			v.Items = append(v.Items, s.argument(n))
		}
	case []val:
		v.Kind = tensor.KindTensorList
		for _, n := range a {
			v.Items = append(v.Items, int(n))
		}
	default:
		panic(fmt.Sprintf("argument of type %T", a))
	}
	s.M.Values = append(s.M.Values, v)
	return len(s.M.Values) - 1
}

// in returns a value as an operator's argument in a setting.
func (s *sized) in(setting, v int) *tensor.Value {
	x := &s.M.Values[v]
	switch x.Kind {
	case tensor.KindTensor:
		return new(tensor.TensorValue(s.tensors[setting][v]))
	case tensor.KindIntList, tensor.KindTensorList:
		items := make([]*tensor.Value, len(x.Items))
		for i, item := range x.Items {
			items[i] = s.in(setting, item)
		}
		return new(tensor.NewList(x.Kind, items))
	}
	return new(x.Scalar())
}

// out describes a result.
type out struct {
	rank  int
	order []uint8
	dtype tensor.DType // 0: float32
}

// do adds a call, unless it fails in a setting or its numbers are too large. Only the first result is read.
func (s *sized) do(op string, outs []out, args ...any) (result val, ok bool) {
	before := len(s.M.Values)
	var list []int
	for _, a := range args {
		list = append(list, s.argument(a))
	}
	first := len(list)
	for _, o := range outs {
		if o.dtype == 0 {
			o.dtype = tensor.Float32
		}
		list = append(list, s.tensor(o.dtype, o.rank, o.order))
	}
	results := list[first:]
	if !s.evaluate(op, list, results) {
		s.M.Values = s.M.Values[:before]
		return 0, false
	}
	for _, v := range list[:first] {
		s.read[v] = true
		for _, item := range s.M.Values[v].Items {
			s.read[item] = true
		}
	}
	s.Call(s.operator(op), s.withResult(op, list, results)...)
	s.results = append(s.results, results...)
	return val(results[0]), true
}

// withResult adds the slot of what an operator returns.
func (s *sized) withResult(op string, list, results []int) []int {
	_, sig, _, _ := sizedOps.Lookup(op)
	switch {
	case len(list) == sig.Slots():
		return list
	case len(results) == 1:
		return append(slices.Clone(list), results[0])
	}
	s.M.Values = append(s.M.Values, pte.Value{Kind: tensor.KindTensorList, Items: results})
	return append(slices.Clone(list), len(s.M.Values)-1)
}

// evaluate computes the results in all settings.
func (s *sized) evaluate(op string, list, results []int) bool {
	row, sig, ok, err := sizedOps.Lookup(op)
	if !ok || err != nil {
		panic("no operator " + op)
	}
	for k := range s.tensors {
		for _, v := range results {
			t := s.M.Values[v].Tensor
			s.tensors[k][v] = tensor.Make(t.DType, make([]int, len(t.Sizes)), t.DimOrder, tensor.DynamicUnbound)
			s.tensors[k][v].Limit(maxElements)
		}
		var args kernels.Args
		for _, v := range list {
			args = append(args, s.in(k, v))
		}
		if len(args) < sig.Slots() {
			args = append(args, args[len(args)-1])
		}
		if sig.Check(args) != nil || row.Func(kernels.NewCtx(nil), args) != nil || !s.good(k, results[0]) {
			return false
		}
	}
	return true
}

// operator returns the index of an operator.
func (s *sized) operator(op string) int {
	if _, ok := s.ops[op]; !ok {
		s.ops[op] = len(s.M.Operators)
		name, overload := exectest.SplitName(op)
		s.M.Operators = append(s.M.Operators, pte.Operator{Name: name, Overload: overload})
	}
	return s.ops[op]
}

// good reports whether a result has elements, not too many, and no more than at the bounds.
func (s *sized) good(setting, v int) bool {
	t, most := s.tensors[setting][v], s.tensors[0][v]
	for i, n := range t.Sizes {
		if n < 1 || n > most.Sizes[i] {
			return false
		}
	}
	if t.Numel() > maxElements || t.DType != tensor.Float32 {
		return t.Numel() <= maxElements
	}
	return !slices.ContainsFunc(tensor.Data[float32](t), func(x float32) bool { return !(math.Abs(float64(x)) < 1e3) })
}

// try adds a call whose result later ones may read.
func (s *sized) try(op string, o out, args ...any) {
	if v, ok := s.do(op, []out{o}, args...); ok {
		s.Defined = append(s.Defined, int(v))
	}
}

// finish declares sizes and outputs: what no call reads, and others.
func (s *sized) finish() {
	s.declare()
	for _, p := range s.states {
		s.Call(s.operator("aten::copy_"), int(p[0]), int(p[1]), s.argument(false), int(p[0]))
	}
	made := s.Defined[len(s.M.Inputs):]
	for i, v := range made {
		if s.R.IntN(4) == 0 || i == len(made)-1 || !s.read[v] {
			s.M.Outputs = append(s.M.Outputs, v)
		}
	}
	for _, v := range s.results { // rewrites drop calls whose results are unused, and what they refuse
		if !s.read[v] && !slices.Contains(s.M.Outputs, v) {
			s.M.Outputs = append(s.M.Outputs, v)
		}
	}
	s.free()
}

// free adds FreeCalls, which do nothing to values with bounds.
func (s *sized) free() {
	list := s.M.Chains[0].Instructions
	for range s.R.IntN(4) {
		list = slices.Insert(list, s.R.IntN(len(list)+1), pte.Instruction{Kind: pte.FreeCall, Index: oneOf(s, s.Defined...)})
	}
	s.M.Chains[0].Instructions = list
}

// declare declares sizes and dynamism.
func (s *sized) declare() {
	for v := range s.M.Values {
		t := s.M.Values[v].Tensor
		if t == nil || t.Storage == pte.Constant {
			continue
		}
		t.Sizes = slices.Clone(s.tensors[0][v].Sizes)
		for k := range s.tensors {
			if s.loose[v] || !slices.Equal(s.tensors[k][v].Sizes, t.Sizes) {
				t.Dynamism = tensor.DynamicBound
			}
		}
	}
}
