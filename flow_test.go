package etrun

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"math/rand/v2"
	"slices"
)

// The operators of random programs, on int64 vectors of one length.
var flowOps = []kernels.Op{
	{Pure: true, Schema: "test::add.out(Tensor a, Tensor b, *, Tensor(a!) out)", Func: func(_ *kernels.Ctx, a kernels.Args) error {
		x, y, out := words(a, 0), words(a, 1), words(a, 2)
		for i := range out {
			out[i] = 3*x[i] + y[i] + 1
		}
		return nil
	}},
	{Schema: "test::update_(Tensor(a!) self, Tensor src)", Func: func(_ *kernels.Ctx, a kernels.Args) error {
		self, src := words(a, 0), words(a, 1)
		for i := range self {
			self[i] = 5*self[i] + src[i]
		}
		return nil
	}},
	{Pure: true, Schema: "test::view(Tensor(a) self) -> Tensor(a)", Func: func(_ *kernels.Ctx, a kernels.Args) error {
		a.Tensor(1).Bind(a.Tensor(0).Data)
		return nil
	}},
	{Schema: "test::number(Tensor self) -> Scalar", Func: func(_ *kernels.Ctx, a kernels.Args) error {
		*a[1] = tensor.IntValue(words(a, 0)[0])
		return nil
	}},
	{Schema: "test::split.out(Tensor self, *, Tensor(a!)[] out)", Func: func(*kernels.Ctx, kernels.Args) error { return nil }},
}

func words(a kernels.Args, i int) []int64 { return tensor.Data[int64](a.Tensor(i)) }

const (
	flowAdd = iota
	flowUpdate
	flowView
	flowNumber
	flowSplit
	flowLen = 4 // elements of every tensor

	flowSeeds = 120
)

// flowProgram generates random methods: straight-line code, conditions whose branches move their
// results to the same value, loops that carry a value, views, updates and state.
type flowProgram struct {
	language
	r       *rand.Rand
	m       pte.Method
	defined []int // values that may be read here
	conds   []int // bool inputs

	constants []int
	// more is called before each statement; it returns false for the end.
	more    func(depth int) bool
	dynamic []int // values of the size of the dynamic input
}

// language generates the statements of random programs.
type language interface {
	value(p *flowProgram) pte.Value // a new tensor
	compute(p *flowProgram, out int)
	view(p *flowProgram)
	update(p *flowProgram, self int)
}

// wordsOnly is the language of flowOps.
type wordsOnly struct{}

func (wordsOnly) value(*flowProgram) pte.Value {
	return pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Int64, Sizes: []int{flowLen}, DimOrder: []uint8{0}}}
}

func (wordsOnly) compute(p *flowProgram, out int) { p.call(flowAdd, p.pick(), p.pick(), out, out) }

func (wordsOnly) view(p *flowProgram) {
	out := p.value()
	self := p.pick()
	p.call(flowView, self, out)
	if slices.Contains(p.constants, self) {
		p.constants = append(p.constants, out)
	} else {
		p.defined = append(p.defined, out)
	}
}

func (wordsOnly) update(p *flowProgram, self int) { p.call(flowUpdate, self, p.pick(), self) }

func newFlowProgram(r *rand.Rand, constants ...pte.Value) *pte.Method {
	p := &flowProgram{language: wordsOnly{}, r: r}
	p.m.Operators = []pte.Operator{{Name: "test::add", Overload: "out"}, {Name: "test::update_"}, {Name: "test::view"}}
	return p.make(constants...)
}

// make generates a whole method.
func (p *flowProgram) make(constants ...pte.Value) *pte.Method {
	for _, c := range constants {
		p.m.Values, p.constants = append(p.m.Values, c), append(p.constants, len(p.m.Values))
	}
	for range 2 {
		v := p.value()
		p.m.Inputs, p.defined = append(p.m.Inputs, v), append(p.defined, v)
	}
	for range 2 {
		p.m.Values = append(p.m.Values, pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Bool, Sizes: []int{1}, DimOrder: []uint8{0}}})
		p.conds = append(p.conds, len(p.m.Values)-1)
	}
	p.m.Inputs = append(p.m.Inputs, p.conds...)
	p.m.Chains = make([]pte.Chain, 1)
	state := p.value()
	p.update(p, state)
	p.defined = append(p.defined, state)
	for range 3 + p.r.IntN(12) {
		p.statement(2)
	}
	for range 1 + p.r.IntN(3) {
		p.m.Outputs = append(p.m.Outputs, p.pick())
	}
	return &p.m
}

func (p *flowProgram) value() int {
	p.m.Values = append(p.m.Values, p.language.value(p))
	return len(p.m.Values) - 1
}

