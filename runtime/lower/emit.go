package lower

import (
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// emit rewrites the steps of the block.
func (l *lowering) emit(sequence []int, taken map[int]*candidate) {
	for i := l.from; i < l.to; i++ {
		l.edit.Drop(i)
	}
	l.edit.Reserve(l.from, len(sequence))
	for _, i := range sequence {
		if c := taken[i]; c != nil {
			l.emitRegion(c)
			continue
		}
		l.repeat(i)
	}
}

func (l *lowering) insert(s ir.Step) { l.edit.Insert(l.from, s) }

// repeat emits step i of the block.
func (l *lowering) repeat(i int) { l.edit.Repeat(l.from, l.from+i) }

// emitRegion emits the call of a region's delegate. With varying sizes the region's own calls
// follow it, for sizes that the delegate does not run.
func (l *lowering) emitRegion(c *candidate) {
	call, moves := l.delegateCall(c)
	if l.InFile || !c.graph.varies() {
		l.emitCall(c, call, moves)
		return
	}
	asIs, behind := l.edit.Label(), l.edit.Label()
	jump := call
	jump.Kind, jump.Target, jump.Least = ir.SizesJump, asIs, c.graph.least(c.share)
	l.insert(jump)
	l.emitCall(c, call, moves)
	l.insert(ir.Step{Kind: ir.JumpFalseCall, Args: []int{l.no()}, Target: behind, Origin: call.Origin})
	l.edit.Place(l.from, asIs)
	for _, i := range c.steps {
		l.repeat(i)
	}
	l.edit.Place(l.from, behind)
}

// no returns a value that is false.
func (l *lowering) no() int {
	if l.never == 0 {
		l.never = l.edit.AddValue(ir.Value{Kind: tensor.KindBool}) + 1
	}
	return l.never - 1
}

// delegateCall returns the call of a region's delegate. A result that shares its buffer with an
// input gets a buffer of its own, and moves copy it back.
func (l *lowering) delegateCall(c *candidate) (call ir.Step, moves []ir.Step) {
	g := c.graph
	call = ir.Step{Kind: ir.DelegateCall, Inputs: len(g.inputs), Args: slices.Clone(g.inputs),
		Origin: l.step(c.steps[len(c.steps)-1]).Origin, Delegate: g.Index}
	for _, n := range g.outputs {
		v := l.Defs[n].Value
		to := v
		if slices.ContainsFunc(g.inputs, func(in int) bool { return l.m.Values[in].Storage == l.m.Values[v].Storage }) {
			t := *l.m.Values[v].Tensor
			t.Name = ""
			to = l.edit.AddTensor(t)
			moves = append(moves, ir.Step{Kind: ir.MoveCall, Args: []int{to, v}, Origin: call.Origin})
		}
		call.Args = append(call.Args, to)
	}
	return call, moves
}

// overlaps reports whether a result shares its buffer with an argument or another result of the region.
func (l *lowering) overlaps(g *graph) bool {
	used := make(map[int]bool)
	for _, v := range g.inputs {
		used[l.m.Values[v].Storage] = true
	}
	for _, n := range g.outputs {
		s := l.m.Values[l.Defs[n].Value].Storage
		if used[s] {
			return true
		}
		used[s] = true
	}
	return false
}

// emitCall emits a call, the moves, and the views that get their sizes or bytes from a step only.
func (l *lowering) emitCall(c *candidate, call ir.Step, moves []ir.Step) {
	l.insert(call)
	for _, s := range moves {
		l.insert(s)
	}
	kept := l.keptViews(c)
	for _, i := range c.steps {
		if l.step(i).IsView() && (l.InFile && kept[l.step(i).Writes[0]] || !l.InFile && l.remains(c.graph, i)) {
			l.repeat(i)
		}
	}
}

// keptViews returns the views of a region that steps of a file must make: those that are used outside, and the views that they are of.
func (l *lowering) keptViews(c *candidate) map[int]bool {
	if !l.InFile {
		return nil
	}
	kept := make(map[int]bool)
	for _, i := range slices.Backward(c.steps) {
		if s := l.step(i); s.IsView() && (kept[s.Writes[0]] || l.viewed(c.graph, s.Writes[0])) {
			kept[s.Writes[0]], kept[s.Reads[0]] = true, true
		}
	}
	return kept
}

// remains reports whether a view is also needed outside its region: its sizes vary or its bytes are
// not those of its storage from the start. No step outside reads a view of the region's own values.
func (l *lowering) remains(g *graph, i int) bool {
	from, to, def := l.step(i).Reads[0], l.step(i).Writes[0], l.sees(i, 0)
	if l.m.Values[to].Tensor.Const || g.has(def) && !g.escapes(def) {
		return false
	}
	switch l.m.Storages[l.m.Values[from].Storage].Kind {
	case ir.Activation, ir.Input, ir.State:
		return l.m.Values[to].Tensor.Dynamism != tensor.Static || l.m.Values[from].Tensor.Dynamism != tensor.Static
	}
	return true
}

// viewed reports whether steps outside a graph, or the caller, use value v: in a file a step must make it a view.
func (l *lowering) viewed(g *graph, v int) bool {
	if l.m.Values[v].Tensor.Const {
		return false
	}
	if l.users == nil {
		l.countUsers()
	}
	return slices.ContainsFunc(l.users[v], func(step int) bool { return !g.contains(step) })
}

// countUsers lists the steps that use each value. The caller uses outputs: as a step behind the last one.
func (l *lowering) countUsers() {
	l.users = make(map[int][]int)
	var use func(values []int, step int)
	use = func(values []int, step int) {
		for _, v := range values {
			if v >= 0 {
				l.users[v] = append(l.users[v], step)
				use(l.m.Values[v].Items(), step)
			}
		}
	}
	for i := range l.m.Steps {
		use(l.m.Steps[i].Args, i)
	}
	use(l.m.Outputs, len(l.m.Steps))
}
