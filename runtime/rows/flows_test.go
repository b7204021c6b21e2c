package rows

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/cortexm"
	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/llm"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/portable"
	"github.com/etrun-go/etrun/kernels/quantized"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/pte"
)

// moreCalls are calls with rows, or with one tensor in several roles, beside those that kerneltest has.
var moreCalls = []string{
	"aten::linear.out(float32[4 4], float32[4 4], None, float32[4 4])",
	"aten::linear.out(float32[2 4 4], float32[3 4], float32[3], float32[2 4 3])",
	"aten::mm.out(float32[4 4], float32[4 4], float32[4 4])",
	"aten::bmm.out(float32[4 4 4], float32[4 4 4], float32[4 4 4])",
	"aten::addmm.out(float32[4 4], float32[4 4], float32[4 4], 1, 1, float32[4 4])",
	"aten::addmm.out(float32[4], float32[6 2], float32[2 4], 1, 1, float32[6 4])",
	"aten::native_layer_norm.out(float32[2 4], [4], float32[4], float32[4], 1e-5, float32[2 4], float32[2 1], float32[2 1])",
	"aten::convolution.out(float32[2 2 2 2], float32[2 2 2 2], None, [1 1], [1 1], [1 1], false, [0 0], 1, float32[2 2 3 3])",
	"aten::convolution.out(float32[4 2 3 3], float32[2 2 1 1], float32[2], [1 1], [0 0], [1 1], true, [0 0], 1, float32[4 2 3 3])",
	"aten::embedding.out(int64[4 4], int64[4 4], -1, false, false, int64[4 4 4])",
	"aten::gather.out(int64[4 4], 1, int64[4 4], false, int64[4 4])",
	"aten::scatter_add.out(int64[4 4], 1, int64[4 4], int64[4 4], int64[4 4])",
	"aten::scatter.value_reduce_out(float32[4 4], 1, int64[4 4], 2.0, \"add\", float32[4 4])",
	"aten::where.self_out(bool[4 4], bool[4 4], bool[4 4], bool[4 4])",
	"aten::cat.out([float32[4 2] float32[4 2]], 1, float32[4 4])",
	"aten::cat.out([float32[4 2] float32[4 2]], 0, float32[8 2])",
	"aten::stack.out([float32[4 2] float32[4 2]], 0, float32[2 4 2])",
	"aten::index_select.out(int64[4], 0, int64[4], int64[4])",
	"aten::index.Tensor_out(int64[4 4], [None int64[4 4]], int64[4 4 4])",
	"aten::index.Tensor_out(float32[4 3 3], [None int64[2] None], float32[4 2 3])",
	"aten::index.Tensor_out(float32[4 3 3], [None int64[3] int64[3]], float32[4 3])",
	"aten::index.Tensor_out(float32[3 4 3], [int64[4] None int64[4]], float32[4 4])",
	"aten::index.Tensor_out(float32[4 3], [None bool[3]], float32[4 2])",
	"aten::slice_copy.Tensor_out(float32[4 4], 0, 0, 9223372036854775807, 1, float32[4 4])",
	"aten::bucketize.Tensor_out(float32[4], float32[4], false, false, int64[4])",
	"aten::sort.values(float32[4 3], -1, false, float32[4 3], int64[4 3])",
	"aten::sort.values_stable(float32[4 3], true, 0, false, float32[4 3], int64[4 3])",
	"aten::var.out(float32[4 3], [1], true, false, float32[4])",
	"aten::logsumexp.out(float32[4 3], [0], true, float32[1 3])",
	"aten::pixel_shuffle.out(float32[2 4 2 2], 2, float32[2 1 4 4])",
	"aten::pixel_unshuffle.out(float32[2 1 4 4], 2, float32[2 4 2 2])",
	"aten::avg_pool3d.out(float32[2 2 2 2 2], [2 2 1], [1 1 1], [0 0 0], false, true, None, float32[2 2 1 1 2])",
	"aten::_adaptive_avg_pool3d.out(float32[2 2 2 2 2], [1 1 2], float32[2 2 1 1 2])",
	"aten::max_pool3d_with_indices.out(float32[2 1 1 2 4], [1 2 2], [1 2 2], [0 0 0], [1 1 1], false, float32[2 1 1 1 2], int64[2 1 1 1 2])",
	"etrun::zero_masked_rows.out(float32[4 4], float32[4 4], float32[4 4])",
	"aten::expand_copy.out(float32[4 1 2], [4 3 2], false, float32[4 3 2])",
	"aten::expand_copy.out(float32[4 1 2], [-1 4 -1], false, float32[4 4 2])",
	"aten::repeat.out(float32[4 2], [1 4 1], float32[1 16 2])",
	"aten::repeat.out(float32[4 2], [2 1 3], float32[2 4 6])",
	"aten::view_copy.out(float32[4 6], [-1 2 3], float32[4 2 3])",
	"aten::view_copy.out(float32[4 6], [8 3], float32[8 3])",
	"aten::view_copy.out(float32[4 6], [6 -1], float32[6 4])",
	"aten::view_copy.out(float32[3 4 6], [3 8 -1], float32[3 8 3])",
}

