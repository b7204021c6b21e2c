//go:build linux

package integration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/internal/campaign"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/compile/compiletest"
	"github.com/etrun-go/etrun/runtime/exec/exectest"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// keeper generates programs that read and update states through views that the exporter left out: values at the place of
// the state. All numbers are small and whole, so that every way to run a program gives the same bits as keeperOracle.
type keeper struct {
	r      *rand.Rand
	m      pte.Method
	ops    map[string]int
	ends   []int64 // of the arenas in use
	states []int
	now    []int // floats that may be read
	bools  []int // inputs
}

const keptElements = 16

// keptSizes are the sizes of all tensors.
var keptSizes = [][]int{{16}, {4, 4}, {2, 8}, {8, 2}, {1, 16}, {2, 2, 4}, {1, 4, 4}, {1, 2, 2, 4}, {16, 1}, {1, 16, 1, 1}}

// keptTypes are the types of states; views and sums of others than floats are read after a conversion.
var keptTypes = []tensor.DType{tensor.Float32, tensor.Float32, tensor.Float32, tensor.Float16, tensor.Int64, tensor.Int8, tensor.Bool}

// emptyKeeper returns a method without instructions that has states of the types and names of another one, if it is not nil.
func emptyKeeper(r *rand.Rand, name string, like *keeper) *keeper {
	k := &keeper{r: r, ops: make(map[string]int), ends: make([]int64, 2)}
	k.m.Name, k.m.Chains = name, make([]pte.Chain, 1)
	if like != nil {
		for _, s := range like.states {
			t := *like.m.Values[s].Tensor
			if t.Storage == pte.PlannedInit && r.IntN(2) == 0 { // the other method has the contents
				t.Storage, t.Data = pte.Planned, nil
			}
			k.m.Values = append(k.m.Values, pte.Value{Kind: tensor.KindTensor, Tensor: &t})
			k.states = append(k.states, len(k.m.Values)-1)
			k.ends[t.Arena] = max(k.ends[t.Arena], t.Offset+256)
		}
	}
	return k
}

// randomKeeper returns a program: a method, and often one that reads or changes its states.
func randomKeeper(r *rand.Rand) []*keeper {
	k := emptyKeeper(r, "forward", nil)
	arena, named, filled := r.IntN(2), r.IntN(2) == 0, r.IntN(3) == 0
	for i := range 1 + r.IntN(3) {
		s := k.tensor(keptTypes[r.IntN(len(keptTypes))], arena)
		t := k.m.Values[s].Tensor
		if named {
			t.Name = fmt.Sprintf("state.%d", i)
		}
		if filled && r.IntN(2) == 0 {
			t.Storage, t.Data = pte.PlannedInit, make([]byte, t.NBytes())
			for i := range keptElements {
				storeKept(t.DType, t.Data, i, float64(r.IntN(2)))
			}
		}
		k.states = append(k.states, s)
	}
	list := []*keeper{k}
	if (named || arena == 1) && r.IntN(2) == 0 {
		list = append(list, emptyKeeper(r, "other", k))
	}
	for i, k := range list {
		k.fill(i > 0 && r.IntN(2) == 0)
		for _, end := range k.ends {
			k.m.Arenas = append(k.m.Arenas, pte.Arena{Size: end + 256})
		}
	}
	return list
}

// fill adds the instructions; a method that only reads has no updates.
func (k *keeper) fill(reads bool) {
	k.m.Inputs = append(k.m.Inputs, k.tensor(tensor.Float32, 0))
	k.now = slices.Clone(k.m.Inputs)
	if k.r.IntN(3) == 0 {
		b := k.tensor(tensor.Bool, 0)
		k.m.Values[b].Tensor.Sizes, k.m.Values[b].Tensor.DimOrder = []int{1}, []uint8{0}
		k.m.Inputs, k.bools = append(k.m.Inputs, b), append(k.bools, b)
	}
	for range 3 + k.r.IntN(8) {
		k.statement()
	}
	if !reads && k.r.IntN(4) == 0 { // exporters return what they computed before
		k.updates()
		reads = true
	}
	total := k.now[len(k.now)-1]
	for range 2 {
		total = k.sum(total, k.pick())
	}
	k.m.Outputs = []int{total}
	if !reads {
		k.updates()
	}
}

func (k *keeper) updates() {
	for _, s := range k.states {
		k.update(s)
	}
}

func (k *keeper) value(v pte.Value) int {
	k.m.Values = append(k.m.Values, v)
	return len(k.m.Values) - 1
}

func (k *keeper) number(n int) int { return k.value(pte.Value{Kind: tensor.KindInt, Int: int64(n)}) }

