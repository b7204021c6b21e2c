package etrun

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/exec"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/plan"
	"github.com/etrun-go/etrun/runtime/prepare"
	"github.com/etrun-go/etrun/runtime/pte"
)

// addDelegate is a delegate that computes test::add.out.
type addDelegate struct{}

func (addDelegate) Needs() delegate.Needs                         { return delegate.Needs{Inputs: 2} }
func (addDelegate) Info() delegate.Info                           { return delegate.Info{} }
func (addDelegate) Unit(delegate.Instance) (delegate.Unit, error) { return addDelegate{}, nil }
func (addDelegate) Close() error                                  { return nil }
func (addDelegate) Execute(_ context.Context, a []*tensor.Value) error {
	return flowOps[flowAdd].Func(nil, a)
}

// editor modifies methods of flowOps at random without changing their results.
type editor struct {
	r *rand.Rand
	m *ir.Method
	e *ir.Edit
}

// randomly tries a modification at each step, and returns the method and the delegates that it
// calls.
func randomly(t *testing.T, r *rand.Rand, m *ir.Method) (edited *ir.Method, images []delegate.Image) {
	t.Helper()
	ed := &editor{r, m, m.Edit()}
	for i := range m.Steps {
		switch s := &m.Steps[i]; {
		case s.Kind != ir.KernelCall || s.Op.Name() != "test::add.out":
			ed.harmless(i)
		case r.IntN(3) == 0:
			ed.detour(i, s)
		case r.IntN(3) == 0:
			ed.delegate(i, s)
			images = append(images, addDelegate{})
		}
	}
	edited, err := ed.e.Apply()
	if err != nil {
		t.Fatal(err)
	}
	return edited, images
}

// like adds a tensor with the declaration of v.
func (ed *editor) like(v int) int {
	t := *ed.m.Values[v].Tensor
	t.Name, t.Const = "", false
	return ed.e.AddTensor(t)
}

// detour copies an operand and reads the copy.
func (ed *editor) detour(i int, s *ir.Step) {
	k := ed.r.IntN(2)
	to := ed.like(s.Args[k])
	ed.e.Insert(i, ir.Step{Kind: ir.MoveCall, Args: []int{s.Args[k], to}, Origin: s.Origin})
	ed.e.SetArg(i, k, to)
}

// delegate replaces the call by a delegate call.
func (ed *editor) delegate(i int, s *ir.Step) {
	ed.e.Drop(i)
	ed.e.Insert(i, ir.Step{Kind: ir.DelegateCall, Delegate: ed.e.AddDelegate("add"), Inputs: 2, Args: s.Args[:3], Origin: s.Origin})
}

// harmless adds a computation whose result is not read.
func (ed *editor) harmless(i int) {
	if in := ed.m.Inputs[0]; ed.r.IntN(2) == 0 {
		ed.e.Insert(i, ir.Step{Kind: ir.MoveCall, Args: []int{in, ed.like(in)}})
	}
}

// TestEditedExecutionEqualsOriginal modifies random programs at random.
func TestEditedExecutionEqualsOriginal(t *testing.T) {
	changed := 0
	for seed := range uint64(flowSeeds) {
		spec := newFlowProgram(rand.New(rand.NewPCG(seed, 2)))
		original := loadFlow(t, spec, PlanNaive)
		m, images := randomly(t, rand.New(rand.NewPCG(seed, 3)), original.shared.IR)
		changed += len(m.Steps) - len(original.shared.IR.Steps) + len(images)
		p := flowMethods([]pte.Method{*spec}, WithPlan(PlanOwn))
		p.spec.Methods[0].Name = "forward"
		edited := &Method{program: p, shared: &prepare.Method{IR: m, Images: images, Work: make([]*lowering.Workspace, len(images)), Backends: slices.Repeat([]string{"add"}, len(images)), Plan: plan.Make(m, nil, nil, p.config.planning())}}
		var err error
		if edited.in, err = exec.New(context.Background(), nil, &p.shared, edited.shared, exec.Options{}); err != nil {
			t.Fatal(err)
		}
		poisonDead(edited.in, 0xAA)
		compareFlows(t, seed, edited, original)
	}
	if changed < flowSeeds {
		t.Errorf("%d changes in %d programs: the test shows nothing", changed, flowSeeds)
	}
}

