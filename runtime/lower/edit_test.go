package lower_test

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
	"github.com/etrun-go/etrun/runtime/exec/exectest"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/plan"
	"github.com/etrun-go/etrun/runtime/prepare"
	"github.com/etrun-go/etrun/runtime/pte"
)

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
			images = append(images, exectest.AddDelegate{})
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
		ed.e.Insert(i, ir.Step{Kind: ir.MoveCall, Args: []int{in, ed.like(in)}, Origin: ed.m.Steps[i].Origin})
	}
}

// words returns options for the operators of exectest.WordOps.
func words(mode plan.Mode) prepare.Options {
	return prepare.Options{Operators: kernels.NewSet(exectest.WordOps), AsWritten: true, Plan: plan.Options{Mode: mode, Preserve: true}}
}

// load is exectest.Load of a method that must load.
func load(t *testing.T, spec *pte.Method, budget int64, o prepare.Options) *exectest.Method {
	t.Helper()
	m, err := exectest.Load(spec, budget, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestEditedExecutionEqualsOriginal modifies random programs at random.
func TestEditedExecutionEqualsOriginal(t *testing.T) {
	changed := 0
	for seed := range uint64(exectest.Seeds) {
		spec := exectest.NewWords(rand.New(rand.NewPCG(seed, 2)))
		original := load(t, spec, 0, words(plan.Naive))
		m, images := randomly(t, rand.New(rand.NewPCG(seed, 3)), original.Prepared.IR)
		changed += len(m.Steps) - len(original.Prepared.IR.Steps) + len(images)
		edited, err := original.With(&prepare.Method{IR: m, Images: images, Work: make([]*lowering.Workspace, len(images)),
			Backends: slices.Repeat([]string{"add"}, len(images)), Plan: plan.Make(m, nil, nil, plan.Options{Mode: plan.Own, Preserve: true})})
		if err != nil {
			t.Fatal(err)
		}
		edited.Poison(0xAA)
		compareFlows(t, seed, edited, original)
	}
	if changed < exectest.Seeds {
		t.Errorf("%d changes in %d programs: the test shows nothing", changed, exectest.Seeds)
	}
}

// compareFlows runs two methods with the same inputs.
func compareFlows(t *testing.T, seed uint64, m, reference *exectest.Method) {
	t.Helper()
	for run := range 4 {
		for _, m := range []*exectest.Method{reference, m} {
			if err := errors.Join(m.SetWords(run), m.Execute(context.Background())); err != nil {
				t.Fatalf("seed %d, run %d: %v", seed, run, err)
			}
		}
		for i, v := range reference.Spec.Outputs {
			got, want := tensor.Data[int64](m.Tensor(i)), tensor.Data[int64](reference.Tensor(i))
			for k := range want {
				if got[k] != want[k] {
					t.Fatalf("seed %d, run %d, output %d (value %d), index %d: got %d, want %d\n%s\nreference:\n%s",
						seed, run, i, v, k, got[k], want[k], m.Listing(), reference.Listing())
				}
			}
		}
	}
}

// TestFoldedExecutionEqualsOriginal folds random programs with constants, in straight-line code,
// branches and loops.
func TestFoldedExecutionEqualsOriginal(t *testing.T) {
	folded := 0
	for seed := range uint64(exectest.Seeds) {
		r := rand.New(rand.NewPCG(seed, 4))
		spec := exectest.NewWords(r, exectest.ConstantWords(r), exectest.ConstantWords(r))
		m, reference := load(t, spec, 1<<20, words(plan.Own)), load(t, spec, 0, words(plan.Own))
		if len(reference.Prepared.Folded) > 0 || len(m.Prepared.IR.Steps)+len(m.Prepared.Folded) != len(reference.Prepared.IR.Steps) {
			t.Fatalf("seed %d: %d steps, %d folded, of %d", seed, len(m.Prepared.IR.Steps), len(m.Prepared.Folded), len(reference.Prepared.IR.Steps))
		}
		folded += len(m.Prepared.Folded)
		m.Poison(0xAA)
		compareFlows(t, seed, m, reference)
	}
	if folded < exectest.Seeds {
		t.Errorf("%d steps folded in %d programs: the test shows nothing", folded, exectest.Seeds)
	}
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
	add := exectest.WordOps[exectest.OpAdd]
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
		"a changing value": {op: counted(add, add.Func), mark: func(m *pte.Method) { m.Chains[0].Instructions[0].Args[0] = exectest.VecA }},
		"written twice": {op: counted(add, add.Func), mark: func(m *pte.Method) {
			m.Chains[0].Instructions = append(m.Chains[0].Instructions, exectest.Move(exectest.VecA, exectest.VecB))
		}},
		"a dynamic out": {op: counted(add, add.Func), mark: func(m *pte.Method) { m.Values[exectest.VecB].Tensor.Dynamism = tensor.DynamicBound }},
	} {
		count = 0
		spec := exectest.Small(exectest.Call(exectest.OpAdd, exectest.Constant, exectest.Constant, exectest.VecB, exectest.VecB))
		if tt.mark != nil {
			tt.mark(&spec)
		}
		o := words(plan.Auto)
		o.Operators = kernels.NewSet(exectest.WordOps, []kernels.Op{tt.op})
		m, err := exectest.Load(&spec, 1<<20, o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if count != tt.atLoad {
			t.Errorf("%s: %d calls at load, want %d", name, count, tt.atLoad)
		}
		err = errors.Join(m.SetInput(0, tensor.New(tensor.Int64, exectest.Len)), m.Execute(context.Background()))
		if name == "refused" {
			if !errors.Is(err, refusal) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if got, want := tensor.Data[int64](m.Tensor(0)), int64(1); err != nil || (name != "written twice" && !slices.Contains(got, want)) {
			t.Errorf("%s: got %v, %v, want %d", name, got, err, want)
		}
	}
}