func (k *keeper) no() int { return k.value(pte.Value{Kind: tensor.KindBool}) }

func (k *keeper) list(numbers []int) int {
	var items []int
	for _, n := range numbers {
		items = append(items, k.number(n))
	}
	return k.value(pte.Value{Kind: tensor.KindIntList, Items: items})
}

// tensor adds a tensor with a place of its own.
func (k *keeper) tensor(d tensor.DType, arena int) int {
	v := k.at(pte.Tensor{DType: d, Storage: pte.Planned, Arena: arena, Offset: k.ends[arena]})
	k.ends[arena] += 256
	return v
}

// at adds a tensor of random sizes.
func (k *keeper) at(t pte.Tensor) int {
	t.Sizes = keptSizes[k.r.IntN(len(keptSizes))]
	t.DimOrder = []uint8{0, 1, 2, 3}[:len(t.Sizes)]
	return k.value(pte.Value{Kind: tensor.KindTensor, Tensor: &t})
}

// view adds a view that the exporter left out: a value at the same place, with the name and initial contents of its operand,
// or without.
func (k *keeper) view(v int) int {
	t := *k.m.Values[v].Tensor
	if t.Storage == pte.PlannedInit && k.r.IntN(2) == 0 {
		t.Storage, t.Data = pte.Planned, nil
	}
	if k.r.IntN(2) == 0 {
		t.Name = ""
	}
	return k.at(t)
}

func (k *keeper) call(op string, args ...int) {
	at, ok := k.ops[op]
	if !ok {
		at = len(k.m.Operators)
		k.ops[op] = at
		name, overload := exectest.SplitName(op)
		k.m.Operators = append(k.m.Operators, pte.Operator{Name: name, Overload: overload})
	}
	k.add(pte.Instruction{Kind: pte.KernelCall, Index: at, Args: args})
}

func (k *keeper) add(in pte.Instruction) {
	c := &k.m.Chains[0]
	c.Instructions = append(c.Instructions, in)
}

func (k *keeper) pick() int { return k.now[k.r.IntN(len(k.now))] }

// sizedLike gives a value the sizes of another one.
func (k *keeper) sizedLike(v, other int) {
	t, o := k.m.Values[v].Tensor, k.m.Values[other].Tensor
	t.Sizes, t.DimOrder = o.Sizes, o.DimOrder
}

// result adds a value of the sizes of another one.
func (k *keeper) result(d tensor.DType, like int) int {
	v := k.tensor(d, 0)
	k.sizedLike(v, like)
	return v
}

// alike returns a value with the elements of v in the sizes of another one: v, a view, or a copy.
func (k *keeper) alike(v, other int) int {
	if slices.Equal(k.m.Values[v].Tensor.Sizes, k.m.Values[other].Tensor.Sizes) {
		return v
	}
	if k.r.IntN(3) > 0 {
		w := k.view(v)
		k.sizedLike(w, other)
		return w
	}
	out := k.result(k.m.Values[v].Tensor.DType, other)
	k.call("aten::view_copy.out", v, k.list(k.m.Values[out].Tensor.Sizes), out, out)
	return out
}

// sum returns clamp(a + b, -9, 9).
func (k *keeper) sum(a, b int) int {
	s := k.result(tensor.Float32, a)
	k.call("aten::add.out", a, k.alike(b, a), k.number(1), s, s)
	out := k.result(tensor.Float32, a)
	k.call("aten::clamp.out", s, k.number(-9), k.number(9), out, out)
	return out
}

// floats returns the elements of a state as floats, often through views.
func (k *keeper) floats(s int) int {
	v := s
	if k.r.IntN(4) > 0 {
		v = k.view(s)
	}
	if k.m.Values[v].Tensor.DType == tensor.Float32 {
		return v
	}
	out := k.result(tensor.Float32, v)
	k.call("dim_order_ops::_to_dim_order_copy.out", v, k.no(), k.value(pte.Value{}), out, out)
	return out
}

func (k *keeper) statement() {
	switch k.r.IntN(7) {
	case 0, 1:
		k.now = append(k.now, k.floats(k.states[k.r.IntN(len(k.states))]))
	case 2, 3:
		k.now = append(k.now, k.sum(k.pick(), k.pick()))
	case 4:
		k.product()
	case 5:
		k.now = append(k.now, k.view(k.sum(k.pick(), k.pick())))
	case 6:
		k.branch()
	}
}

