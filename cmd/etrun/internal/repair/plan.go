package repair

import (
	"cmp"
	"slices"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/tree"
)

// ExecuTorch's runtime uses the file's memory plan, and a move of a tensor makes the target
// an alias of the source, see moves.go.

// item is a storage with an offset in the file's plan.
type item struct {
	values []int // values with this offset
	arena  int
	offset int64
	bytes  int64
	own    life // lifetime without moves
	use    *use // use with moves; nil if nothing moves
	state  bool
	vague  bool // used like state without being declared as state: it may be scratch of one operator
}

// life is the range of steps at which bytes are alive, inclusive.
type life struct{ first, last int }

func (a life) overlaps(b life) bool { return a.first <= b.last && b.first <= a.last }

// Plan separates values that share bytes of the file's memory plan while both are alive in
// ExecuTorch's runtime. inputs is the number of input arguments of each delegate.
func (p *Program) Plan(i int, spec *pte.Method, inputs []int) error {
	g, err := dataflow(spec, inputs)
	if err != nil {
		return err
	}
	if g.Coarse {
		return beyond("method %q: the memory plan is too large to check", spec.Name)
	}
	var uses []*use
	if f := newFlow(g); f != nil {
		if len(g.Steps) > maxCells/(len(g.Storages)+1) {
			return beyond("method %q: too many moves to check", spec.Name)
		}
		uses = f.uses()
	}
	m := p.method(i)
	items := itemsOf(spec, g, uses)
	if len(items) > maxItems {
		return beyond("method %q: %d values in the memory plan, want at most %d", spec.Name, len(items), maxItems)
	}
	for {
		a, b := conflict(items)
		if a == nil {
			return nil
		}
		moved := b
		if b.state || !a.state && a.bytes < b.bytes {
			moved = a
		}
		other := a
		if moved == a {
			other = b
		}
		from := moved.offset
		m.move(spec, items, moved)
		m.note("plan", m.name, "value %d moved from byte %d to byte %d of arena %d: it shared bytes with value %d while both are alive",
			moved.values[0], from, moved.offset, moved.arena, other.values[0])
	}
}

// maxItems limits the work of comparing all pairs.
const maxItems = 1 << 13

// dataflow returns the dataflow of a method as ExecuTorch's runtime executes it.
func dataflow(spec *pte.Method, inputs []int) (*ir.Method, error) {
	links := ir.Links{AsWritten: true, Data: make(map[int][]byte)}
	for _, o := range spec.Operators {
		op, sig, ok, err := etrun.DefaultOperators().Lookup(o.FullName())
		if err != nil || !ok {
			return nil, beyond("method %q: unknown operator %s: its effect on memory is not known", spec.Name, o.FullName())
		}
		links.Operators = append(links.Operators, ir.Operator{Op: op, Sig: sig})
	}
	for _, n := range inputs {
		links.Delegates = append(links.Delegates, ir.Delegate{Inputs: n})
	}
	return ir.Build(spec, links)
}

// itemsOf lists the storages that have an offset in the file's plan.
func itemsOf(spec *pte.Method, g *ir.Method, uses []*use) []*item {
	var items []*item
	for s := range g.Storages {
		st := &g.Storages[s]
		at := spec.Values[st.Values[0]].Tensor
		if !isPlanned(at) || st.Bytes == 0 || st.Last < st.First {
			continue
		}
		x := &item{arena: at.Arena, offset: at.Offset, bytes: st.Bytes, own: life{st.First, st.Last}, state: st.Kind == ir.State}
		x.vague = x.state && at.Storage == pte.Planned && at.Name == ""
		if uses != nil {
			x.use = uses[s]
		}
		for _, v := range st.Values {
			if t := spec.Values[v].Tensor; isPlanned(t) && t.Arena == at.Arena && t.Offset == at.Offset {
				x.values = append(x.values, v)
			}
		}
		items = append(items, x)
	}
	return items
}

func isPlanned(t *pte.Tensor) bool {
	return t.Storage == pte.Planned || t.Storage == pte.PlannedInit || t.Storage == pte.ExternalPlanned
}

// isAlongside reports whether two items are alive at the same step.
func (a *item) isAlongside(b *item) bool {
	return a != b && a.arena == b.arena && (a.own.overlaps(b.own) || a.use != nil && a.use.conflicts(b.use))
}

func (a *item) overlaps(b *item) bool {
	return a.isAlongside(b) && a.offset < b.offset+b.bytes && b.offset < a.offset+a.bytes
}

// conflict returns the first pair that shares bytes while both are alive. State at the same
// offset is the same state.
func conflict(items []*item) (a, b *item) {
	for i, a := range items {
		for _, b := range items[i+1:] {
			if a.overlaps(b) && !a.vague && !b.vague && !(a.state && b.state) {
				return a, b
			}
		}
	}
	return nil, nil
}

// move moves an item to the first offset that is free while it is alive, after the end of
// the arena if there is none.
func (m *method) move(spec *pte.Method, items []*item, x *item) {
	var near []*item
	for _, other := range items {
		if x.isAlongside(other) {
			near = append(near, other)
		}
	}
	slices.SortFunc(near, func(a, b *item) int { return cmp.Compare(a.offset, b.offset) })
	x.offset = 0
	for _, other := range near {
		if other.offset >= x.offset+pack.Align(x.bytes, pack.Alignment) {
			break
		}
		x.offset = max(x.offset, pack.Align(other.offset+other.bytes, pack.Alignment))
	}
	sizes := numbers(m.plan, "non_const_buffer_sizes")
	if end := x.offset + pack.Align(x.bytes, pack.Alignment) + m.slack(); end > int64(sizes[x.arena+1]) {
		sizes[x.arena+1] = tree.Scalar(end)
	}
	for _, v := range x.values {
		m.tensor(v).With("allocation_info", place(x.arena+1, x.offset))
	}
}
