package repair

import (
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// A move of a tensor makes the target an alias of the source, so the source's bytes are alive
// as long as the target is read. The moves that reach a step are found along the jumps:
// the branches of a condition, of which only one is executed, may share bytes.

// flow is the control flow of a method with moves of tensors.
type flow struct {
	*ir.Method
	next  [][]int // possible successors, by step
	moves []move
}

// move is a move of a tensor, by storage.
type move struct{ step, from, to, target int }

// maxCells limits the tables of storages by steps.
const maxCells = 1 << 26

// newFlow returns nil if the method moves no tensor.
func newFlow(g *ir.Method) *flow {
	f := &flow{Method: g, next: make([][]int, len(g.Steps))}
	for i := range g.Steps {
		f.next[i] = []int{i + 1}
		switch s := &g.Steps[i]; s.Kind {
		case ir.MoveCall:
			from, to := &g.Values[s.Args[0]], &g.Values[s.Args[1]]
			if from.Tensor != nil && to.Tensor != nil {
				f.moves = append(f.moves, move{i, from.Storage, to.Storage, s.Args[1]})
			}
		case ir.JumpFalseCall:
			c := &g.Values[s.Args[0]]
			switch constant := c.Kind == tensor.KindBool && !c.Changes; {
			case constant && !c.Bool:
				f.next[i] = []int{s.Target}
			case !constant:
				f.next[i] = append(f.next[i], s.Target)
			}
		}
	}
	if len(f.moves) == 0 {
		return nil
	}
	return f
}

// use is the use of a storage's bytes, by step.
type use struct {
	written []bool // written by the step
	needed  []bool // read by the step, or by a later one
}

// conflicts reports whether one is written while the other is needed or written.
func (a *use) conflicts(b *use) bool {
	for p := range a.written {
		if a.written[p] && (b.needed[p] || b.written[p]) || b.written[p] && a.needed[p] {
			return true
		}
	}
	return false
}

// uses returns the use of each storage.
func (f *flow) uses() []*use {
	live := make([][]bool, len(f.Storages))
	for s := range live {
		live[s] = f.live(s)
	}
	reach := make([][]bool, len(f.moves))
	for k := range f.moves {
		reach[k] = f.reach(k)
	}
	for changed := true; changed; {
		changed = false
		for k, m := range f.moves {
			for p := range reach[k] {
				if reach[k][p] && live[m.to][p] && !live[m.from][p] {
					live[m.from][p], changed = true, true
				}
			}
		}
	}
	uses := make([]*use, len(f.Storages))
	for s := range live {
		uses[s] = f.use(s, live[s])
	}
	return uses
}

// reads and writes report the effect of a step on a storage.
func (f *flow) reads(p, s int) bool {
	return f.touches(f.Steps[p].Reads, s) || f.touches(f.Steps[p].Updates, s)
}

func (f *flow) writes(p, s int) bool { return f.touches(f.Steps[p].Writes, s) }

func (f *flow) touches(values []int, s int) bool {
	return slices.ContainsFunc(values, func(v int) bool { return f.Values[v].Storage == s })
}

// live reports, by step, whether the bytes are read there or later, before they are written.
func (f *flow) live(s int) []bool {
	n := len(f.Steps)
	live := make([]bool, n+1)
	live[n] = f.Storages[s].Output
	for changed := true; changed; {
		changed = false
		for p := n - 1; p >= 0; p-- {
			now := f.Storages[s].Kind == ir.State || f.reads(p, s) || !f.writes(p, s) && f.after(live, p)
			changed = changed || now != live[p]
			live[p] = now
		}
	}
	return live
}

func (f *flow) after(live []bool, p int) bool {
	return slices.ContainsFunc(f.next[p], func(q int) bool { return live[q] })
}

// reach reports, by step, whether the target may still be an alias made by move k.
func (f *flow) reach(k int) []bool {
	reach := make([]bool, len(f.Steps)+1)
	for changed := true; changed; {
		changed = false
		for p := range f.Steps {
			on := p == f.moves[k].step
			if !on && (!reach[p] || slices.ContainsFunc(f.moves, func(m move) bool { return m.step == p && m.target == f.moves[k].target })) {
				continue
			}
			for _, q := range f.next[p] {
				changed = changed || !reach[q]
				reach[q] = true
			}
		}
	}
	return reach
}

// use returns the use of a storage whose bytes are alive at some steps. A move writes none.
func (f *flow) use(s int, live []bool) *use {
	u := &use{written: make([]bool, len(f.Steps)), needed: live}
	for p := range f.Steps {
		u.written[p] = f.Steps[p].Kind != ir.MoveCall && (f.writes(p, s) || f.touches(f.Steps[p].Updates, s))
	}
	return u
}
