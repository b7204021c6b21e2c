package compile

import (
	"fmt"
	"maps"
	"slices"

	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/prepare"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/tree"
)

// method writes the execution plan of a lowered method.
type method struct {
	*writer
	from      *pte.Method
	plan      *tree.Node // of the original program
	low       *prepare.InFile
	m         *ir.Method
	to        []int // by value: its number in the result, or none
	values    []*tree.Node
	operators []*tree.Node
	byName    map[string]int // operators
	delegates []*tree.Node
	byIndex   map[int]int // delegates
	extra     [][]int     // by region: the values of its constants
	arenas    arenas
	views     []bool // by value: a step makes it a view
}

const none = -1

// newMethod returns method i as it was lowered.
func (w *writer) newMethod(i int, low *prepare.InFile) *method {
	return &method{writer: w, from: &w.spec.Methods[i], plan: nodes(w.file.Root, "execution_plan")[i], low: low, m: low.IR, views: low.IR.Views(),
		to: slices.Repeat([]int{none}, len(low.IR.Values)), byName: make(map[string]int), byIndex: make(map[int]int)}
}

// replace adds method i as it was lowered. It returns the bytes of its planned memory.
func (w *writer) replace(i int, low *prepare.InFile) (planned int64) {
	m := w.newMethod(i, low)
	m.arenas = m.place()
	m.addValues()
	out := copied(m.plan)
	out.With("chains", []*tree.Node{m.chain()})
	out.With("values", m.values).With("operators", list(m.operators)).With("delegates", list(m.delegates))
	out.With("inputs", tree.Scalars(m.numbers(m.m.Inputs))).With("outputs", tree.Scalars(m.numbers(m.m.Outputs)))
	out.With("non_const_buffer_sizes", tree.Scalars(m.arenas.sizes))
	delete(out.Fields, "non_const_buffer_device")
	out.With("container_meta_type", container(m.plan))
	w.plans = append(w.plans, out)
	return m.arenas.bytes()
}

// list returns a list that is not absent from the file if it is empty.
func list(nodes []*tree.Node) []*tree.Node { return append([]*tree.Node{}, nodes...) }

// container returns the table with the structure of inputs and outputs. Runtimes require both strings.
func container(plan *tree.Node) *tree.Node {
	out := tree.New("ContainerMetadata").With("encoded_inp_str", "").With("encoded_out_str", "")
	if n, ok := plan.Fields["container_meta_type"].(*tree.Node); ok {
		maps.Copy(out.Fields, n.Fields)
	}
	return out
}

// refusal returns why the lowered method cannot be written, "" if it can: all operators outside delegates must be among
// those of the original program, whose users have a runtime with them.
func (m *method) refusal() string {
	for i := range m.m.Steps {
		s := &m.m.Steps[i]
		if s.Kind == ir.SizesJump {
			return "a region does not run all sizes"
		}
		if m.isForeign(s) {
			return fmt.Sprintf("%s would call %s, which the program does not; etrun repair may help", s.Origin.Place(s.Op.Name()), s.Sig.Name)
		}
	}
	return ""
}

// isForeign reports whether a step calls an operator that the original program does not.
func (m *method) isForeign(s *ir.Step) bool { return s.Kind == ir.KernelCall && m.operator(s) == none }

// operator returns the number of a step's operator in the original program.
func (m *method) operator(s *ir.Step) int {
	if c := s.Origin.Chain; c < len(m.from.Chains) && s.Origin.Index < len(m.from.Chains[c].Instructions) {
		if in := &m.from.Chains[c].Instructions[s.Origin.Index]; in.Kind == pte.KernelCall && m.isOperator(in.Index, s) {
			return in.Index
		}
	}
	for i := range m.from.Operators {
		if m.isOperator(i, s) {
			return i
		}
	}
	return none
}

func (m *method) isOperator(i int, s *ir.Step) bool {
	op, _, ok, err := m.options.Operators.Lookup(m.from.Operators[i].FullName())
	return ok && err == nil && op == s.Op
}