// examples returns calls of an operator, few of which suffice.
func examples(t *testing.T, op string) (list [][]any) {
	for _, line := range moreCalls {
		name, args, err := kerneltest.ParseCall(line)
		if err != nil {
			t.Fatal(err)
		}
		if name == op {
			list = append(list, args)
		}
	}
	all := kerneltest.Examples(op)
	for i := 0; i < len(all); i += 1 + len(all)/8 {
		list = append(list, all[i])
	}
	return list
}

// TestFlows checks what the rows of all operators say of their flow, and the rules, against calls: wherever tensors have rows, the
// first row is made equal to the second. If the rule finds rows in the outs, their first row must become the second, and all
// others must not change. Operands of the same sizes are also one tensor, which has several roles. Each flow must have rows in
// some call of the operator.
func TestFlows(t *testing.T) {
	set := kernels.NewSet(portable.Ops(), quantized.Ops(), llm.Ops(), cortexm.Ops())
	ruled := make(map[opclass.Flow]bool)
	for _, name := range set.Names() {
		op, sig, _, err := set.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		if op.Flow == opclass.Mixed {
			continue
		}
		ruled[op.Flow] = true
		found := 0
		for _, args := range examples(t, name) {
			for _, equal := range [...]bool{false, true} {
				if e := newExample(set, op, sig, args, equal); e != nil {
					found += e.check(t)
				}
			}
		}
		if found == 0 {
			t.Errorf("%s: no call has rows, flow %d", name, op.Flow)
		}
	}
	for flow := range opclass.Flows {
		if (rules[flow] != nil) != ruled[flow] {
			t.Errorf("flow %d: a rule: %v, an operator: %v", flow, rules[flow] != nil, ruled[flow])
		}
	}
}

// example is a call of an operator, and what is assumed of its rows.
type example struct {
	set   *kernels.Set
	args  []any
	call  call
	value []*tensor.Tensor // by value of the method: inputs
	free  []int            // values of inputs
	dims  []int            // by value
	per   int              // the value of a number that depends on the rows, -1 for none
	n     int              // rows
}

func (e *example) rowsOf(v int) int  { return e.dims[v] }
func (e *example) count() int        { return e.n }
func (e *example) sizes(v int) []int { return e.call.m.Values[v].Tensor.Sizes }

func (e *example) number(v int) (int64, bool) {
	x := &e.call.m.Values[v]
	return x.Int, x.Kind == tensor.KindInt && v != e.per
}

func (e *example) counted(v int) dependence {
	if v == e.per {
		return perRow
	}
	return fixed
}

// mostElements bounds the tensors of a call that is checked.
const mostElements = 1024

// newExample returns a call on random elements; nil if that is not possible. If equal, operands of the same sizes are one tensor.
func newExample(set *kernels.Set, op *kernels.Op, sig *kernels.Signature, args []any, equal bool) *example {
	e := &example{set: set, args: slices.Clone(args), per: None}
	method := &pte.Method{Name: "forward", Operators: []pte.Operator{{Name: op.Name()}}}
	random := rand.New(rand.NewPCG(1, uint64(len(args))))
	shared := false
	add := func(v pte.Value, t *tensor.Tensor) int {
		method.Values, e.value = append(method.Values, v), append(e.value, t)
		return len(method.Values) - 1
	}
	one := func(t *tensor.Tensor, out bool) int {
		if t == nil {
			return add(pte.Value{}, nil)
		}
		for v, u := range e.value {
			if equal && !out && u != nil && slices.Contains(method.Inputs, v) && u.DType == t.DType && slices.Equal(u.Sizes, t.Sizes) {
				shared = true
				return v
			}
		}
		c := &pte.Tensor{DType: t.DType, Sizes: slices.Clone(t.Sizes), DimOrder: t.DimOrder, Dynamism: tensor.Static}
		filled := tensor.Make(t.DType, t.Sizes, t.DimOrder, tensor.Static)
		filled.Bind(tensor.AlignedBytes(filled.NBytes()))
		fill(filled, random)
		v := add(pte.Value{Kind: tensor.KindTensor, Tensor: c}, filled)
		if !out {
			method.Inputs = append(method.Inputs, v)
		}
		return v
	}
	var slots []int
	for p, a := range args {
		out := p >= len(sig.Args) || sig.Args[p].Out
		if list, ok := a.([]*tensor.Tensor); ok {
			var items []int
			for _, t := range list {
				items = append(items, one(t, out))
			}
			slots = append(slots, add(pte.Value{Kind: tensor.KindTensorList, Items: items}, nil))
			continue
		}
		if x, ok := a.(*tensor.Tensor); ok {
			if x.Numel() > mostElements {
				return nil
			}
			slots = append(slots, one(x, out))
			continue
		}
		v, ok := scalar(a, add)
		if !ok {
			return nil
		}
		slots = append(slots, v)
	}
	if len(slots) < sig.Slots() {
		slots = append(slots, slots[len(slots)-1])
	}
	if equal && !shared {
		return nil
	}
	method.Chains = []pte.Chain{{Instructions: []pte.Instruction{{Kind: pte.KernelCall, Args: slots}}}}
	m, err := ir.Build(method, ir.Links{Operators: []ir.Operator{{Op: op, Sig: sig}}})
	if err != nil {
		return nil
	}
	e.call, e.free, e.dims = call{e, &m.Steps[0], m}, method.Inputs, make([]int, len(m.Values))
	return e
}

