package text

import (
	"cmp"
	"slices"
	"strings"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// Footprint is the memory of a session, and what its calls read.
type Footprint struct {
	Weights int64 // bytes of constants that a call for one token computes with: of tables of embeddings, one row
	State   int64 // bytes of the caches, for all positions
	Memory  int64 // bytes of the session's state and working memory, as far as its texts have used them, but not of weights
}

// Footprint returns the session's sizes. Weights and State come from the file; what an engine makes
// of them can differ.
func (s *Session) Footprint() (Footprint, error) {
	if err := s.enter(); err != nil {
		return Footprint{}, err
	}
	defer s.leave()
	now, m := s.method.Memory(), &s.model.size
	f := Footprint{Weights: m.weights, State: m.state, Memory: now.Planned + now.Scratch + s.ownBytes()}
	if s.embed != nil {
		rows := s.embed.Memory()
		f.Memory += rows.Planned + rows.Scratch
	}
	return f, nil
}

// constantBytes returns the bytes of constants that the operators read whole, and of one row of those
// of embeddings. Operators that select a part read little.
func constantBytes(m *ir.Method) (n int64) {
	for i := range m.Steps {
		step := &m.Steps[i]
		if step.Kind != ir.KernelCall || selects(step.Op.Name()) {
			continue
		}
		for _, v := range step.Reads {
			value := &m.Values[v]
			if value.Storage < 0 || !isConstant(m.Storages[value.Storage].Kind) {
				continue
			}
			bytes := value.Tensor.NBytes()
			if sizes := value.Tensor.Sizes; strings.Contains(step.Op.Name(), "embedding") && len(sizes) > 0 {
				bytes /= cmp.Or(int64(sizes[0]), 1)
			}
			n += bytes
		}
	}
	return n
}

// selects reports whether an operator reads a part of its operand.
func selects(operator string) bool {
	names := []string{"::slice", "::select", "::index", "::gather", "::narrow"}
	return slices.ContainsFunc(names, func(s string) bool { return strings.Contains(operator, s) })
}

func isConstant(k ir.Kind) bool { return k == ir.Constant || k == ir.Folded }

// ownBytes returns the bytes of the session's own memory.
func (s *Session) ownBytes() int64 {
	const float, integer = 4, 8
	g := &s.gen.sampler
	return int64(cap(s.in.halves))*2 + int64(cap(s.tokens)+cap(s.in.ints)+cap(g.chosen)+cap(g.order)+cap(g.spare))*integer +
		int64(cap(s.kept)+cap(s.rows)+cap(s.in.rows)+cap(s.in.made)+cap(s.in.shorts)+cap(s.gen.constraint.logits)+cap(g.logits)+cap(g.counts)+cap(g.ranked)+
			cap(g.weight)+cap(g.all))*float
}

// footprint is what the memory of a session follows from.
type footprint struct {
	weights     int64 // see Footprint
	state, work int64 // bytes of the caches of all positions, and of the other values of a call of the largest size
	calls       int   // tokens of that call
}

func (m *Model) setFootprint(r *etrun.Report) {
	p := r.Plan
	m.size = footprint{weights: constantBytes(p.Method) + r.WeightBytes, state: p.StateBytes, work: p.Bytes() - p.StateBytes, calls: m.call.width}
}

// SessionBytes estimates the memory of a session with a text of so many tokens: of caches with a slot per position those of the text,
// and the values of a call of at most as many tokens as [Info] has in Chunk.
func (m *Model) SessionBytes(tokens int) int64 {
	state, work := m.size.state, m.size.work
	if n := m.info.Context; m.call.cache == CachePositions {
		state = int64(float64(state) * float64(min(max(tokens, 1), n)) / float64(n))
	}
	if !m.call.fixed && m.size.calls > 0 {
		work = int64(float64(work) * float64(min(m.info.Chunk, max(tokens, 1))) / float64(m.size.calls))
	}
	return state + work
}

// Shrink returns the memory that the session's text does not need to the system, until the next call: that of the values of a call, and
// the caches of positions that longer texts have used.
func (s *Session) Shrink() error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if s.used > len(s.tokens) {
		for _, t := range s.method.StateTensors() {
			c := s.positionsOf(t)
			for i := range c.outer {
				if err := s.method.ResetState(t, i*c.bytes+len(s.tokens)*c.step, (i+1)*c.bytes); err != nil {
					return err
				}
			}
		}
		s.used = len(s.tokens)
	}
	s.logits = nil
	return s.method.Shrink()
}

// positions are the places of a cache's positions: outer times bytes, of which each position has step.
type positions struct{ outer, bytes, step int }

// positionsOf returns the positions of a tensor of the state, with outer 0 if they are not known.
func (s *Session) positionsOf(t *tensor.Tensor) (p positions) {
	n, at := s.model.info.Context, -1
	for i, size := range t.Sizes {
		if size != n { // no place of a position
			continue
		}
		if at >= 0 {
			return p
		}
		at = i
	}
	if at < 0 || s.model.call.cache != CachePositions || !t.IsContiguous() {
		return p
	}
	p.outer, _ = tensor.Product(t.Sizes[:at])
	p.bytes = len(t.Data) / p.outer
	p.step = p.bytes / n
	return p
}

// copyState copies the caches of another session, of the positions of its text where they are known.
func (s *Session) copyState(from *Session) error {
	s.used = from.used
	return s.method.CopyStateOf(from.method, func(t *tensor.Tensor) (stride, n int) {
		p := from.positionsOf(t)
		return p.bytes, len(from.tokens) * p.step
	})
}
