package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/internal/cases"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// update is how a module of the generated programs changes a state.
type update int

const (
	updateSum      update = iota // the state plus the input: written
	updateInput                  // the input of its type: written
	updateState                  // another state: left out by the exporter
	updateInitial                // a constant: left out by the exporter
	updateMistaken               // the sum, copied onto the argument of its name
	updateOnto                   // the argument of its name, copied onto itself
	updates
)

// module is a module with states and its program, as an exporter with its faults writes it.
type module struct {
	spec   pte.Method
	offset [2]int64 // of the next tensor, by arena
	states []moduleState
	inputs []int // values, by type
	names  []int // index of the argument with the name of a state of the type, -1 for none
	total  int   // value: the output
}

// moduleState is a state of a type, which is its number of elements.
type moduleState struct {
	value, size int
	how         update
	summed      bool // it is part of the output
	read        bool
	initial     float32
}

func newModule() *module {
	m := &module{}
	m.spec.Name = "forward"
	for _, name := range []string{"aten::add", "aten::copy_"} {
		o := pte.Operator{Name: name}
		if name == "aten::add" {
			o.Overload = "out"
		}
		m.spec.Operators = append(m.spec.Operators, o)
	}
	m.spec.Chains = make([]pte.Chain, 1)
	return m
}

// tensor adds a planned tensor.
func (m *module) tensor(size, arena int) int {
	t := &pte.Tensor{DType: tensor.Float32, Sizes: []int{size}, DimOrder: []uint8{0}, Storage: pte.Planned, Arena: arena,
		Offset: m.offset[arena]}
	m.offset[arena] += 64
	m.spec.Values = append(m.spec.Values, pte.Value{Kind: tensor.KindTensor, Tensor: t})
	return len(m.spec.Values) - 1
}

func (m *module) scalar(kind tensor.Kind, n int64) int {
	m.spec.Values = append(m.spec.Values, pte.Value{Kind: kind, Int: n})
	return len(m.spec.Values) - 1
}

func (m *module) call(op int, args ...int) {
	c := &m.spec.Chains[0]
	c.Instructions = append(c.Instructions, pte.Instruction{Kind: pte.KernelCall, Index: op, Args: args})
}

// add returns a new tensor, the sum of two.
func (m *module) add(a, b, size int) int {
	to := m.tensor(size, 0)
	m.call(0, a, b, m.scalar(tensor.KindInt, 1), to, to)
	return to
}

func (m *module) copy(to, from int) { m.call(1, to, from, m.scalar(tensor.KindBool, 0), to) }

func (m *module) input(size int) int {
	v := m.tensor(size, 0)
	m.spec.Inputs = append(m.spec.Inputs, v)
	return v
}

// moduleSizes are the types of the states; a sum of tensors of one element and others is possible.
var moduleSizes = []int{1, 4}

// randomModule builds a module. Each type has an input x, and an argument with the name of a state.
func randomModule(r *rand.Rand) *module {
	m := newModule()
	arena := r.IntN(2) // of states
	for range 1 + r.IntN(5) {
		s := moduleState{size: moduleSizes[r.IntN(2)], how: update(r.IntN(int(updates))), summed: r.IntN(4) > 0}
		s.read = s.summed
		if r.IntN(2) == 0 {
			s.how = updateSum
		}
		s.value = m.tensor(s.size, arena)
		if r.IntN(3) == 0 {
			s.initial = float32(r.IntN(5))
			t := m.spec.Values[s.value].Tensor
			t.Storage, t.Data = pte.PlannedInit, tensor.BytesOf(slices.Repeat([]float32{s.initial}, s.size))
		}
		m.states = append(m.states, s)
	}
	for range moduleSizes {
		m.inputs = append(m.inputs, -1)
	}
	for i, size := range moduleSizes {
		m.inputs[i] = m.input(size)
	}
	for _, size := range moduleSizes {
		m.names = append(m.names, m.input(size))
	}
	m.build()
	for _, size := range m.offset {
		m.spec.Arenas = append(m.spec.Arenas, pte.Arena{Size: size + 64})
	}
	return m
}

func (m *module) kind(size int) int { return slices.Index(moduleSizes, size) }

