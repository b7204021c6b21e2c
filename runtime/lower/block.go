package lower

import (
	"fmt"
	"slices"

	regions "github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// maxBlock is the largest number of steps that are analyzed together. The analysis may need its
// square in bits.
const maxBlock = 2048

// block is the steps [from, to). Control enters at the first and leaves after the last only.
type block struct{ from, to int }

// blocks splits a method at its jumps, at jump targets, and at steps that free memory.
func blocks(m *ir.Method, f *ir.Flow) (list []block) {
	for _, b := range f.Blocks {
		from := b.From
		for i := b.From; i <= b.To; i++ {
			barrier := i == b.To || m.Steps[i].IsJump() || m.Steps[i].Kind == ir.FreeCall
			if i > from && (barrier || i-from == maxBlock) {
				list = append(list, block{from, i})
				from = i
			}
			if barrier {
				from = i + 1
			}
		}
	}
	return list
}

// flow is the dataflow of one block at a time, with storages in static single assignment, see
// [ir.Flow]. Its tables are allocated once per method.
type flow struct {
	*ir.Flow
	m        *ir.Method
	payloads []Payload // see [Backends]
	views    []bool    // by value: a step makes it a view
	varies   [][]int   // see sizesThatVary; for a file only

	block
	after   [][]int  // by step of the block: the earlier steps that it must follow, each once
	refused []string // why no graph can contain the step, "" if one can

	slots   []int32 // by value: the resource of its slot, see visit
	viewed  []mark  // by slot: the step that made it a view
	equal   []int32 // by value: the first small number that is the same, or the value itself
	touched []touch // by resource
	number  int32   // of the block
	reads   []read  // of resources
	listed  []int   // by step of the block: the last one, and one, that is known to follow it
	follows []int   // the lists of after, one behind the other

	building
}

// touch is the last writer of a resource, outside if the block has none, and the last of the reads
// since then, an index plus one.
type touch struct{ block, writer, read int32 }

// read is a reader of a resource, and the read before that.
type read struct{ step, before int32 }

// newFlow returns the flow of a method. known is its dataflow, nil if that is not known.
func newFlow(m *ir.Method, known *ir.Flow, payloads []Payload) *flow {
	if known == nil {
		known = m.Flow()
	}
	f := &flow{Flow: known, m: m, payloads: calledOnce(m, payloads), views: m.Views(),
		slots: make([]int32, len(m.Values)), equal: equalNumbers(m)}
	resources := len(m.Storages)
	for v := range m.Values {
		if m.Values[v].Changes || f.views[v] {
			f.slots[v] = int32(resources)
			resources++
		}
	}
	f.viewed = make([]mark, resources-len(m.Storages))
	f.touched, f.known = make([]touch, resources+1), newVersions(m, f.Flow)
	return f
}

// equalNumbers returns the first of equal values, by value, for small integers and booleans: sizes
// and options of calls repeat.
func equalNumbers(m *ir.Method) []int32 {
	const least, most = -2, 16
	var known [2][most - least]int32 // value plus one
	equal := make([]int32, len(m.Values))
	for v := range m.Values {
		x, n, kind := &m.Values[v], 0, 0
		switch equal[v] = int32(v); {
		case x.Kind == tensor.KindInt && x.Int >= least && x.Int < most:
			n = int(x.Int)
		case x.Kind == tensor.KindBool:
			if kind = 1; x.Bool {
				n = 1
			}
		default:
			continue
		}
		if first := &known[kind][n-least]; *first == 0 {
			*first = int32(v) + 1
		} else {
			equal[v] = *first - 1
		}
	}
	return equal
}

// makesView returns the step that made value v a view.
func (f *flow) makesView(v int) *mark { return &f.viewed[int(f.slots[v])-len(f.m.Storages)] }

// calledOnce returns the payloads that exactly one step calls. A region may include such a step,
// and the payload then needs no image of its own.
func calledOnce(m *ir.Method, payloads []Payload) []Payload {
	calls := make([]int, len(payloads))
	for i := range m.Steps {
		if s := &m.Steps[i]; s.Kind == ir.DelegateCall && s.Delegate < len(calls) {
			calls[s.Delegate]++
		}
	}
	once := make([]Payload, len(payloads))
	for d, n := range calls {
		if n == 1 {
			once[d] = payloads[d]
		}
	}
	return once
}

// payload returns the one that a step calls, or one with a nil Opened.
func (f *flow) payload(s *ir.Step) (p Payload) {
	if s.Kind == ir.DelegateCall && s.Delegate < len(f.payloads) {
		p = f.payloads[s.Delegate]
	}
	return p
}

// enter computes the dependences of a block's steps, and which steps graphs can contain.
func (f *flow) enter(b block) {
	f.number++
	n := b.to - b.from
	f.block, f.after, f.refused, f.listed, f.reads = b, make([][]int, n), make([]string, n), make([]int, n), f.reads[:0]
	for i := range n {
		f.after[i] = f.follow(i)
		f.refused[i] = f.refusal(i)
		if s := f.step(i); s.IsView() {
			*f.makesView(s.Writes[0]) = mark{f.number, int32(i)}
		}
	}
}

// step returns step i of the block.
func (f *flow) step(i int) *ir.Step { return &f.m.Steps[f.from+i] }

// sees returns the definition that step i of the block reads as its Reads[k], outside for one made
// before the block.
func (f *flow) sees(i, k int) int {
	def := f.Steps[f.from+i].Reads[k]
	if f.Defs[def].Step < f.from {
		return outside
	}
	return def
}

// makes lists the definitions that step i of the block makes.
func (f *flow) makes(i int) []int { return f.Steps[f.from+i].Makes }

// maker returns the step of the block that makes a definition.
func (f *flow) maker(def int) int { return f.Defs[def].Step - f.from }

// follow lists the steps that step i must follow: earlier writers of what it accesses, and earlier
// readers of what it writes.
func (f *flow) follow(i int) []int {
	from := len(f.follows)
	add := func(j int) {
		if j != outside && j != i && f.listed[j] != i+1 {
			f.listed[j] = i + 1
			f.follows = append(f.follows, j)
		}
	}
	f.visit(f.step(i), func(resource int, write bool) {
		t := &f.touched[resource]
		if t.block != f.number {
			*t = touch{block: f.number, writer: outside}
		}
		add(int(t.writer))
		if !write {
			f.reads = append(f.reads, read{int32(i), t.read})
			t.read = int32(len(f.reads))
			return
		}
		for r := t.read; r > 0; r = f.reads[r-1].before {
			add(int(f.reads[r-1].step))
		}
		t.writer, t.read = int32(i), 0
	})
	return slices.Clip(f.follows[from:])
}

// visit calls touch for each resource that a step accesses, reads first: bytes of storages, the
// sizes and address of views, slots that steps change, and the outside world for other effects.
func (f *flow) visit(s *ir.Step, touch func(resource int, write bool)) {
	storage := func(v int) int { return f.m.Values[v].Storage }
	slot := func(v int) int { return int(f.slots[v]) }
	for _, list := range [...][]int{s.Reads, s.Updates} {
		for _, v := range list {
			touch(storage(v), false)
			if f.views[v] {
				touch(slot(v), false)
			}
		}
	}
	f.visitSlots(s.Args, func(v int) { touch(slot(v), false) })
	for _, v := range s.Updates {
		touch(storage(v), true)
	}
	for _, v := range s.Writes {
		if !s.IsView() {
			touch(storage(v), true)
		}
		if f.views[v] {
			touch(slot(v), true)
		}
	}
	if s.Kind == ir.MoveCall || s.Kind == ir.KernelCall && s.Sig.Result != nil {
		if v := s.Args[len(s.Args)-1]; f.m.Values[v].Changes {
			touch(slot(v), true)
		}
	}
	if s.Kind == ir.DelegateCall && f.payload(s).Opened == nil || s.Kind == ir.KernelCall && !s.Op.Pure {
		touch(len(f.touched)-1, true)
	}
}

// visitSlots visits the slots among values, and among the items of lists, that steps change.
func (f *flow) visitSlots(values []int, touch func(v int)) {
	for _, v := range values {
		if v < 0 {
			continue
		}
		if f.m.Values[v].Changes {
			touch(v)
		}
		f.visitSlots(f.m.Values[v].Items(), touch)
	}
}

// building is what the making of a graph needs, for one graph after the other.
type building struct {
	values    []regions.GraphValue // of the graph
	calls     []regions.GraphCall  // of the graph
	known     versions             // of the graph's values
	sees      []int                // by tensor that the call reads: the graph's value
	makes     []int                // the same of what it writes, outside for what no other step may read
	lists     chunks               // for arguments and items
	positions []byte               // of the graph's calls
}

// forget gives the memory of the graph that was made last to the next one.
func (b *building) forget() {
	clear(b.values)
	clear(b.calls)
	b.values, b.calls = b.values[:0], b.calls[:0]
	b.lists.forget()
}

// alreadyLowered is the reason why a delegate stays.
const alreadyLowered = "the exporter lowered it already; it stays as it is"

// staysAs are the reasons why steps that are not calls of operators stay.
var staysAs = map[ir.StepKind]string{
	ir.DelegateCall:  alreadyLowered,
	ir.MoveCall:      "it is part of the control flow",
	ir.JumpFalseCall: "it is part of the control flow",
	ir.FreeCall:      "it only frees a value",
	ir.SizesJump:     "it selects the calls for the sizes of a run",
}

// refusal returns why no graph can contain step i of the block, "" if one can.
func (f *flow) refusal(i int) string {
	s := f.step(i)
	switch {
	case f.payload(s).Opened != nil:
		return f.refusesPayload(i)
	case s.Kind != ir.KernelCall:
		return staysAs[s.Kind]
	case s.Own:
		return "its operator is a custom one"
	case !s.Op.Pure:
		return "its operator has side effects"
	case len(s.Updates) > 0:
		return "it changes an argument"
	case s.Sig.Result != nil && !s.IsView():
		return "its result is a number"
	case len(s.Writes) == 0:
		return "it has no result"
	case !fits(f.m, s):
		return "its arguments do not match its schema"
	case f.m.Changing(s.Args):
		return "the program computes an argument that is not a tensor"
	}
	return f.refusesTensors(i)
}

// refusesPayload returns why no graph can contain step i, which calls a payload.
func (f *flow) refusesPayload(i int) string {
	s := f.step(i)
	written := make(map[int]bool, len(s.Writes))
	for _, v := range s.Writes {
		if written[v] {
			return fmt.Sprintf("value %d occurs twice among its results", v)
		}
		written[v] = true
	}
	if len(s.Reads)+len(s.Writes) < len(s.Args) {
		return "an argument is not a tensor"
	}
	return f.refusesTensors(i)
}

// refusesTensors returns why no graph can contain the tensors that step i reads or writes.
func (f *flow) refusesTensors(i int) string {
	s := f.step(i)
	for k, v := range s.Reads {
		if why := f.refusesRead(v, f.sees(i, k)); why != "" {
			return why
		}
	}
	for _, v := range s.Writes {
		if why := f.refusesWrite(i, v); why != "" {
			return why
		}
	}
	return ""
}

// fits reports whether the arguments of a call have the kinds that the operator's schema requires.
func fits(m *ir.Method, s *ir.Step) bool {
	for k := range s.Sig.Args {
		a, v := &s.Sig.Args[k], &m.Values[s.Args[k]]
		if !a.Kinds.Has(v.Kind) {
			return false
		}
		for _, item := range v.Items() {
			kind := tensor.None
			if item >= 0 {
				kind = m.Values[item].Kind
			}
			if a.Items != 0 && !a.Items.Has(kind) {
				return false
			}
		}
	}
	return true
}

// refusesRead returns why a graph cannot contain v at definition def. v must be the written value,
// a view that a step makes of it, in the graph or before it, or a view of one size without a step.
func (f *flow) refusesRead(v, def int) string {
	t := f.m.Values[v].Tensor
	if t.Dynamism == tensor.DynamicUnbound || f.m.Storages[f.m.Values[v].Storage].Kind == ir.Heap {
		return fmt.Sprintf("value %d is of unbounded size", v)
	}
	if def == outside || f.Defs[def].Value == v || sameBytes(t, f.m.Values[f.Defs[def].Value].Tensor) {
		return ""
	}
	if f.views[v] {
		by := f.makesView(v)
		if by.round == f.number && (f.refused[by.index] == "" || int(by.index) > f.maker(def)) {
			return "" // in the second case no graph with v has the definition, too: the view is made between them
		}
	}
	return fmt.Sprintf("value %d is a view of value %d with other sizes", v, f.Defs[def].Value)
}

// sameBytes reports whether two tensors always have the same type and number of elements.
func sameBytes(a, b *ir.Tensor) bool {
	return a.Dynamism == tensor.Static && b.Dynamism == tensor.Static && a.DType == b.DType && a.NBytes() == b.NBytes()
}

// refusesWrite returns why v cannot be a graph's result. It must cover its whole storage, and no
// other value except views made by steps may have sizes that vary with it.
func (f *flow) refusesWrite(i, v int) string {
	s, t, storage := f.step(i), f.m.Values[v].Tensor, &f.m.Storages[f.m.Values[v].Storage]
	switch {
	case t.Dynamism == tensor.DynamicUnbound || storage.Kind == ir.Heap:
		return fmt.Sprintf("value %d is of unbounded size", v)
	case s.IsView():
		return f.refusesView(i)
	case storage.Kind != ir.Activation:
		return fmt.Sprintf("value %d is %v", v, storage.Kind)
	case f.views[v] || t.NBytes() != storage.Bytes:
		return fmt.Sprintf("value %d is a part of a tensor", v)
	}
	for _, other := range storage.Values {
		o := f.m.Values[other].Tensor
		if other != v && !f.views[other] && !sameBytes(o, t) {
			return fmt.Sprintf("value %d shares its bytes with value %d of other sizes", v, other)
		}
	}
	return ""
}

// refusesView returns why no graph can contain a view. A view of varying sizes may be made again
// where the graph runs, and must then find the same bytes.
func (f *flow) refusesView(i int) string {
	s := f.step(i)
	from, to := f.m.Values[s.Reads[0]].Tensor, f.m.Values[s.Writes[0]].Tensor
	next := f.Defs[f.Steps[f.from+i].Reads[0]].Next
	switch {
	case sameBytes(from, to):
		return ""
	case from.Dynamism == tensor.Static && to.Dynamism == tensor.Static:
		return fmt.Sprintf("value %d is only a part of value %d", s.Writes[0], s.Reads[0])
	case next != ir.None && f.Defs[next].Step < f.to:
		return fmt.Sprintf("value %d is written again after value %d became a view of it", s.Reads[0], s.Writes[0])
	}
	return ""
}

// Payload is one that its backend has opened, or the zero value.
type Payload struct {
	regions.Opened
	Backend string // ID
}
