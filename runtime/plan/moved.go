package plan

import (
	"github.com/etrun-go/etrun/runtime/ir"
)

// keepMoved makes the sources of moves live as long as the targets, and in loops from as early on: the next round may read the target while
// it writes the source.
func (p *Memory) keepMoved() {
	moves := p.moves()
	for changed := true; changed; {
		changed = false
		for _, m := range moves {
			it, first, last := &p.Items[m.from], p.Items[m.from].First, p.Items[m.from].Last
			begin, end := p.life(m.to)
			if last = max(last, end); m.loops {
				first = min(first, begin)
			}
			if first != it.First || last != it.Last {
				it.First, it.Last, changed = first, last, true
			}
		}
	}
}

// move is a move of a tensor between two storages.
type move struct {
	from, to int
	loops    bool // a later step may jump back before it
}

// moves lists the moves from storages in the arena.
func (p *Memory) moves() (list []move) {
	back := len(p.Method.Steps) // the first step that a later one may jump to
	for i := len(p.Method.Steps) - 1; i >= 0; i-- {
		switch s := &p.Method.Steps[i]; s.Kind {
		case ir.JumpFalseCall:
			back = min(back, s.Target)
		case ir.MoveCall:
			from, to := &p.Method.Values[s.Args[0]], &p.Method.Values[s.Args[1]]
			if from.Tensor != nil && to.Tensor != nil && from.Storage != to.Storage && p.Items[from.Storage].Bytes > 0 {
				list = append(list, move{from.Storage, to.Storage, back <= i})
			}
		}
	}
	return list
}

// life returns the first and the last moment of a storage, which may have its place outside the arena.
func (p *Memory) life(storage int) (first, last int) {
	if it := &p.Items[storage]; it.Bytes > 0 {
		return it.First, it.Last
	}
	s := &p.Method.Storages[storage]
	if s.Kind == ir.State || s.Kind == ir.Input {
		return p.begins(-1), p.ends(len(p.Method.Steps))
	}
	return p.begins(s.First), p.ends(s.Last)
}
