package text

import (
	"cmp"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/runtime/ir"
)

// Footprint is the memory of a session, and what its calls read.
type Footprint struct {
	Weights int64 // bytes of constants that a call for one token computes with: of tables of embeddings, one row
	State   int64 // bytes of the caches, for all positions
	Memory  int64 // bytes that the session holds: state and working memory, but not weights
}

// Footprint returns the session's sizes. Weights and State come from the file; what an engine makes
// of them can differ. Memory has the upper estimates of the delegates' working memory.
func (s *Session) Footprint() (Footprint, error) {
	if err := s.enter(); err != nil {
		return Footprint{}, err
	}
	defer s.leave()
	p := s.method.Plan()
	f := Footprint{Weights: constantBytes(p.Method), State: p.StateBytes, Memory: p.Bytes() + s.held()}
	for _, d := range s.method.Delegates() {
		f.Weights += d.WeightBytes
		f.Memory += d.Scratch
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

// held returns the bytes of the session's own memory.
func (s *Session) held() int64 {
	const float, integer = 4, 8
	g := &s.gen.sampler
	return int64(cap(s.tokens)+cap(s.in.ints)+cap(g.kept)+cap(g.weight)+cap(g.all)+cap(g.order)+cap(g.spare))*integer +
		int64(cap(s.kept)+cap(s.rows)+cap(s.in.shorts)+cap(s.gen.former.logits)+cap(g.logits)+cap(g.counts)+cap(g.ranked))*float
}
