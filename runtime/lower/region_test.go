package lower

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etrun-go/etrun/delegate/delegatetest"
	regions "github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/pte"
)

// The operators of the methods below, on tensors of size bytes: a sum, and copies of it by other
// names, which backends may refuse.
var regionOps = []kernels.Op{
	{Pure: true, Schema: "test::add.out(Tensor a, Tensor b, *, Tensor(a!) out)"},
	{Pure: true, Schema: "test::no.out(Tensor a, *, Tensor(a!) out)"},
	{Pure: true, Schema: "test::view(Tensor(a) self) -> Tensor(a)"},
	{Pure: true, Schema: "test::copy_(Tensor(a!) self, Tensor src)"},
	{Pure: true, Schema: "test::two.out(Tensor a, *, Tensor(a!) x, Tensor(b!) y)"},
	{Pure: true, Schema: "test::list.out(Tensor[] list, *, Tensor(a!) out)"},
}

const (
	opAdd = iota
	opNo  // refused
	opView
	opCopy
	opTwo
	opList
)

// sketch abbreviates a method: values are tensors, 0 and 1 inputs, 2 a constant, 3 state.
type sketch struct {
	values  int
	lists   map[int][]int
	steps   []pte.Instruction
	outputs []int
	varies  bool // sizes of all but constants and state
}

// steps are the instructions of a sketch.
type steps = []pte.Instruction

func do(op int, args ...int) pte.Instruction {
	return pte.Instruction{Kind: pte.KernelCall, Index: op, Args: args}
}

// jump jumps to target if the last value is false.
func (k sketch) jump(step, target int) sketch {
	k.steps = slices.Insert(k.steps, step, pte.Instruction{Kind: pte.JumpFalseCall, Index: k.values, Target: target})
	return k
}

func (k sketch) build(t testing.TB) *ir.Method {
	t.Helper()
	m := &pte.Method{Name: "forward", Inputs: []int{0, 1}, Outputs: k.outputs, Chains: []pte.Chain{{Instructions: k.steps}}}
	for v := range k.values {
		x := &pte.Tensor{DType: tensor.Uint8, Sizes: []int{size}, DimOrder: []uint8{0}}
		switch v {
		case 2:
			x.Storage, x.Data = pte.Constant, make([]byte, size)
		case 3:
			x.Storage, x.Data = pte.PlannedInit, make([]byte, size)
		default:
			if k.varies {
				x.Dynamism = tensor.DynamicBound
			}
		}
		m.Values = append(m.Values, pte.Value{Kind: tensor.KindTensor, Tensor: x})
	}
	m.Values = append(m.Values, pte.Value{Kind: tensor.KindBool, Bool: true}) // the condition of jumps
	for v, items := range k.lists {
		m.Values[v] = pte.Value{Kind: tensor.KindTensorList, Items: items}
	}
	var links ir.Links
	for i := range regionOps {
		sig, err := kernels.ParseSchema(regionOps[i].Schema)
		if err != nil {
			t.Fatal(err)
		}
		links.Operators = append(links.Operators, ir.Operator{Op: &regionOps[i], Sig: sig})
	}
	built, err := ir.Build(m, links)
	if err != nil {
		t.Fatal(err)
	}
	return built
}

// all accepts everything but opNo.
var all = delegatetest.Oracle{Accept: func(g *regions.Graph, i int) string {
	if c := &g.Calls[i]; c.Op != nil && c.Op.Name() == "test::no.out" {
		return "no"
	}
	return ""
}}

// compiled lowers regions to a backend and records their graphs.
func compiled(c delegatetest.Oracle, graphs *[]*regions.Graph) Backends {
	return Backends{Compilers: []regions.Compiler{c}, All: true, Compile: func(ctx context.Context, by regions.Compiler, g *regions.Graph) error {
		img, err := by.CompileGraph(ctx, g)
		if err == nil {
			*graphs = append(*graphs, g)
			err = img.Close()
		}
		return err
	}}
}