// scalar adds an argument that is no tensor.
func scalar(a any, add func(pte.Value, *tensor.Tensor) int) (v int, ok bool) {
	ints := func(list []int64) int {
		var items []int
		for _, n := range list {
			items = append(items, add(pte.Value{Kind: tensor.KindInt, Int: n}, nil))
		}
		return add(pte.Value{Kind: tensor.KindIntList, Items: items}, nil)
	}
	switch a := a.(type) {
	case nil:
		return add(pte.Value{}, nil), true
	case bool:
		return add(pte.Value{Kind: tensor.KindBool, Bool: a}, nil), true
	case int:
		return add(pte.Value{Kind: tensor.KindInt, Int: int64(a)}, nil), true
	case int64:
		return add(pte.Value{Kind: tensor.KindInt, Int: a}, nil), true
	case tensor.DType:
		return add(pte.Value{Kind: tensor.KindInt, Int: int64(a)}, nil), true
	case float64:
		return add(pte.Value{Kind: tensor.KindDouble, Double: a}, nil), true
	case string:
		return add(pte.Value{Kind: tensor.KindString, Long: &pte.Long{Str: a}}, nil), true
	case []int64:
		return ints(a), true
	case []int:
		var list []int64
		for _, n := range a {
			list = append(list, int64(n))
		}
		return ints(list), true
	case []float64:
		return add(pte.Value{Kind: tensor.KindDoubleList, Long: &pte.Long{Doubles: a}}, nil), true
	case []bool:
		return add(pte.Value{Kind: tensor.KindBoolList, Long: &pte.Long{Bools: a}}, nil), true
	}
	return 0, false
}

func fill(t *tensor.Tensor, random *rand.Rand) {
	if t.DType.IsComplex() {
		for i := range t.Data {
			t.Data[i] = byte(random.IntN(60)) // small numbers
		}
		return
	}
	for rest := t.Data; len(rest) > 0; rest = rest[t.DType.Size():] {
		if t.DType.IsFloat() {
			tensor.Put(rest, t.DType, random.Float64()+0.1)
		} else {
			tensor.Put(rest, t.DType, float64(random.IntN(2)))
		}
	}
}

// check tries all dimensions of rows of the inputs, at most three of which have some, and returns how often the outs had rows.
func (e *example) check(t *testing.T) (found int) {
	base, err := e.outs(e.value)
	if err != nil || len(e.free) > 3 {
		return 0
	}
	counts := []int{None}
	for v := range e.call.m.Values {
		if x := &e.call.m.Values[v]; x.Kind == tensor.KindInt && x.Int > 1 && x.Int < mostElements {
			counts = append(counts, v)
		}
	}
	e.assign(0, func() {
		for _, e.per = range counts {
			for _, e.n = range e.possible() {
				dim, ok := e.call.rows()
				if ok && e.fits(base, dim) {
					found++
					e.compare(t, base, dim)
				}
			}
		}
	})
	return found
}

// assign calls f for each choice of dimensions of the inputs from i on.
func (e *example) assign(i int, f func()) {
	if i == 0 {
		for v := range e.dims {
			e.dims[v] = None
		}
	}
	if i == len(e.free) {
		f()
		return
	}
	v := e.free[i]
	for d := None; d < len(e.sizes(v)); d++ {
		e.dims[v] = d
		e.assign(i+1, f)
	}
	e.dims[v] = None
}