// build adds the instructions: the output, the sum of an input and all states that are read, then
// the updates.
func (m *module) build() {
	m.total = m.add(m.inputs[1], m.inputs[1], 4)
	for i := range m.states {
		if m.states[i].summed {
			m.total = m.add(m.total, m.states[i].value, 4)
		}
	}
	m.spec.Outputs = []int{m.total}
	var news []int
	for i := range m.states {
		s := &m.states[i]
		k := m.kind(s.size)
		new := -1
		switch s.how {
		case updateSum, updateMistaken:
			new = m.add(s.value, m.inputs[k], s.size)
			s.read = true
		case updateInput:
			new = m.inputs[k]
		case updateOnto:
			new = m.names[k]
		}
		news = append(news, new)
	}
	for i := range m.states {
		s := &m.states[i]
		switch s.how {
		case updateSum, updateInput:
			m.copy(s.value, news[i])
		case updateMistaken, updateOnto:
			m.copy(m.names[m.kind(s.size)], news[i])
		}
	}
}

// refused reports whether updates are missing in the program so that they cannot be added.
func (m *module) refused() bool {
	for size := range moduleSizes {
		missing, mistaken, changes, read := 0, 0, 0, false
		for i := range m.states {
			s := &m.states[i]
			if m.kind(s.size) != size || s.how == updateSum || s.how == updateInput {
				continue
			}
			missing++
			read = read || s.read
			if s.how == updateMistaken || s.how == updateOnto {
				mistaken++
			}
			if s.how == updateMistaken {
				changes++
			}
		}
		if missing == 0 || missing == 1 && mistaken == 1 {
			continue
		}
		if read || changes > 0 {
			return true
		}
	}
	return false
}

// run computes the module's output on numbers, and its new states.
func (m *module) run(state [][]float32, x, names [][]float32) (out []float32) {
	out = make([]float32, 4)
	for i := range out {
		out[i] = 2 * x[1][i]
		for k := range m.states {
			if m.states[k].summed {
				out[i] += state[k][min(i, len(state[k])-1)]
			}
		}
	}
	old := make([][]float32, len(state))
	for k := range state {
		old[k] = slices.Clone(state[k])
	}
	for k := range m.states {
		s := &m.states[k]
		for i := range state[k] {
			switch kind := m.kind(s.size); s.how {
			case updateSum, updateMistaken:
				state[k][i] = old[k][i] + x[kind][i]
			case updateInput:
				state[k][i] = x[kind][i]
			case updateOnto:
				state[k][i] = names[kind][i]
			}
		}
	}
	return out
}