// script abbreviates the steps of a method.
func script(m *ir.Method) string {
	var list []string
	for i := range m.Steps {
		s := &m.Steps[i]
		name := strings.TrimSuffix(strings.TrimPrefix(m.StepName(s), "test::"), ".out")
		switch s.Kind {
		case ir.DelegateCall:
			name = "delegate"
		case ir.SizesJump:
			name = fmt.Sprintf("from %d elements, else %d:", s.Least, s.Target)
		case ir.JumpFalseCall:
			name = fmt.Sprintf("to %d", s.Target)
		}
		for k, v := range s.Args {
			sep := " "
			if s.Kind == ir.DelegateCall && k == s.Inputs {
				sep = "→"
			}
			name += sep + string(rune('a'+v))
		}
		list = append(list, name)
	}
	return strings.Join(list, "; ")
}

// TestTopology covers the shapes that regions have at their borders.
func TestTopology(t *testing.T) {
	for name, tt := range map[string]struct {
		sketch
		want string // the steps afterwards, values as letters
	}{
		"a chain": {sketch{values: 7, steps: steps{do(opAdd, 0, 2, 4, 4), do(opAdd, 4, 1, 5, 5)}, outputs: []int{5}},
			"delegate a b→f"},
		"several consumers, one outside": {sketch{values: 8, steps: steps{do(opAdd, 0, 1, 4, 4), do(opAdd, 4, 0, 5, 5), do(opNo, 4, 6, 6)}, outputs: []int{5, 6}},
			"delegate a b→e f; no e g g"},
		"inside and output": {sketch{values: 7, steps: steps{do(opAdd, 0, 1, 4, 4), do(opAdd, 4, 1, 5, 5)}, outputs: []int{4, 5}},
			"delegate a b→e f"},
		"duplicate outputs": {sketch{values: 7, steps: steps{do(opAdd, 0, 1, 4, 4)}, outputs: []int{4, 4}},
			"delegate a b→e"},
		"pass-through": {sketch{values: 7, steps: steps{do(opAdd, 0, 1, 4, 4)}, outputs: []int{0, 4, 2}},
			"delegate a b→e"},
		"a view of an input": {sketch{values: 7, steps: steps{do(opView, 0, 4), do(opAdd, 4, 0, 5, 5)}, outputs: []int{5}},
			"delegate a→f"},
		"a view that is an output": {sketch{values: 7, steps: steps{do(opAdd, 0, 1, 4, 4), do(opView, 4, 5)}, outputs: []int{5}},
			"delegate a b→e"},
		"state as an input, written afterwards": {sketch{values: 8, steps: steps{do(opAdd, 3, 0, 4, 4), do(opAdd, 4, 1, 5, 5), do(opCopy, 3, 5, 3)}, outputs: []int{5}},
			"delegate d a b→f; copy_ d f d"},
		"state written between": {sketch{values: 8, steps: steps{do(opAdd, 3, 0, 4, 4), do(opCopy, 3, 1, 3), do(opAdd, 4, 3, 5, 5)}, outputs: []int{5}},
			"delegate d a→e; copy_ d b d; delegate e d→f"},
		"an input that is overwritten between": {sketch{values: 8, steps: steps{do(opAdd, 0, 1, 4, 4), do(opCopy, 0, 1, 0), do(opAdd, 4, 1, 5, 5)}, outputs: []int{5, 0}},
			"delegate a b→f; copy_ a b a"},
		"a path through another operator": {sketch{values: 8, steps: steps{do(opAdd, 0, 1, 4, 4), do(opNo, 4, 5, 5), do(opAdd, 4, 5, 6, 6)}, outputs: []int{6}},
			"delegate a b→e; no e f f; delegate e f→g"},
		"another operator waits": {sketch{values: 8, steps: steps{do(opAdd, 0, 1, 4, 4), do(opNo, 4, 5, 5), do(opAdd, 4, 1, 6, 6)}, outputs: []int{6, 5}},
			"delegate a b→e g; no e f f"},
		"a storage that is written twice": {sketch{values: 8, steps: steps{do(opAdd, 0, 1, 4, 4), do(opAdd, 4, 0, 5, 5), do(opAdd, 5, 1, 4, 4)}, outputs: []int{4}},
			"delegate a b→e"},
		"two results, one read": {sketch{values: 8, steps: steps{do(opTwo, 0, 4, 5, 4), do(opAdd, 4, 1, 6, 6)}, outputs: []int{6}},
			"delegate a b→g"},
		"a list": {sketch{values: 9, lists: map[int][]int{8: {4, 0, 2}}, steps: steps{do(opAdd, 0, 1, 4, 4), do(opList, 8, 5, 5)}, outputs: []int{5}},
			"delegate a b→f"},
		"a loop that reads what it writes": {sketch{values: 7, steps: steps{do(opAdd, 0, 1, 4, 4), do(opAdd, 4, 1, 5, 5), do(opAdd, 5, 0, 4, 4)}, outputs: []int{5}}.jump(3, 1),
			"delegate a b→e; delegate e b a→f i; MoveCall i e; to 1 h"},
		"a loop of two blocks": {sketch{values: 7, steps: steps{do(opAdd, 0, 1, 4, 4), do(opAdd, 4, 1, 5, 5), do(opAdd, 5, 0, 4, 4)}, outputs: []int{5}}.jump(3, 1).jump(2, 3),
			"delegate a b→e; delegate e b→f; to 3 h; delegate f a→e; to 1 h"},
		"siblings": {sketch{values: 9, steps: steps{do(opNo, 0, 4, 4), do(opAdd, 4, 0, 5, 5), do(opAdd, 4, 1, 6, 6), do(opNo, 5, 7, 7)}, outputs: []int{6, 7}},
			"no a e e; delegate e a b→f g; no f h h"},
	} {
		t.Run(name, func(t *testing.T) {
			m := tt.build(t)
			var graphs []*regions.Graph
			got, _, err := Regions(context.Background(), m, compiled(all, &graphs))
			if err != nil {
				t.Fatal(err)
			}
			if script(got) != tt.want {
				t.Errorf("got  %s\nwant %s", script(got), tt.want)
			}
		})
	}
}