// compareFlows runs two methods with the same inputs.
func compareFlows(t *testing.T, seed uint64, m, reference *Method) {
	t.Helper()
	for run := range 4 {
		for _, m := range []*Method{reference, m} {
			setFlowInputs(t, m, run)
			if err := m.Execute(context.Background()); err != nil {
				t.Fatalf("seed %d, run %d: %v", seed, run, err)
			}
		}
		for i, v := range reference.shared.IR.Outputs {
			got, want := tensor.Data[int64](outputTensor(m, i)), tensor.Data[int64](outputTensor(reference, i))
			for k := range want {
				if got[k] != want[k] {
					t.Fatalf("seed %d, run %d, output %d (value %d), index %d: got %d, want %d\n%s\nreference:\n%s",
						seed, run, i, v, k, got[k], want[k], listing(m.in), listing(reference.in))
				}
			}
		}
	}
}

// TestFoldedExecutionEqualsOriginal folds random programs with constants, in straight-line code,
// branches and loops.
func TestFoldedExecutionEqualsOriginal(t *testing.T) {
	folded := 0
	for seed := range uint64(flowSeeds) {
		r := rand.New(rand.NewPCG(seed, 4))
		spec := newFlowProgram(r, constantVector(r), constantVector(r))
		spec.Name = "forward"
		load := func(budget int64) *Method {
			p := flowMethods([]pte.Method{*spec}, WithPlan(PlanOwn), WithLowering(LowerOff))
			setFoldBudget(p, budget)
			m, err := p.Load(context.Background(), "")
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		m, reference := load(1<<20), load(0)
		if len(reference.shared.Folded) > 0 || len(m.shared.IR.Steps)+len(m.shared.Folded) != len(reference.shared.IR.Steps) {
			t.Fatalf("seed %d: %d steps, %d folded, of %d", seed, len(m.shared.IR.Steps), len(m.shared.Folded), len(reference.shared.IR.Steps))
		}
		folded += len(m.shared.Folded)
		poisonDead(m.in, 0xAA)
		compareFlows(t, seed, m, reference)
	}
	if folded < flowSeeds {
		t.Errorf("%d steps folded in %d programs: the test shows nothing", folded, flowSeeds)
	}
}

// setFoldBudget sets the bytes that folding may compute, which otherwise follow from the size of the file.
func setFoldBudget(p *Program, bytes int64) {
	p.spec.Size = bytes
	p.makeSlots()
}

// constantVector returns a constant for the random programs.
func constantVector(r *rand.Rand) pte.Value {
	data := tensor.BytesOf([]int64{r.Int64N(9), r.Int64N(9), 3, 4})
	return pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Int64, Sizes: []int{flowLen}, DimOrder: []uint8{0}, Storage: pte.Constant, Data: data}}
}

// Instructions that are not pure, fail, or exceed the budget are not folded.
func TestNotFolded(t *testing.T) {
	count := 0
	counted := func(op kernels.Op, f kernels.Func) kernels.Op {
		op.Func = func(c *kernels.Ctx, a kernels.Args) error {
			count++
			return f(c, a)
		}
		return op
	}
	add := flowOps[flowAdd]
	impure := add
	impure.Pure = false
	refusal := errors.New("no")
	for name, tt := range map[string]struct {
		op     kernels.Op
		mark   func(m *pte.Method)
		atLoad int
	}{
		"folded":           {op: counted(add, add.Func), atLoad: 1},
		"impure":           {op: counted(impure, add.Func)},
		"refused":          {op: counted(add, func(*kernels.Ctx, kernels.Args) error { return refusal }), atLoad: 1},
		"a changing value": {op: counted(add, add.Func), mark: func(m *pte.Method) { m.Chains[0].Instructions[0].Args[0] = vecA }},
		"written twice":    {op: counted(add, add.Func), mark: func(m *pte.Method) { m.Chains[0].Instructions = append(m.Chains[0].Instructions, flowMove(vecA, vecB)) }},
		"a dynamic out":    {op: counted(add, add.Func), mark: func(m *pte.Method) { m.Values[vecB].Tensor.Dynamism = tensor.DynamicBound }},
	} {
		count = 0
		spec := hostileMethod(flowCall(flowAdd, constant, constant, vecB, vecB))
		if tt.mark != nil {
			tt.mark(&spec)
		}
		p := flowMethods([]pte.Method{spec}, WithOperatorSet(kernels.NewSet(flowOps, []kernels.Op{tt.op})), WithLowering(LowerOff))
		setFoldBudget(p, 1<<20)
		m, err := p.Load(context.Background(), "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if count != tt.atLoad {
			t.Errorf("%s: %d calls at load, want %d", name, count, tt.atLoad)
		}
		err = errors.Join(m.SetInput(0, tensor.New(tensor.Int64, flowLen)), m.Execute(context.Background()))
		if name == "refused" {
			if !errors.Is(err, refusal) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if got, want := tensor.Data[int64](outputTensor(m, 0)), int64(1); err != nil || (name != "written twice" && !slices.Contains(got, want)) {
			t.Errorf("%s: got %v, %v, want %d", name, got, err, want)
		}
	}
}
