package exectest

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// WordOps are the operators of Words, on int64 vectors of one length.
var WordOps = []kernels.Op{
	{Pure: true, Schema: "test::add.out(Tensor a, Tensor b, *, Tensor(a!) out)", Func: func(_ *kernels.Ctx, a kernels.Args) error {
		x, y, out := WordsOf(a, 0), WordsOf(a, 1), WordsOf(a, 2)
		for i := range out {
			out[i] = 3*x[i] + y[i] + 1
		}
		return nil
	}},
	{Schema: "test::update_(Tensor(a!) self, Tensor src)", Func: func(_ *kernels.Ctx, a kernels.Args) error {
		self, src := WordsOf(a, 0), WordsOf(a, 1)
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
		*a[1] = tensor.IntValue(WordsOf(a, 0)[0])
		return nil
	}},
	{Schema: "test::split.out(Tensor self, *, Tensor(a!)[] out)", Func: func(*kernels.Ctx, kernels.Args) error { return nil }},
}

// WordsOf returns the elements of an argument.
func WordsOf(a kernels.Args, i int) []int64 { return tensor.Data[int64](a.Tensor(i)) }

// Indices of WordOps, the length of all vectors, and a usual number of random programs.
const (
	OpAdd = iota
	OpUpdate
	OpView
	OpNumber
	OpSplit
	Len = 4 // elements of every tensor

	Seeds = 120
)

// Flow generates random methods: straight-line code, conditions whose branches move their
// results to the same value, loops that carry a value, views, updates and state.
type Flow struct {
	Language
	R       *rand.Rand
	M       pte.Method
	Defined []int // values that may be read here
	Conds   []int // bool inputs

	Constants []int
	// More is called before each statement; it returns false for the end.
	More    func(depth int) bool
	Dynamic []int // values of the size of the dynamic input
}

// Language generates the statements of random programs.
type Language interface {
	Value(p *Flow) pte.Value // a new tensor
	Compute(p *Flow, out int)
	View(p *Flow)
	Update(p *Flow, self int)
}

// Words is the language of WordOps.
type Words struct{}

func (Words) Value(*Flow) pte.Value {
	return pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Int64, Sizes: []int{Len}, DimOrder: []uint8{0}}}
}

func (Words) Compute(p *Flow, out int) { p.Call(OpAdd, p.Pick(), p.Pick(), out, out) }

func (Words) View(p *Flow) {
	out := p.Value()
	self := p.Pick()
	p.Call(OpView, self, out)
	if slices.Contains(p.Constants, self) {
		p.Constants = append(p.Constants, out)
	} else {
		p.Defined = append(p.Defined, out)
	}
}

func (Words) Update(p *Flow, self int) { p.Call(OpUpdate, self, p.Pick(), self) }

// NewWords returns a random method of WordOps.
func NewWords(r *rand.Rand, constants ...pte.Value) *pte.Method {
	p := &Flow{Language: Words{}, R: r}
	p.M.Operators = []pte.Operator{{Name: "test::add", Overload: "out"}, {Name: "test::update_"}, {Name: "test::view"}}
	return p.Make(constants...)
}

// Make generates a whole method.
func (p *Flow) Make(constants ...pte.Value) *pte.Method {
	for _, c := range constants {
		p.M.Values, p.Constants = append(p.M.Values, c), append(p.Constants, len(p.M.Values))
	}
	for range 2 {
		v := p.Value()
		p.M.Inputs, p.Defined = append(p.M.Inputs, v), append(p.Defined, v)
	}
	for range 2 {
		p.Conds = append(p.Conds, p.Put(pte.Value{Kind: tensor.KindTensor,
			Tensor: &pte.Tensor{DType: tensor.Bool, Sizes: []int{1}, DimOrder: []uint8{0}}}))
	}
	p.M.Inputs = append(p.M.Inputs, p.Conds...)
	p.M.Chains = make([]pte.Chain, 1)
	state := p.Value()
	p.Update(p, state)
	p.Defined = append(p.Defined, state)
	for range 3 + p.R.IntN(12) {
		p.Statement(2)
	}
	for range 1 + p.R.IntN(3) {
		p.M.Outputs = append(p.M.Outputs, p.Pick())
	}
	return &p.M
}

// Value adds a value.
func (p *Flow) Value() int {
	p.M.Values = append(p.M.Values, p.Language.Value(p))
	return len(p.M.Values) - 1
}

// Pick returns a value to read, half of the time a constant if there are any.
func (p *Flow) Pick() int {
	if n := len(p.Constants); n > 0 && p.R.IntN(2) == 0 {
		return p.Constants[p.R.IntN(n)]
	}
	return p.Defined[p.R.IntN(len(p.Defined))]
}

// Add adds an instruction, and returns its index.
func (p *Flow) Add(in pte.Instruction) int {
	c := &p.M.Chains[0]
	c.Instructions = append(c.Instructions, in)
	return len(c.Instructions) - 1
}