// TestRegionsOfVaryingSizes checks that a region of varying sizes keeps its calls, and is used from
// the sizes where it has enough work.
func TestRegionsOfVaryingSizes(t *testing.T) {
	k := sketch{values: 7, varies: true, steps: steps{do(opAdd, 0, 1, 4, 4), do(opAdd, 4, 1, 5, 5), do(opNo, 5, 6, 6)}, outputs: []int{6}}
	for name, tt := range map[string]struct {
		work  float64
		all   bool
		least int // elements of both inputs
	}{
		"at all sizes":              {1, true, 0},
		"at the declared sizes":     {leastMultiplications, false, 2 * size},
		"from half the sizes on":    {2 * leastMultiplications, false, size},
		"from a quarter of them on": {4 * leastMultiplications, false, size / 2},
	} {
		by := all
		by.Work = func(*regions.Graph) regions.Work { return regions.Work{Multiplications: tt.work} }
		backends := compiled(by, new([]*regions.Graph))
		backends.All = tt.all
		got, report, err := Regions(context.Background(), k.build(t), backends)
		if err != nil || report.Accepted() != 1 {
			t.Fatalf("%s: %d regions, %v", name, report.Accepted(), err)
		}
		if least := got.Steps[0].Least; least != tt.least {
			t.Errorf("%s: from %d elements on, want %d", name, least, tt.least)
		}
		got.Steps[0].Least = 7
		want := "from 7 elements, else 3: a b f; delegate a b→f; to 5 i; add a b e e; add e b f f; no f g g"
		if script(got) != want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, script(got), want)
		}
	}
}