// product multiplies by a matrix of -1, 0 and 1 with one number per column.
func (k *keeper) product() {
	x, w := k.pick(), k.value(pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Float32, Sizes: []int{4, 4},
		DimOrder: []uint8{0, 1}, Storage: pte.Constant}})
	data := make([]float32, 16)
	for i := range 4 {
		data[4*k.r.IntN(4)+i] = float32(k.r.IntN(3) - 1)
	}
	k.m.Values[w].Tensor.Data = tensor.BytesOf(data)
	out := k.result(tensor.Float32, w)
	k.call("aten::mm.out", k.alike(x, w), w, out, out)
	k.now = append(k.now, out)
}

// branch computes something, mostly from a state, in one branch only, and copies it or a sum.
func (k *keeper) branch() {
	if len(k.bools) == 0 {
		return
	}
	to := k.tensor(tensor.Float32, 0)
	jump := func() int {
		k.add(pte.Instruction{Kind: pte.JumpFalseCall, Index: k.bools[0]})
		return len(k.m.Chains[0].Instructions) - 1
	}
	land := func(at int) { k.m.Chains[0].Instructions[at].Target = len(k.m.Chains[0].Instructions) }
	before := k.pick()
	otherwise := jump()
	k.add(pte.Instruction{Kind: pte.MoveCall, Index: k.alike(k.floats(k.states[0]), to), Target: to})
	k.add(pte.Instruction{Kind: pte.JumpFalseCall, Index: k.no()})
	end := len(k.m.Chains[0].Instructions) - 1
	land(otherwise)
	k.add(pte.Instruction{Kind: pte.MoveCall, Index: k.alike(before, to), Target: to})
	land(end)
	k.now = append(k.now, to)
}

// update changes a state at the end, as exporters do: by a copy of a sum or of its view, or in place, directly or through a view.
func (k *keeper) update(s int) {
	t := k.m.Values[s].Tensor
	new := k.sum(k.floats(s), k.pick())
	if t.DType == tensor.Bool { // within what the type has: 0 and 1
		out := k.result(tensor.Float32, new)
		k.call("aten::clamp.out", new, k.number(0), k.number(1), out, out)
		new = out
	}
	if t.DType != tensor.Float32 {
		out := k.result(t.DType, new)
		k.call("dim_order_ops::_to_dim_order_copy.out", new, k.no(), k.value(pte.Value{}), out, out)
		new = out
	}
	to := s
	if k.r.IntN(3) == 0 {
		to = k.view(s)
	}
	if k.r.IntN(4) == 0 {
		k.put(to, new)
	} else {
		k.call("aten::copy_", to, k.alike(new, to), k.no(), to)
	}
}

// put replaces the first part of a tensor in place.
func (k *keeper) put(to, new int) {
	sizes := k.m.Values[to].Tensor.Sizes
	index := k.value(pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Int64, Sizes: []int{1}, DimOrder: []uint8{0},
		Storage: pte.Constant, Data: make([]byte, 8)}})
	part := k.result(k.m.Values[to].Tensor.DType, to)
	k.m.Values[part].Tensor.Sizes = append([]int{1}, sizes[1:]...)
	new = k.alike(new, to)
	k.call("aten::slice_copy.Tensor_out", new, k.number(0), k.number(0), k.number(1), k.number(1), part, part)
	k.call("aten::index_put_", to, k.value(pte.Value{Kind: tensor.KindOptionalTensorList, Items: []int{index}}), part,
		k.no(), to)
}

// keptWays are the ways to run a program: on operators, lowered at load and as a file, with each engine and plan.
func keptWays() (list []way) {
	plain := etrun.WithDelegates(xnnpack.Backend{Engine: xnnpack.EngineGo})
	list = []way{{"operators", []etrun.Option{plain, etrun.WithLowering(etrun.LowerOff)}},
		{"the file's plan", []etrun.Option{plain, etrun.WithLowering(etrun.LowerOff), etrun.WithPlan(etrun.PlanFile)}},
		{"no repairs", []etrun.Option{plain, etrun.WithLowering(etrun.LowerRewrite), etrun.WithoutRepair(), etrun.WithPlan(etrun.PlanNaive)}}}
	engines := []xnnpack.Engine{xnnpack.EngineGo}
	if _, err := xnn.Open(xnntest.Path()); err == nil {
		engines = append(engines, xnnpack.EngineNative)
	}
	for _, engine := range engines {
		by := etrun.WithDelegates(xnnpack.Backend{Engine: engine, Library: xnntest.Path()})
		list = append(list, way{fmt.Sprintf("%s engine", engine), []etrun.Option{by, etrun.WithLowering(etrun.LowerAll)}},
			way{fmt.Sprintf("file, %s engine", engine), []etrun.Option{by, etrun.WithLowering(etrun.LowerOff), etrun.WithPlan(etrun.PlanFile)}},
			way{fmt.Sprintf("file, lowered again, %s engine", engine), []etrun.Option{by, etrun.WithLowering(etrun.LowerAll)}})
	}
	return list
}