// addValues adds the values that the method uses in ascending order, items before their lists.
func (m *method) addValues() {
	used := make([]bool, len(m.m.Values))
	var mark func(values []int)
	mark = func(values []int) {
		for _, v := range values {
			if v >= 0 && !used[v] {
				used[v] = true
				mark(m.m.Values[v].Items())
			}
		}
	}
	mark(m.m.Inputs)
	mark(m.m.Outputs)
	for i := range m.m.Steps {
		mark(m.m.Steps[i].Args)
	}
	m.markStates(used)
	for v, is := range used {
		if is {
			m.number(v)
		}
	}
	for _, r := range m.low.Regions {
		var values []int
		for i := range r.Constants {
			values = append(values, m.addConstant(&r.Constants[i]))
		}
		m.extra = append(m.extra, values)
	}
}

// markStates adds the values that have the names and initial contents of states of which only views are used.
func (m *method) markStates(used []bool) {
	for i := range m.m.Storages {
		s := &m.m.Storages[i]
		if s.Kind != ir.State || !slices.ContainsFunc(s.Values, func(v int) bool { return used[v] }) {
			continue
		}
		for _, v := range s.Values {
			if v < len(m.from.Values) && ir.DeclaresState(m.from.Values[v].Tensor) {
				used[v] = true
			}
		}
	}
}

// number returns the number of value v in the result.
func (m *method) number(v int) int {
	if v < 0 {
		return v
	}
	if m.to[v] != none {
		return m.to[v]
	}
	if u := m.placeless(v); u != v {
		m.to[v] = m.number(u)
	} else {
		items := m.m.Values[v].Items()
		for _, item := range items {
			m.number(item)
		}
		m.values = append(m.values, m.value(v))
		m.to[v] = len(m.values) - 1
	}
	return m.to[v]
}

// placeless returns the value that stands for v in the result: another one of the same bytes if that has no place in the original
// program, as outputs that the caller provides. Values at no place share no bytes in the file.
func (m *method) placeless(v int) int {
	x := &m.m.Values[v]
	if x.Kind != tensor.KindTensor || x.Tensor.Const || x.Tensor.Dynamism != tensor.Static || x.Storage < 0 || m.views[v] ||
		slices.Contains(m.m.Inputs, v) || slices.Contains(m.m.Outputs, v) {
		return v
	}
	for _, u := range m.m.Storages[x.Storage].Values {
		y := m.m.Values[u].Tensor
		if u < len(m.from.Values) && m.from.Values[u].Tensor.Storage == pte.Unplanned && !m.views[u] && y.Dynamism == tensor.Static &&
			y.DType == x.Tensor.DType && slices.Equal(y.Sizes, x.Tensor.Sizes) && slices.Equal(y.DimOrder, x.Tensor.DimOrder) &&
			(u < v || slices.Contains(m.m.Inputs, u) || slices.Contains(m.m.Outputs, u)) {
			return u
		}
	}
	return v
}

func (m *method) numbers(values []int) []int {
	list := make([]int, len(values))
	for i, v := range values {
		list[i] = m.number(v)
	}
	return list
}

// addConstant adds a tensor of a region's constant bytes.
func (m *method) addConstant(c *lowering.GraphValue) int {
	n := tensorNode(c.DType, c.Sizes, nil)
	m.values = append(m.values, m.constant(n, c.Data))
	return len(m.values) - 1
}

// tensorNode returns a value that is a static tensor.
func tensorNode(d tensor.DType, sizes []int, order []uint8) *tree.Node {
	if order == nil {
		for i := range sizes {
			order = append(order, uint8(i))
		}
	}
	t := tree.New("Tensor").With("scalar_type", tree.Scalar(d)).With("sizes", tree.Scalars(sizes)).With("dim_order", tree.Scalars(order))
	return evalue(t)
}