// TestRegionsThatAreNotTaken checks that calls that a backend refuses stay unchanged, and the
// reported reasons.
func TestRegionsThatAreNotTaken(t *testing.T) {
	k := sketch{values: 8, steps: steps{do(opAdd, 0, 1, 4, 4), do(opNo, 4, 5, 5), do(opAdd, 5, 1, 6, 6)}, outputs: []int{6}}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	little, transposing, narrow, fails := all, all, all, all
	little.Work = func(*regions.Graph) regions.Work { return regions.Work{Multiplications: leastMultiplications - 1} }
	transposing.Work = func(*regions.Graph) regions.Work {
		return regions.Work{Multiplications: leastMultiplications, Transposed: leastMultiplications}
	}
	narrow.Work = func(*regions.Graph) regions.Work {
		return regions.Work{Multiplications: 10 * leastMultiplications, Narrow: 10 * leastMultiplications, Transposed: leastMultiplications}
	}
	fails.Refuse = func(*regions.Graph) error { return errors.New("no memory") }
	misfit := sketch{values: 6, lists: map[int][]int{4: {0}}, steps: steps{do(opAdd, 4, 1, 5, 5)}, outputs: []int{5}}
	_, report, err := Regions(context.Background(), misfit.build(t), compiled(all, new([]*regions.Graph)))
	if err != nil || report.Calls[0].Reason != "its arguments do not match its schema" {
		t.Errorf("a list for a tensor: %v, %q", err, report.Calls[0].Reason)
	}
	for name, tt := range map[string]struct {
		by      delegatetest.Oracle
		all     bool
		reasons []string // of the steps
	}{
		"too little work": {little, false, []string{"3999 multiplications and 0 other elements are few", "oracle: no", "3999 multiplications and 0 other elements are few"}},
		"transposes":      {transposing, false, []string{"4000 multiplications are few for 4000", "oracle: no", "4000 multiplications are few for 4000"}},
		"few channels": {narrow, false, []string{"40000 multiplications are few for 4000 elements to transpose, want 8, in convolutions of few channels 24,", "oracle: no",
			"40000 multiplications are few for 4000"}},
		"all are taken": {little, true, []string{"", "oracle: no", ""}},
		"none compiles": {fails, true, []string{"no memory", "oracle: no", "no memory"}},
	} {
		m := k.build(t)
		var graphs []*regions.Graph
		by := compiled(tt.by, &graphs)
		by.All = tt.all
		got, report, err := Regions(context.Background(), m, by)
		if err != nil {
			t.Fatal(err)
		}
		if len(graphs) != report.Accepted() || report.Accepted() == 0 && got != m {
			t.Errorf("%s: %d graphs, %d taken", name, len(graphs), report.Accepted())
		}
		for i, want := range tt.reasons {
			if why := report.Calls[i].Reason; !strings.HasPrefix(why, want) || (why == "") != (want == "") {
				t.Errorf("%s: step %d: got %q, want %q", name, i, why, want)
			}
		}
		if _, _, err := Regions(cancelled, m, by); tt.all && !errors.Is(err, context.Canceled) {
			t.Errorf("%s, cancelled: %v", name, err)
		}
	}
}

// Lowering a long method takes a time in proportion to its length, and may leave some of it.
func TestLongMethod(t *testing.T) {
	var times []time.Duration
	for _, tt := range []struct{ steps, least int }{{10_000, 10_000 / maxBlock}, {200_000, 1}} {
		k := sketch{values: tt.steps + 4, outputs: []int{tt.steps + 3}}
		last := 0
		for i := range tt.steps {
			k.steps = append(k.steps, do(opAdd, last, 1, i+4, i+4))
			last = i + 4
		}
		m := k.build(t)
		var graphs []*regions.Graph
		begun := time.Now()
		got, report, err := Regions(context.Background(), m, compiled(all, &graphs))
		if err != nil {
			t.Fatal(err)
		}
		times = append(times, time.Since(begun))
		if n := report.Accepted(); n < tt.least {
			t.Errorf("%d steps: %d regions, %d steps left", tt.steps, n, len(got.Steps))
		}
	}
	if times[1] > 20*10*times[0] {
		t.Errorf("20 times the steps: %v, the short method %v", times[1], times[0])
	}
}

// TestRegionsAreDeterministic lowers a method twice, with equal results.
func TestRegionsAreDeterministic(t *testing.T) {
	k := sketch{values: 40, outputs: []int{39}}
	for v := 4; v < 40; v++ {
		if v%5 == 0 {
			k.steps = append(k.steps, do(opNo, v-1, v, v))
		} else {
			k.steps = append(k.steps, do(opAdd, v*7%v, v-1, v, v))
		}
	}
	m := k.build(t)
	var first, second []*regions.Graph
	a, reportA, errA := Regions(context.Background(), m, compiled(all, &first))
	b, reportB, errB := Regions(context.Background(), m, compiled(all, &second))
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(err)
	}
	if script(a) != script(b) || !slices.EqualFunc(reportA.Calls, reportB.Calls, func(a, b Call) bool { return a == b }) || len(first) != len(second) {
		t.Errorf("%s\n%s", script(a), script(b))
	}
}
