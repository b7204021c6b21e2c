package repair

import (
	"cmp"
	"slices"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/tree"
)

// ExecuTorch's runtime follows the file's memory plan, and a move of a tensor makes the
// target the source, see moves.go.

// item is a storage that has a place in the file's plan.
type item struct {
	values []int // those at the place
	arena  int
	offset int64
	bytes  int64
	own    life // as long as the storage is used
	use    *use // with what moves make of it; nil where nothing moves
	state  bool
	vague  bool // used like state, but not said to be: it may be scratch memory of one operator
}

// life is the steps at which bytes matter, inclusive.
type life struct{ first, last int }

func (a life) overlaps(b life) bool { return a.first <= b.last && b.first <= a.last }

// Plan puts values apart that share bytes of the file's memory plan while both are alive
// in ExecuTorch's runtime. data is the program as it is, inputs how many arguments of each
// delegate are inputs.
func (p *Program) Plan(i int, spec *pte.Method, inputs []int) error {
	g, err := dataflow(spec, inputs)
	if err != nil {
		return err
	}
	if g.Coarse {
		return beyond("method %q: the memory plan is too much work to check", spec.Name)
	}
	var uses []*use
	if f := newFlow(g); f != nil {
		if len(g.Steps) > mostCells/(len(g.Storages)+1) {
			return beyond("method %q: the moves are too much work to follow", spec.Name)
		}
		uses = f.uses()
	}
	m := p.method(i)
	items := itemsOf(spec, g, uses)
	if len(items) > maxItems {
		return beyond("method %q: %d values have places in the memory plan, at most %d are checked", spec.Name, len(items), maxItems)
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

// maxItems bounds the work of comparing all pairs.
const maxItems = 1 << 13

// dataflow is that of a method as ExecuTorch's runtime executes it.
func dataflow(spec *pte.Method, inputs []int) (*ir.Method, error) {
	links := ir.Links{AsWritten: true, Data: make(map[int][]byte)}
	for _, o := range spec.Operators {
		op, sig, ok, err := etrun.DefaultOperators().Lookup(o.FullName())
		if err != nil || !ok {
			return nil, beyond("method %q: operator %s is not known, and what it does to memory", spec.Name, o.FullName())
		}
		links.Operators = append(links.Operators, ir.Operator{Op: op, Sig: sig})
	}
	for _, n := range inputs {
		links.Delegates = append(links.Delegates, ir.Delegate{Inputs: n})
	}
	return ir.Build(spec, links)
}

// itemsOf lists the storages that the file's plan has a place for.
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

// isAlongside reports two items that are alive at one step.
func (a *item) isAlongside(b *item) bool {
	return a != b && a.arena == b.arena && (a.own.overlaps(b.own) || a.use != nil && a.use.conflicts(b.use))
}

func (a *item) overlaps(b *item) bool {
	return a.isAlongside(b) && a.offset < b.offset+b.bytes && b.offset < a.offset+a.bytes
}

// conflict is the first pair that shares bytes while both are alive. State that shares a
// place is the same state.
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

// move gives an item the first place that no other one has while it is alive, behind the
// arena where there is none.
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
		if other.offset >= x.offset+align(x.bytes) {
			break
		}
		x.offset = max(x.offset, align(other.offset+other.bytes))
	}
	sizes := numbers(m.plan, "non_const_buffer_sizes")
	if end := x.offset + align(x.bytes) + m.slack(); end > int64(sizes[x.arena+1]) {
		sizes[x.arena+1] = tree.Scalar(end)
	}
	for _, v := range x.values {
		m.tensor(v).With("allocation_info", place(x.arena+1, x.offset))
	}
}