// evalue wraps a table of the union of values.
func evalue(t *tree.Node) *tree.Node {
	tag := slices.Index(tree.Unions["KernelTypes"], t.Type)
	return tree.New("EValue").With("val_type", tree.Scalar(tag)).With("val", t)
}

// chain returns the instructions, one for each step.
func (m *method) chain() *tree.Node {
	var instructions, stacks []*tree.Node
	for i := range m.m.Steps {
		in := m.instruction(&m.m.Steps[i])
		tag := slices.Index(tree.Unions["InstructionArguments"], in.Type)
		instructions = append(instructions, tree.New("Instruction").With("instr_args_type", tree.Scalar(tag)).With("instr_args", in))
		stacks = append(stacks, m.stack(m.m.Steps[i].Origin))
	}
	c := tree.New("Chain").With("inputs", []tree.Scalar{}).With("outputs", []tree.Scalar{}).With("instructions", instructions)
	if !slices.Contains(stacks, nil) {
		c.With("stacktrace", stacks)
	}
	return c
}

// stack returns the stack trace of an instruction of the original program, nil if it has none.
func (m *method) stack(at ir.Origin) *tree.Node {
	if chains := nodes(m.plan, "chains"); at.Chain < len(chains) {
		if stacks := nodes(chains[at.Chain], "stacktrace"); at.Index < len(stacks) {
			return stacks[at.Index]
		}
	}
	return nil
}

// instruction returns the arguments of a step's instruction.
func (m *method) instruction(s *ir.Step) *tree.Node {
	switch s.Kind {
	case ir.KernelCall:
		return tree.New("KernelCall").With("op_index", tree.Scalar(m.addOperator(s))).With("args", tree.Scalars(m.numbers(s.Args)))
	case ir.DelegateCall:
		args := m.numbers(s.Args)
		if r := s.Delegate - len(m.from.Delegates); r >= 0 {
			args = slices.Insert(args, s.Inputs, m.extra[r]...)
		}
		return tree.New("DelegateCall").With("delegate_index", tree.Scalar(m.addDelegate(s.Delegate))).With("args", tree.Scalars(args))
	case ir.MoveCall:
		return tree.New("MoveCall").With("move_from", m.scalar(s.Args[0])).With("move_to", m.scalar(s.Args[1]))
	case ir.JumpFalseCall:
		return tree.New("JumpFalseCall").With("cond_value_index", m.scalar(s.Args[0])).With("destination_instruction", tree.Scalar(s.Target))
	}
	return tree.New("FreeCall").With("value_index", m.scalar(s.Args[0]))
}

func (m *method) scalar(v int) tree.Scalar { return tree.Scalar(m.number(v)) }

// addOperator returns the number of a step's operator in the result.
func (m *method) addOperator(s *ir.Step) int {
	i := m.operator(s)
	name := m.from.Operators[i].FullName()
	to, ok := m.byName[name]
	if !ok {
		to = len(m.operators)
		m.operators = append(m.operators, nodes(m.plan, "operators")[i])
		m.byName[name] = to
	}
	return to
}

// addDelegate returns the number of a delegate in the result.
func (m *method) addDelegate(d int) int {
	to, ok := m.byIndex[d]
	if ok {
		return to
	}
	var n *tree.Node
	if r := d - len(m.from.Delegates); r < 0 {
		n = m.delegate(m.plan, m.from, d)
	} else {
		n = tree.New("BackendDelegate").With("id", m.backend(d)).With("processed", inSegment(m.payload(m.encoded(m.low.Regions[r])...))).
			With("compile_specs", []*tree.Node{})
	}
	m.delegates = append(m.delegates, n)
	m.byIndex[d] = len(m.delegates) - 1
	return m.byIndex[d]
}

// backend returns the backend of a region.
func (m *method) backend(d int) string {
	regions := m.low.Report.Regions
	return regions[slices.IndexFunc(regions, func(r regionReport) bool { return r.Delegate == d })].Backend
}