// Call adds a call of an operator.
func (p *Flow) Call(op int, args ...int) {
	p.Add(pte.Instruction{Kind: pte.KernelCall, Index: op, Args: args})
}

// CallNamed calls an operator of the method by its full name, which it lists.
func (p *Flow) CallNamed(name string, args ...int) {
	at := slices.IndexFunc(p.M.Operators, func(o pte.Operator) bool { return o.Name == name })
	if at < 0 {
		at = len(p.M.Operators)
		p.M.Operators = append(p.M.Operators, pte.Operator{Name: name})
	}
	p.Call(at, args...)
}

// Next is the index of the next instruction.
func (p *Flow) Next() int { return len(p.M.Chains[0].Instructions) }

// Statement generates a statement.
func (p *Flow) Statement(depth int) {
	if p.More != nil && p.More(depth) {
		return
	}
	switch k := p.R.IntN(10); {
	case k < 5 || depth == 0:
		p.Defined = append(p.Defined, p.Computed())
	case k < 6:
		p.View(p)
	case k < 7:
		p.Update(p, p.Defined[p.R.IntN(len(p.Defined))])
	case k < 9:
		p.Condition(depth - 1)
	default:
		p.Loop(depth - 1)
	}
}

// Computed adds a new value.
func (p *Flow) Computed() int {
	out := p.Value()
	p.Compute(p, out)
	return out
}

// Body generates statements whose values are not used afterwards, and returns the last.
func (p *Flow) Body(depth int) int {
	outer, constants, dynamic := len(p.Defined), len(p.Constants), len(p.Dynamic)
	for range 1 + p.R.IntN(3) {
		p.Statement(depth)
	}
	last := p.Computed()
	p.Defined, p.Constants, p.Dynamic = p.Defined[:outer], p.Constants[:constants], p.Dynamic[:dynamic]
	return last
}

// Condition generates a condition with two branches.
func (p *Flow) Condition(depth int) {
	to := p.Value()
	cond := p.Conds[p.R.IntN(len(p.Conds))]
	skip := p.Add(pte.Instruction{Kind: pte.JumpFalseCall, Index: cond})
	p.Add(pte.Instruction{Kind: pte.MoveCall, Index: p.Body(depth), Target: to})
	never := len(p.M.Values)
	p.M.Values = append(p.M.Values, pte.Value{Kind: tensor.KindBool})
	end := p.Add(pte.Instruction{Kind: pte.JumpFalseCall, Index: never})
	p.M.Chains[0].Instructions[skip].Target = p.Next()
	p.Add(pte.Instruction{Kind: pte.MoveCall, Index: p.Body(depth), Target: to})
	p.M.Chains[0].Instructions[end].Target = p.Next()
	p.Defined = append(p.Defined, to)
}

// Loop generates a loop that runs its body twice: a counter of type Bool is moved to true in the
// body.
func (p *Flow) Loop(depth int) {
	carried := p.Computed()
	done, again, yes := p.Truth(false), p.Truth(false), p.Truth(true)
	p.Defined = append(p.Defined, carried)
	head := p.Next()
	result := p.Body(depth)
	p.Add(pte.Instruction{Kind: pte.MoveCall, Index: result, Target: carried})
	p.Add(pte.Instruction{Kind: pte.MoveCall, Index: again, Target: done}) // false, then true
	p.Add(pte.Instruction{Kind: pte.MoveCall, Index: yes, Target: again})
	p.Add(pte.Instruction{Kind: pte.JumpFalseCall, Index: done, Target: head})
}

// Put adds a value, and Number, Truth, Nothing and Numbers one that is no tensor.
func (p *Flow) Put(v pte.Value) int {
	p.M.Values = append(p.M.Values, v)
	return len(p.M.Values) - 1
}

func (p *Flow) Number(n int64) int { return p.Put(pte.Value{Kind: tensor.KindInt, Int: n}) }
func (p *Flow) Truth(b bool) int   { return p.Put(pte.Value{Kind: tensor.KindBool, Bool: b}) }
func (p *Flow) Nothing() int       { return p.Put(pte.Value{Kind: tensor.None}) }

func (p *Flow) Numbers(list ...int64) int {
	v := pte.Value{Kind: tensor.KindIntList}
	for _, n := range list {
		v.Items = append(v.Items, p.Number(n))
	}
	return p.Put(v)
}

// Constant adds a float32 constant.
func (p *Flow) Constant(data []float32, sizes ...int) int {
	return p.Put(pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Float32, Sizes: sizes,
		DimOrder: tensor.ContiguousOrder(len(sizes)), Storage: pte.Constant, Data: tensor.BytesOf(data)}})
}

// SplitName removes the overload from a full name.
func SplitName(full string) (name, overload string) {
	if at := strings.LastIndexByte(full, '.'); at >= 0 {
		return full[:at], full[at+1:]
	}
	return full, ""
}
