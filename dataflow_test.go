package etrun

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/plan"
	"github.com/etrun-go/etrun/runtime/pte"
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

// TestPlannedExecutionEqualsNaive compares random programs with a separate buffer per storage to
// the same programs with shared buffers, whose dead bytes are overwritten after every instruction.
func TestPlannedExecutionEqualsNaive(t *testing.T) {
	saved := 0
	for seed := range uint64(flowSeeds) {
		spec := newFlowProgram(rand.New(rand.NewPCG(seed, 0)))
		naive := loadFlow(t, spec, PlanNaive)
		packed := loadFlow(t, spec, PlanOwn)
		poisonDead(packed, 0xAA)
		for run := range 4 {
			for _, m := range []*Method{naive, packed} {
				setFlowInputs(t, m, run)
				if err := m.Execute(context.Background()); err != nil {
					t.Fatalf("seed %d, run %d: %v", seed, run, err)
				}
			}
			for i := range spec.Outputs {
				got, want := tensor.Data[int64](outputTensor(packed, i)), tensor.Data[int64](outputTensor(naive, i))
				for k := range want {
					if got[k] != want[k] {
						t.Fatalf("seed %d, run %d, output %d (value %d), index %d: got %d, want %d\n%s",
							seed, run, i, spec.Outputs[i], k, got[k], want[k], listing(packed))
					}
				}
			}
		}
		if packed.Report().Plan.Own.Size() < naive.Report().Plan.Own.Size() {
			saved++
		}
	}
	if saved < flowSeeds/2 {
		t.Errorf("only %d of %d programs were packed at all: the test shows nothing", saved, flowSeeds)
	}
}

// flowMethods returns a program with methods of flowOps. They may read state that nothing writes.
func flowMethods(specs []pte.Method, options ...Option) *Program {
	c := newConfig(append([]Option{WithOperatorSet(kernels.NewSet(flowOps)), WithThreads(1), WithoutRepair()}, options...))
	p := &Program{config: c, spec: &pte.Program{Methods: specs}}
	p.makeSlots()
	return p
}

func loadFlow(t *testing.T, spec *pte.Method, mode PlanMode, options ...MethodOption) *Method {
	t.Helper()
	named := *spec
	named.Name = "forward"
	m, err := flowMethods([]pte.Method{named}, WithPlan(mode)).Load(context.Background(), "forward", options...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func setFlowInputs(t *testing.T, m *Method, run int) {
	t.Helper()
	for i, in := range m.Meta().Inputs {
		if err := m.SetInput(i, flowInput(&in, i, run)); err != nil {
			t.Fatal(err)
		}
	}
}

// flowInput returns the value of input i in a run.
func flowInput(in *ValueMeta, i, run int) *tensor.Tensor {
	x := in.NewTensor()
	if x.DType == tensor.Bool {
		x.Data[0] = byte(run >> i & 1)
		return x
	}
	for k := range x.Numel() {
		binary.LittleEndian.PutUint64(x.Data[8*k:], uint64(run+10*i+100*k))
	}
	return x
}

// poisonDead fills all arena bytes that no live storage uses before every kernel and delegate call. The guard finds calls
// that write them.
func poisonDead(m *Method, poison byte) *guard {
	g := &guard{plan: m.in.Plan(), poison: poison}
	g.arenas = m.in.Intercept(g.around)[:len(g.plan.Arenas)]
	return g
}

// guard overwrites dead bytes of a method, and checks that they stay as they are.
type guard struct {
	plan    *plan.Memory
	arenas  [][]byte
	poison  byte
	written error // the first write to dead bytes
}

// spoil overwrites the bytes between the storages that are live at a moment.
func (g *guard) spoil(moment int) {
	g.eachDead(moment, func(dead []byte) {
		for k := range dead {
			dead[k] = g.poison
		}
	})
}

// check checks the bytes that spoil has overwritten.
func (g *guard) check(moment int) {
	g.eachDead(moment, func(dead []byte) {
		if k := slices.IndexFunc(dead, func(b byte) bool { return b != g.poison }); k >= 0 && g.written == nil {
			step := g.plan.Step(moment)
			g.written = fmt.Errorf("step %d (%s), moment %d writes byte %d of %d that are not in use", step, g.plan.Method.StepName(&g.plan.Method.Steps[step]),
				moment-g.plan.Moments[step], k, len(dead))
		}
	})
}

// around overwrites dead bytes before a call, and before each moment of it.
func (g *guard) around(ctx context.Context, step int, do func(context.Context) error) error {
	first, end := g.plan.Moments[step], g.plan.Moments[step+1]
	g.spoil(first)
	if end == first+1 {
		defer g.check(first)
		return do(ctx)
	}
	c := &moments{ctx, g, first, first}
	err := do(c)
	if c.at > first {
		g.check(c.at - 1)
	}
	return err
}

// moments is a context that overwrites the dead bytes of the next moment when its error is asked for:
// units do that once before each.
type moments struct {
	context.Context
	*guard
	first, at int
}

func (c *moments) Err() error {
	if c.at > c.first {
		c.check(c.at - 1)
	}
	c.spoil(c.at)
	c.at++
	return c.Context.Err()
}

// eachDead calls do for the bytes between the storages that are live at a moment.
func (g *guard) eachDead(moment int, do func(dead []byte)) {
	for arena, bytes := range g.arenas {
		var alive []int
		for i, it := range g.plan.Items {
			if it.Bytes > 0 && g.plan.Places[i].Arena == arena && it.First <= moment && moment <= it.Last {
				alive = append(alive, i)
			}
		}
		slices.SortFunc(alive, func(a, b int) int { return cmp.Compare(g.plan.Places[a].Offset, g.plan.Places[b].Offset) })
		end := int64(0)
		for _, i := range append(alive, -1) {
			next := int64(len(bytes))
			if i >= 0 {
				next = g.plan.Places[i].Offset
			}
			if end < next {
				do(bytes[end:next])
			}
			if i >= 0 {
				end = max(end, next+g.plan.Items[i].Bytes)
			}
		}
	}
}

func listing(m *Method) (s string) {
	for i := range m.shared.IR.Steps {
		in := &m.shared.IR.Steps[i]
		s += fmt.Sprintf("%d %v %s %v -> %d\n", i, in.Kind, m.shared.IR.StepName(in), in.Args, in.Target)
	}
	for i, st := range m.shared.IR.Storages {
		s += fmt.Sprintf("storage %d: %v %v [%d,%d] at %d\n", i, st.Values, st.Kind, st.First, st.Last, m.in.Plan().Places[i].Offset)
	}
	return s
}