// TestStatesThroughViews runs random programs whose states are read and updated through views, some calls in all ways.
func TestStatesThroughViews(t *testing.T) {
	c := &campaign.Campaign{Test: "TestStatesThroughViews", Usual: 150, Memory: 256 << 20, Counters: []string{"programs", "runs", "regions"},
		Start: func(_ *testing.T, p *campaign.Process) func(seed uint64) error {
			ways := keptWays()
			return func(seed uint64) error {
				p.Count(0, 1)
				if err := runKept(seed, ways, p.Count); err != nil {
					return &campaign.Finding{Kind: "states", Message: err.Error()}
				}
				return nil
			}
		}}
	c.Run(t)
}

func runKept(seed uint64, ways []way, count func(counter int, n int)) error {
	list := randomKeeper(rand.New(rand.NewPCG(seed, 31)))
	var methods []pte.Method
	for _, k := range list {
		methods = append(methods, k.m)
	}
	data := ptetest.Write(&pte.Program{Methods: methods}, ptetest.Layout{})
	lowered, err := lowerGo(data)
	if err != nil {
		return fmt.Errorf("to a file: %w", err)
	}
	if faults := compiletest.Check(data, lowered.Data.Bytes()); len(faults) > 0 {
		return errors.New(faults[0])
	}
	for _, w := range ways {
		file := data
		if strings.HasPrefix(w.name, "file") {
			file = lowered.Data.Bytes()
		}
		regions, err := compareKept(list, file, w, seed, sameKept)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		count(1, 1)
		count(2, regions)
	}
	if err := quantizeKept(list, lowered.Data.Bytes(), seed); err != nil {
		return fmt.Errorf("quantized: %w", err)
	}
	return nil
}

// compareKept calls the methods of a program in random order, and again after a reset.
func compareKept(list []*keeper, file []byte, w way, seed uint64, compare func(got, want []float32) error) (regions int, err error) {
	p, err := etrun.Parse(slices.Clone(file), append(slices.Clone(w.options), etrun.WithThreads(1))...)
	if err != nil {
		return 0, err
	}
	defer p.Close()
	r, mem, methods := rand.New(rand.NewPCG(seed, 32)), newKeptMemory(list), make([]*etrun.Method, len(list))
	guards := make([]*exectest.Guard, len(list))
	var first *etrun.Method
	for _, i := range r.Perm(len(list)) {
		m, err := p.Load(context.Background(), list[i].m.Name, etrun.WithStateOf(first))
		if err != nil {
			return 0, err
		}
		defer m.Close()
		methods[i], first = m, cmp.Or(first, m)
		g := exectest.NewGuard(m.Report().Plan, 0xAA)
		if err := m.Observe(g); err != nil {
			return 0, err
		}
		guards[i] = g
		if l := m.Report().Lowered; l != nil {
			regions += l.Accepted()
		}
	}
	for call := range 7 {
		if call == 5 {
			for _, m := range methods {
				if err := m.Reset(); err != nil {
					return 0, err
				}
			}
			mem = newKeptMemory(list)
		}
		i := r.IntN(len(list))
		got, want, err := callKept(guards[i], methods[i], list[i], &mem, r)
		if err == nil {
			err = errors.Join(compare(got, want), guards[i].Fault)
		}
		if err != nil {
			return 0, fmt.Errorf("call %d, method %s: %w\n%s", call, list[i].m.Name, err, exectest.Listing(methods[i].Report().Plan))
		}
	}
	return regions, nil
}

func callKept(ctx context.Context, m *etrun.Method, k *keeper, mem *keptMemory, r *rand.Rand) (got, want []float32, err error) {
	var inputs [][]float64
	for i, v := range k.m.Inputs {
		x := m.Meta().Inputs[i].NewTensor()
		var numbers []float64
		for e := range x.Numel() {
			numbers = append(numbers, float64(r.IntN(2)))
			storeKept(x.DType, x.Data, e, numbers[e])
		}
		if err := m.SetInput(i, x); err != nil {
			return nil, nil, fmt.Errorf("input of value %d: %w", v, err)
		}
		inputs = append(inputs, numbers)
	}
	if err := m.Execute(ctx); err != nil {
		return nil, nil, err
	}
	return slices.Clone(tensor.Data[float32](tensorOf(m, 0))), mem.run(k, inputs), nil
}