// portableMethods returns a program with methods of portable operators.
func portableMethods(t *testing.T, methods []pte.Method, options ...etrun.Option) *etrun.Program {
	t.Helper()
	p, err := etrun.Parse(ptetest.Write(&pte.Program{Methods: methods}, ptetest.Layout{}), append([]etrun.Option{
		etrun.WithOperatorSet(kernels.NewSet(portable.Ops())), etrun.WithThreads(1), etrun.WithLowering(etrun.LowerRewrite)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// modules is the number of random modules; ETRUN_MODULES sets another one.
func modules(t *testing.T) uint64 {
	t.Helper()
	if n, err := strconv.ParseUint(os.Getenv("ETRUN_MODULES"), 10, 64); err == nil {
		return n
	}
	return uint64(cases.Of(700, 2000))
}

// TestModulesWithLostUpdates runs random modules as faulty exporters write them: each is refused, or
// computes what the module does, and its inputs stay as they are.
func TestModulesWithLostUpdates(t *testing.T) {
	counts := make(map[string]int)
	for seed := range modules(t) {
		m := randomModule(rand.New(rand.NewPCG(seed, 21)))
		refused := m.refused()
		p := portableMethods(t, []pte.Method{m.spec})
		live, err := p.Load(context.Background(), "")
		if refused {
			counts["refused"]++
			if !errors.Is(err, etrun.ErrFormat) || !strings.Contains(err.Error(), "export again") {
				t.Fatalf("seed %d: got %v, want a refusal\n%+v", seed, err, m.states)
			}
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: %v\n%+v", seed, err, m.states)
		}
		if len(live.Report().Repairs) > 0 {
			counts["repaired"]++
		} else {
			counts["sound"]++
		}
		if err := m.compare(live, seed); err != nil {
			t.Fatalf("seed %d: %v\n%+v", seed, err, m.states)
		}
		live.Close()
		p.Close()
	}
	t.Log(counts)
	for _, kind := range []string{"refused", "repaired", "sound"} {
		if counts[kind] < cases.Of(30, 100) && os.Getenv("ETRUN_MODULES") == "" {
			t.Errorf("%d programs %s: the test shows little", counts[kind], kind)
		}
	}
}

// compare runs a method several times and compares it with the module.
func (m *module) compare(live *etrun.Method, seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 22))
	state := make([][]float32, len(m.states))
	for k, s := range m.states {
		state[k] = slices.Repeat([]float32{s.initial}, s.size)
	}
	for call := range 4 {
		var given [][]float32
		for i, size := range append(slices.Clone(moduleSizes), moduleSizes...) {
			x := make([]float32, size)
			for k := range x {
				x[k] = float32(r.IntN(100))
			}
			if err := etrun.Set(live, i, x); err != nil {
				return err
			}
			given = append(given, x)
		}
		for range 2 { // the second time on the inputs that are there
			if err := live.Execute(context.Background()); err != nil {
				return err
			}
			got, want := tensor.View[float32](tensorOf(live, 0).Data), m.run(state, given[:2], given[2:])
			if !slices.Equal(got, want) {
				return fmt.Errorf("call %d: got %v, want %v", call, got, want)
			}
		}
	}
	return nil
}

// delayLine is a module with a state that is read and not written.
func delayLine(name string, arena int) *module {
	m := newModule()
	s := m.tensor(4, arena)
	m.spec.Values[s].Tensor.Name = name
	x := m.input(4)
	m.spec.Outputs = []int{m.add(x, s, 4)}
	m.spec.Arenas = []pte.Arena{{Size: 1024}, {Size: 1024}}
	return m
}

// writer is a method "other" with a state of the same kind, which it writes or reads.
func writer(name string, arena int, writes bool) *module {
	m := newModule()
	m.spec.Name = "other"
	s := m.tensor(4, arena)
	m.spec.Values[s].Tensor.Name = name
	x := m.input(4)
	m.spec.Outputs = []int{m.add(x, x, 4)}
	if writes {
		m.copy(s, x)
	}
	m.spec.Arenas = []pte.Arena{{Size: 1024}, {Size: 1024}}
	return m
}

// TestStateOfOtherMethods checks which writes of other methods count, and that a faulty method does
// not affect the others.
func TestStateOfOtherMethods(t *testing.T) {
	for name, c := range map[string]struct {
		method, other *module
		change        func(m *pte.Method)
		refused       bool
		warnings      int
	}{
		"shared arena":        {method: delayLine("", 1), other: writer("", 1, true)},
		"a name":              {method: delayLine("s", 0), other: writer("s", 0, true)},
		"a view of a name":    {method: delayLine("s", 0), other: writer("s", 0, true), change: throughView(0, 3, 0, 3)},
		"a view of an offset": {method: delayLine("", 1), other: writer("", 1, true), change: throughView(0, 3, 0, 3)},
		"another name":        {method: delayLine("s", 0), other: writer("t", 0, true), refused: true},
		"arenas of their own": {method: delayLine("", 0), other: writer("", 0, true), refused: true},
		"nothing writes":      {method: delayLine("", 1), other: writer("", 1, false), refused: true},
		"another offset": {method: delayLine("", 1), other: writer("", 1, true),
			change: func(m *pte.Method) { m.Values[0].Tensor.Offset = 16 }, refused: true},
		"in part": {method: delayLine("", 1), other: writer("", 1, true),
			change: func(m *pte.Method) { m.Values[0].Tensor.Offset = 8 }},
		"a copy onto itself": {method: delayLine("", 1), other: writer("", 1, true),
			change: func(m *pte.Method) { m.Chains[0].Instructions[1].Args[1] = 0 }, refused: true},
		"an operator that is absent": {method: delayLine("", 1), other: writer("", 1, true),
			change: func(m *pte.Method) { m.Operators[1].Name = "own::copy_" }, warnings: 1},
		"a delegate":             {method: delayLine("", 1), other: writer("", 1, true), change: delegateCall(1, 0), warnings: 1},
		"an input of a delegate": {method: delayLine("", 1), other: writer("", 1, true), change: delegateCall(0, 1), refused: true},
	} {
		if c.change != nil {
			c.change(&c.other.spec)
		}
		p := portableMethods(t, []pte.Method{c.other.spec, c.method.spec})
		_, err := p.Load(context.Background(), "")
		fault, ok := errors.AsType[*etrun.InstructionError](err)
		if refused := ok && fault.Index == 0 && errors.Is(err, etrun.ErrFormat) && strings.Contains(err.Error(), "value 0"); refused != c.refused ||
			err != nil && !refused {
			t.Errorf("%s: got %v", name, err)
		}
		if list := p.Warnings(); len(list) != c.warnings || c.warnings > 0 && list[0].Class != delegate.WarnFault {
			t.Errorf("%s: warnings %q", name, list)
		}
		if name == "nothing writes" {
			if _, err := p.Load(context.Background(), "other"); err != nil {
				t.Errorf("the other method: %v", err)
			}
		}
	}
}

// throughView makes arguments of the last call a view of the state that the exporter left out.
func throughView(list ...int) func(m *pte.Method) {
	return func(m *pte.Method) {
		view := *m.Values[0].Tensor
		view.Name, view.Sizes, view.DimOrder = "", []int{2, 2}, []uint8{0, 1}
		m.Values = append(m.Values, pte.Value{Kind: tensor.KindTensor, Tensor: &view})
		calls := m.Chains[0].Instructions
		args := calls[len(calls)-1].Args
		for _, k := range list {
			args[k] = len(m.Values) - 1
		}
	}
}

// delegateCall replaces the last call of a method by one of a delegate.
func delegateCall(args ...int) func(m *pte.Method) {
	return func(m *pte.Method) {
		m.Delegates = []pte.Delegate{{ID: "absent"}}
		list := m.Chains[0].Instructions
		list[len(list)-1] = pte.Instruction{Kind: pte.DelegateCall, Args: args}
	}
}

// TestLostUpdatesUnchanged checks that programs run unchanged without repairs, with a warning.
func TestLostUpdatesUnchanged(t *testing.T) {
	filled, output := delayLine("", 0), delayLine("", 0)
	filled.spec.Values[0].Tensor.Storage, filled.spec.Values[0].Tensor.Data = pte.PlannedInit, make([]byte, 16)
	output.spec.Chains[0].Instructions, output.spec.Outputs = nil, []int{0}
	for text, m := range map[string]*module{"no initial contents": delayLine("", 0), "keeps its initial contents": filled, "is read": output} {
		if _, err := portableMethods(t, []pte.Method{m.spec}).Load(context.Background(), ""); !errors.Is(err, etrun.ErrFormat) ||
			!strings.Contains(err.Error(), text) {
			t.Errorf("%s: got %v", text, err)
		}
		p := portableMethods(t, []pte.Method{m.spec}, etrun.WithoutRepair())
		if _, err := p.Load(context.Background(), ""); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if list := p.Warnings(); len(list) != 1 || list[0].Class != delegate.WarnFault || !strings.Contains(list[0].Text, text) {
			t.Errorf("%s: warnings %q", text, list)
		}
	}
}

// TestReadsThatNeedNoContents checks that sizes, scratch memory, empty tensors, and parameters that
// an optimizer writes are no faults.
func TestReadsThatNeedNoContents(t *testing.T) {
	sizes := delayLine("", 0)
	sizes.spec.Operators = append(sizes.spec.Operators, pte.Operator{Name: "aten::full_like", Overload: "out"})
	n, x := sizes.scalar(tensor.KindInt, 3), sizes.spec.Outputs[0]
	sizes.spec.Chains[0].Instructions = nil
	sizes.call(2, 0, n, sizes.scalar(tensor.None, 0), x, x)
	empty := delayLine("", 0)
	empty.spec.Values[0].Tensor.Sizes, empty.spec.Values[2].Tensor.Sizes, empty.spec.Values[1].Tensor.Sizes = []int{0}, []int{0}, []int{0}
	trained := delayLine("", 0)
	trained.spec.Values[0].Tensor.Storage, trained.spec.Values[0].Tensor.Data = pte.PlannedInit, make([]byte, 16)
	trained.spec.Outputs = append(trained.spec.Outputs, 0)
	index := writer("", 0, false)
	index.spec.Name = "__et_training_parameters_index_forward"
	for name, methods := range map[string][]pte.Method{"sizes": {sizes.spec}, "empty": {empty.spec},
		"parameters": {trained.spec, index.spec}} {
		p := portableMethods(t, methods)
		if _, err := p.Load(context.Background(), ""); err != nil || len(p.Warnings()) > 0 {
			t.Errorf("%s: %v, %v", name, err, p.Warnings())
		}
	}
}