// pick returns a value to read, half of the time a constant if there are any.
func (p *flowProgram) pick() int {
	if n := len(p.constants); n > 0 && p.r.IntN(2) == 0 {
		return p.constants[p.r.IntN(n)]
	}
	return p.defined[p.r.IntN(len(p.defined))]
}

func (p *flowProgram) add(in pte.Instruction) int {
	c := &p.m.Chains[0]
	c.Instructions = append(c.Instructions, in)
	return len(c.Instructions) - 1
}

func (p *flowProgram) call(op int, args ...int) {
	p.add(pte.Instruction{Kind: pte.KernelCall, Index: op, Args: args})
}

func (p *flowProgram) next() int { return len(p.m.Chains[0].Instructions) }

func (p *flowProgram) statement(depth int) {
	if p.more != nil && p.more(depth) {
		return
	}
	switch k := p.r.IntN(10); {
	case k < 5 || depth == 0:
		p.defined = append(p.defined, p.computed())
	case k < 6:
		p.view(p)
	case k < 7:
		p.update(p, p.defined[p.r.IntN(len(p.defined))])
	case k < 9:
		p.condition(depth - 1)
	default:
		p.loop(depth - 1)
	}
}

// computed adds a new value.
func (p *flowProgram) computed() int {
	out := p.value()
	p.compute(p, out)
	return out
}

// body generates statements whose values are not used afterwards, and returns the last.
func (p *flowProgram) body(depth int) int {
	outer, constants, dynamic := len(p.defined), len(p.constants), len(p.dynamic)
	for range 1 + p.r.IntN(3) {
		p.statement(depth)
	}
	last := p.computed()
	p.defined, p.constants, p.dynamic = p.defined[:outer], p.constants[:constants], p.dynamic[:dynamic]
	return last
}

func (p *flowProgram) condition(depth int) {
	to := p.value()
	cond := p.conds[p.r.IntN(len(p.conds))]
	skip := p.add(pte.Instruction{Kind: pte.JumpFalseCall, Index: cond})
	p.add(pte.Instruction{Kind: pte.MoveCall, Index: p.body(depth), Target: to})
	never := len(p.m.Values)
	p.m.Values = append(p.m.Values, pte.Value{Kind: tensor.KindBool})
	end := p.add(pte.Instruction{Kind: pte.JumpFalseCall, Index: never})
	p.m.Chains[0].Instructions[skip].Target = p.next()
	p.add(pte.Instruction{Kind: pte.MoveCall, Index: p.body(depth), Target: to})
	p.m.Chains[0].Instructions[end].Target = p.next()
	p.defined = append(p.defined, to)
}

// loop generates a loop that runs its body twice: a counter of type Bool is moved to true in the
// body.
func (p *flowProgram) loop(depth int) {
	carried := p.computed()
	done := len(p.m.Values)
	p.m.Values = append(p.m.Values, pte.Value{Kind: tensor.KindBool}, pte.Value{Kind: tensor.KindBool}, pte.Value{Kind: tensor.KindBool, Bool: true})
	again, yes := done+1, done+2
	p.defined = append(p.defined, carried)
	head := p.next()
	result := p.body(depth)
	p.add(pte.Instruction{Kind: pte.MoveCall, Index: result, Target: carried})
	p.add(pte.Instruction{Kind: pte.MoveCall, Index: again, Target: done}) // false, then true
	p.add(pte.Instruction{Kind: pte.MoveCall, Index: yes, Target: again})
	p.add(pte.Instruction{Kind: pte.JumpFalseCall, Index: done, Target: head})
}

func (p *flowProgram) put(v pte.Value) int {
	p.m.Values = append(p.m.Values, v)
	return len(p.m.Values) - 1
}

func (p *flowProgram) number(n int64) int { return p.put(pte.Value{Kind: tensor.KindInt, Int: n}) }
func (p *flowProgram) truth(b bool) int   { return p.put(pte.Value{Kind: tensor.KindBool, Bool: b}) }
func (p *flowProgram) nothing() int       { return p.put(pte.Value{Kind: tensor.None}) }

func (p *flowProgram) numbers(list ...int64) int {
	v := pte.Value{Kind: tensor.KindIntList}
	for _, n := range list {
		v.Items = append(v.Items, p.number(n))
	}
	return p.put(v)
}

// constant adds a float32 constant.
func (p *flowProgram) constant(data []float32, sizes ...int) int {
	return p.put(pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Float32, Sizes: sizes,
		DimOrder: tensor.ContiguousOrder(len(sizes)), Storage: pte.Constant, Data: tensor.BytesOf(data)}})
}
