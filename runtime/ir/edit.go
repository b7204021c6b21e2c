package ir

import (
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Edit collects changes of a method; [Edit.Apply] returns the changed method. Values and storages
// keep their indexes, and new ones follow. Steps are named by their indexes in the original method,
// whatever was dropped or inserted.
type Edit struct {
	from    *Method
	to      *Method
	owned   bool // the table of values belongs to the edit
	drop    []bool
	changed map[int]*Step       // steps with other arguments
	joined  map[int]bool        // storages whose list of values belongs to the edit
	inserts map[int][]insertion // by the step that they precede
	labels  int
}

// insertion is a new step; without one, a step of the original method, or a label if negative.
type insertion struct {
	step *Step
	at   int
}

// Edit begins to change a method, which itself stays unchanged.
func (m *Method) Edit() *Edit {
	to := *m
	to.Storages, to.Delegates = slices.Clone(m.Storages), slices.Clone(m.Delegates)
	return &Edit{from: m, to: &to, drop: make([]bool, len(m.Steps)), changed: make(map[int]*Step),
		joined: make(map[int]bool), inserts: make(map[int][]insertion)}
}

// values returns the table of values, which the caller may change.
func (e *Edit) values() []Value {
	if !e.owned {
		e.to.Values, e.owned = slices.Clone(e.to.Values), true
	}
	return e.to.Values
}

// Drop removes step i. A jump to it leads to the next step that remains.
func (e *Edit) Drop(i int) { e.drop[i] = true }

// Insert inserts s before step i, after earlier insertions there; i is the number of steps for the
// end. A jump to step i executes s. The effects of s are ignored: they are computed from its other
// fields.
func (e *Edit) Insert(i int, s Step) { e.inserts[i] = append(e.inserts[i], insertion{step: &s}) }

// Repeat inserts step of the original method before step i, like Insert.
func (e *Edit) Repeat(i, step int) { e.inserts[i] = append(e.inserts[i], insertion{at: step}) }

// Reserve allocates memory for n insertions before step i.
func (e *Edit) Reserve(i, n int) { e.inserts[i] = slices.Grow(e.inserts[i], n) }

// Label returns a target for steps to be inserted. Its position is set by Place.
func (e *Edit) Label() (target int) {
	e.labels++
	return -e.labels
}

// Place sets a label to the next insertion before step i, or to step i.
func (e *Edit) Place(i, label int) { e.inserts[i] = append(e.inserts[i], insertion{at: label}) }

// SetArg sets argument k of step i to v.
func (e *Edit) SetArg(i, k, v int) {
	if e.changed[i] == nil {
		s := e.from.Steps[i]
		s.Args = slices.Clone(s.Args)
		e.changed[i] = &s
	}
	e.changed[i].Args[k] = v
}

// AddValue adds a value that is no tensor.
func (e *Edit) AddValue(v Value) int {
	v.Storage = -1
	e.to.Values = append(e.values(), v)
	return len(e.to.Values) - 1
}

// AddTensor adds a tensor with its own storage, an activation.
func (e *Edit) AddTensor(t Tensor) int { return e.addTensor(t, Storage{}) }

// AddConstant adds a tensor of the given bytes, which must not change. They must be aligned to
// their element size.
func (e *Edit) AddConstant(t Tensor, data []byte) int {
	t.Const, t.Dynamism = true, tensor.Static
	return e.addTensor(t, Storage{Kind: Folded, Data: data})
}

func (e *Edit) addTensor(t Tensor, s Storage) int {
	v := len(e.to.Values)
	s.Values, s.Bytes = []int{v}, t.NBytes()
	e.to.Values = append(e.values(), Value{Kind: tensor.KindTensor, Tensor: &t, Storage: len(e.to.Storages)})
	e.to.Storages = append(e.to.Storages, s)
	return v
}

// AddDelegate adds a delegate; messages use name.
func (e *Edit) AddDelegate(name string) int {
	e.to.Delegates = append(e.to.Delegates, name)
	return len(e.to.Delegates) - 1
}

// MakeConstant turns a storage into a constant with bytes that were computed at load, as many as it
// has. The steps that write it must be dropped, except those that make views.
func (e *Edit) MakeConstant(storage int, data []byte) {
	s := &e.to.Storages[storage]
	s.Kind, s.Data = Folded, data
	values := e.values()
	for _, v := range s.Values {
		t := *values[v].Tensor
		t.Const, t.Dynamism = true, tensor.Static
		values[v].Tensor = &t
	}
}

// Join makes the values of storage b views of storage a, and leaves b without values. Neither is a
// constant. The steps that write b must be dropped, and no step may write a while values of b are
// still to be read.
func (e *Edit) Join(a, b int) {
	from, to, values := &e.to.Storages[b], &e.to.Storages[a], e.values()
	for _, v := range from.Values {
		values[v].Storage = a
	}
	if !e.joined[a] {
		to.Values = slices.Clip(to.Values) // those of the original method stay unchanged
		e.joined[a] = true
	}
	to.Values = append(to.Values, from.Values...)
	to.Bytes, to.Output = max(to.Bytes, from.Bytes), to.Output || from.Output
	*from = Storage{}
}

// Apply applies the changes: it renumbers steps, adjusts jumps, and recomputes effects and
// lifetimes. It refuses changes after which a value is read that was never written, and methods
// that would be refused in a file.
func (e *Edit) Apply() (*Method, error) {
	m := e.to
	if err := e.renumber(); err != nil {
		return nil, err
	}
	for v, changes := range m.changing() {
		if m.Values[v].Changes != changes {
			e.values()[v].Changes = changes
		}
	}
	m.setLifetimes()
	m.freeUnused()
	for i := range m.Storages {
		if m.Storages[i].Kind == State && (i >= len(e.from.Storages) || e.from.Storages[i].Kind == Activation) {
			return nil, fmt.Errorf("edit of method %q: value %d is read before it is written: %w", m.Name, m.Storages[i].Values[0], pte.ErrFormat)
		}
	}
	return m, m.check()
}

// freeUnused removes the bytes of activations that no step accesses, and restores those of
// activations that a step accesses.
func (m *Method) freeUnused() {
	for i := range m.Storages {
		s := &m.Storages[i]
		switch unused := s.Kind == Activation && s.Last < s.First; {
		case unused:
			s.Bytes = 0
		case s.Bytes == 0:
			for _, v := range s.Values {
				s.Bytes = max(s.Bytes, m.Values[v].Tensor.NBytes())
			}
		}
	}
}

// renumber builds the list of steps.
func (e *Edit) renumber() error {
	n := len(e.from.Steps)
	place := make([]int, n+1) // old index to new: the first step executed there
	labels := make([]int, e.labels+1)
	steps := make([]Step, 0, e.count())
	for i := range n + 1 {
		place[i] = len(steps)
		for _, in := range e.inserts[i] {
			if in.step == nil && in.at < 0 {
				labels[-in.at] = len(steps)
			} else if err := e.step(&steps, in); err != nil {
				return err
			}
		}
		if i < n && !e.drop[i] {
			if err := e.step(&steps, insertion{at: i}); err != nil {
				return err
			}
		}
	}
	for i := range steps {
		switch s := &steps[i]; {
		case !s.IsJump():
		case s.Target < 0:
			s.Target = labels[-s.Target]
		default:
			s.Target = place[s.Target]
		}
	}
	e.to.Steps = steps
	return nil
}

// count returns the number of steps, and of labels.
func (e *Edit) count() (n int) {
	for _, list := range e.inserts {
		n += len(list)
	}
	for _, dropped := range e.drop {
		if !dropped {
			n++
		}
	}
	return n
}

// step appends a step with its effects.
func (e *Edit) step(steps *[]Step, in insertion) error {
	if in.step == nil {
		in.step = e.changed[in.at]
	}
	if in.step == nil {
		*steps = append(*steps, e.from.Steps[in.at])
		return nil
	}
	*steps = append(*steps, *in.step)
	return e.link(&(*steps)[len(*steps)-1])
}

// link computes the effects of a new or changed step. A view must already share the bytes of its
// operand: storages are never joined or split.
func (e *Edit) link(s *Step) error {
	m := e.to
	if err := m.setEffects(s); err != nil {
		return m.stepError(s, err)
	}
	if s.IsView() && m.Values[s.Reads[0]].Storage != m.Values[s.Writes[0]].Storage {
		err := fmt.Errorf("value %d would be a view of value %d, whose bytes it does not have: %w", s.Writes[0], s.Reads[0], pte.ErrFormat)
		return m.stepError(s, err)
	}
	return nil
}
