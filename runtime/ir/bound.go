package ir

import (
	"fmt"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Bound is the number of positions of a tensor, of those that a method indexes with certain numbers.
type Bound struct {
	Most   int    // 0 for no bound
	Tensor string // its name, or the instruction that indexes it, and its sizes
}

// lower keeps the smaller bound.
func (b *Bound) lower(other Bound) {
	if other.Most > 0 && (b.Most == 0 || other.Most < b.Most) {
		*b = other
	}
}

// Bound returns the bound of the integers in values: the smallest dimension of constants and state that they index.
func (m *Method) Bound(values ...int) (b Bound) {
	t := tracer{m, make(map[int]int)}
	for _, v := range values {
		t.added[t.key(v)] = 0
	}
	for i := range m.Steps {
		s := &m.Steps[i]
		switch s.Kind {
		case MoveCall:
			t.copy(s.Args[0], s.Args[1])
		case KernelCall:
			if !s.Own {
				b.lower(t.indexed(s))
				t.follow(s)
			}
		}
	}
	return b
}

// tracer knows the values that contain the traced integers, and what was added to them.
type tracer struct {
	*Method
	added map[int]int // by key
}

// key identifies the numbers of a value: tensors of one storage share them.
func (t *tracer) key(v int) int {
	if x := &t.Values[v]; x.Kind == tensor.KindTensor && x.Storage >= 0 {
		return -1 - x.Storage
	}
	return v
}

func (t *tracer) copy(from, to int) {
	if n, ok := t.added[t.key(from)]; ok && t.isInteger(to) {
		t.added[t.key(to)] = n
	}
}

func (t *tracer) isInteger(v int) bool {
	x := &t.Values[v]
	return x.Kind != tensor.KindTensor || x.Tensor.DType == tensor.Int64 || x.Tensor.DType == tensor.Int32
}

// follow notes the results of a step that have the integers of its arguments.
func (t *tracer) follow(s *Step) {
	n, ok := t.numbers(s)
	for i, v := range s.Args {
		if i < len(s.Sig.Args) && !s.Sig.Args[i].Out {
			continue
		}
		delete(t.added, t.key(v)) // written again
		if ok && t.isInteger(v) {
			t.added[t.key(v)] = n
		}
	}
}

// numbers returns what has been added to the traced integers in the results of a step. ok is false if these have none.
func (t *tracer) numbers(s *Step) (n int, ok bool) {
	if !s.Op.Moves && s.Op.Numbers == opclass.Computed {
		return 0, false
	}
	for k := range s.Sig.Args {
		isData := !s.Op.Moves || t.Values[s.Args[k]].Kind == tensor.KindTensor // other arguments of movements are positions and sizes
		if isData && !s.Sig.Args[k].Out && !ok {
			n, ok = t.added[t.key(s.Args[k])]
		}
	}
	if s.Op.Numbers == opclass.Summed {
		n += t.constants(s)
	}
	return n, ok
}

// constants returns what a sum adds to its numbers.
func (t *tracer) constants(s *Step) (sum int) {
	for k := range s.Sig.Args[:min(2, len(s.Sig.Args))] {
		if x := &t.Values[s.Args[k]]; x.Kind == tensor.KindInt && !x.Changes && x.Int > 0 {
			sum += int(x.Int)
		}
	}
	return sum
}

// indexed returns the bound of a step.
func (t *tracer) indexed(s *Step) (b Bound) {
	for _, x := range s.Op.Indexes {
		if !t.keeps(s.Args[x.Tensor]) || x.Unless > 0 && t.Values[s.Args[x.Unless]].Kind != tensor.None {
			continue
		}
		if list := t.Values[s.Args[x.At]].Items(); list != nil {
			for dim, v := range list {
				b.lower(t.boundAt(s, x, dim, v))
			}
			continue
		}
		dim := -1 - x.Dim
		if x.Dim >= 0 {
			dim = int(t.Values[s.Args[x.Dim]].Int)
		}
		b.lower(t.boundAt(s, x, dim, s.Args[x.At]))
	}
	return b
}

// keeps reports whether a tensor has the same size in each run: it is a constant or state.
func (t *tracer) keeps(v int) bool {
	x := &t.Values[v]
	if x.Kind != tensor.KindTensor || x.Storage < 0 || x.Tensor.Dynamism != tensor.Static {
		return false
	}
	k := t.Storages[x.Storage].Kind
	return k == Constant || k == Folded || k == State
}

// boundAt returns the bound of a dimension of a tensor that a value indexes.
func (t *tracer) boundAt(s *Step, at kernels.Index, dim, v int) (b Bound) {
	if v < 0 {
		return b
	}
	added, ok := t.added[t.key(v)]
	x := t.Values[s.Args[at.Tensor]].Tensor
	if dim < 0 {
		dim += len(x.Sizes)
	}
	if !ok || dim < 0 || dim >= len(x.Sizes) {
		return b
	}
	name := fmt.Sprintf("%.100q", x.Name)
	if x.Name == "" {
		name = fmt.Sprintf("of instruction %d (%s)", s.Origin.Index, s.Op.Name())
	}
	return Bound{max(x.Sizes[dim]-added, 1), fmt.Sprintf("tensor %s of sizes %s", name, tensor.FormatSizes(x.Sizes))}
}