// possible returns the numbers of rows that the sizes allow: each row may have several indices.
func (e *example) possible() (list []int) {
	most := math.MaxInt
	for _, v := range e.free {
		if d := e.dims[v]; d != None {
			most = min(most, e.sizes(v)[d])
		}
	}
	if e.per != None {
		most = min(most, int(e.call.m.Values[e.per].Int))
	}
	for n := 2; most < math.MaxInt && n <= most; n++ {
		divides := e.per == None || int(e.call.m.Values[e.per].Int)%n == 0
		for _, v := range e.free {
			d := e.dims[v]
			divides = divides && (d == None || e.sizes(v)[d]%n == 0)
		}
		if divides {
			list = append(list, n)
		}
	}
	return list
}

// fits reports whether results have the rows, as those of a run must.
func (e *example) fits(outs []*tensor.Tensor, dim int) bool {
	return !slices.ContainsFunc(outs, func(t *tensor.Tensor) bool {
		return t.Numel() > 0 && (dim < 0 || dim >= t.Rank() || t.Sizes[dim]%e.n != 0)
	})
}

// compare makes the first row equal to the second.
func (e *example) compare(t *testing.T, base []*tensor.Tensor, dim int) {
	changed := slices.Clone(e.value)
	for _, v := range e.free {
		if d := e.dims[v]; d != None {
			changed[v] = e.repeated(e.value[v], d)
		}
	}
	outs, err := e.outs(changed)
	if err != nil {
		return // such as duplicate indices
	}
	for i, got := range outs {
		if got.Numel() == 0 {
			continue
		}
		if want := e.repeated(base[i], dim); !e.near(got, want) {
			t.Errorf("%s, rows %d of %v along %v, number %d: out %d is not computed by row along %d", e.text(), e.n, e.free, e.dims, e.per, i, dim)
		}
	}
}

// text describes the call.
func (e *example) text() string {
	var b strings.Builder
	for _, v := range e.call.s.Args {
		x := &e.call.m.Values[v]
		switch {
		case x.Tensor != nil:
			fmt.Fprintf(&b, " %d:%v%v", v, x.Tensor.DType, x.Tensor.Sizes)
		case x.Kind == tensor.KindInt:
			fmt.Fprintf(&b, " %d:%d", v, x.Int)
		default:
			fmt.Fprintf(&b, " %d:%v", v, x.Items())
		}
	}
	return e.call.s.Op.Name() + b.String()
}

// repeated returns a copy of a tensor whose first row is the second, too.
func (e *example) repeated(t *tensor.Tensor, dim int) *tensor.Tensor {
	c := tensor.Make(t.DType, t.Sizes, t.DimOrder, tensor.Static)
	c.Bind(bytes.Clone(t.Data))
	size, per := t.DType.Size(), t.Sizes[dim]/e.n
	for i := range t.Numel() {
		at := indexOf(t, i)
		if at[dim] < per {
			from := slices.Clone(at)
			from[dim] += per
			copy(c.Data[offset(t, at)*size:][:size], t.Data[offset(t, from)*size:][:size])
		}
	}
	return c
}

// indexOf returns the indices of the element i in logical order.
func indexOf(t *tensor.Tensor, i int) []int {
	at := make([]int, t.Rank())
	for d := t.Rank() - 1; d >= 0; d-- {
		at[d], i = i%t.Sizes[d], i/t.Sizes[d]
	}
	return at
}

// offset returns the position of an element in memory.
func offset(t *tensor.Tensor, at []int) (n int) {
	for _, d := range t.DimOrder {
		n = n*t.Sizes[d] + at[d]
	}
	return n
}

// near compares tensors: sums may be in another order.
func (e *example) near(a, b *tensor.Tensor) bool {
	if bytes.Equal(a.Data, b.Data) {
		return true
	}
	if !a.DType.IsFloat() || e.call.s.Op.Family < kernels.Sum {
		return false
	}
	for i := 0; i < len(a.Data); i += a.DType.Size() {
		x, _ := tensor.Get[float64](a.Data[i:], a.DType)
		y, _ := tensor.Get[float64](b.Data[i:], a.DType)
		if !(math.Abs(x-y) <= 8*kernels.Epsilon(a.DType)*max(1, math.Abs(y))) && !(x != x && y != y) && x != y {
			return false
		}
	}
	return true
}

// outs runs the operator on inputs.
func (e *example) outs(values []*tensor.Tensor) ([]*tensor.Tensor, error) {
	args := slices.Clone(e.args)
	for p := range args {
		v := e.call.s.Args[p]
		switch a := args[p].(type) {
		case *tensor.Tensor:
			if slices.Contains(e.free, v) {
				args[p] = values[v]
			}
		case []*tensor.Tensor:
			list := slices.Clone(a)
			for k, item := range e.call.m.Values[v].Items() {
				if item >= 0 && slices.Contains(e.free, item) {
					list[k] = values[item]
				}
			}
			args[p] = list
		}
	}
	return kerneltest.Outs(e.set, e.call.s.Op.Name(), args)
}
