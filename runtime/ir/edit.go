package ir

import (
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Edit gathers changes of a method, which [Edit.Apply] makes into another one. Values
// and storages keep their indexes, and new ones follow the old. Steps are named by
// their indexes in the method that is edited, whatever was dropped or inserted.
type Edit struct {
	from    *Method
	to      *Method
	drop    []bool
	changed []bool
	joined  map[int]bool   // storages whose list of values is the edit's own
	inserts map[int][]Step // by the step that they come before; steps without a kind are labels
	labels  int
}

// Edit begins to change a method, which itself stays as it is.
func (m *Method) Edit() *Edit {
	to := *m
	to.Values, to.Storages = slices.Clone(m.Values), slices.Clone(m.Storages)
	to.Steps, to.Delegates = slices.Clone(m.Steps), slices.Clone(m.Delegates)
	return &Edit{from: m, to: &to, drop: make([]bool, len(m.Steps)), changed: make([]bool, len(m.Steps)),
		joined: make(map[int]bool), inserts: make(map[int][]Step)}
}

// Drop leaves out step i. A jump to it goes to the next step that stays.
func (e *Edit) Drop(i int) { e.drop[i] = true }

// Insert puts s before step i, after what was inserted there earlier; i is the number
// of steps for the end. A jump to step i meets s. The effects of s are not looked at:
// they follow from the rest.
func (e *Edit) Insert(i int, s Step) { e.inserts[i] = append(e.inserts[i], s) }

// Label is a target for steps to be inserted: where Place is called for it.
func (e *Edit) Label() (target int) {
	e.labels++
	return -e.labels
}

// Place lets a label lead to what is inserted before step i next, or to step i.
func (e *Edit) Place(i, label int) { e.inserts[i] = append(e.inserts[i], Step{Target: label}) }

// SetArg makes v argument k of step i.
func (e *Edit) SetArg(i, k, v int) {
	s := &e.to.Steps[i]
	s.Args = slices.Clone(s.Args)
	s.Args[k] = v
	e.changed[i] = true
}

// AddValue adds a value that is no tensor.
func (e *Edit) AddValue(v Value) int {
	v.Storage = -1
	e.to.Values = append(e.to.Values, v)
	return len(e.to.Values) - 1
}

// AddTensor adds a tensor with a storage of its own, an activation.
func (e *Edit) AddTensor(t Tensor) int { return e.addTensor(t, Storage{}) }

// AddConstant adds a tensor of the given bytes, which must not change. They start at a
// multiple of their element's size.
func (e *Edit) AddConstant(t Tensor, data []byte) int {
	t.Const, t.Dynamism = true, tensor.Static
	return e.addTensor(t, Storage{Kind: Folded, Data: data})
}

func (e *Edit) addTensor(t Tensor, s Storage) int {
	v := len(e.to.Values)
	s.Values, s.Bytes = []int{v}, t.NBytes()
	e.to.Values = append(e.to.Values, Value{Kind: tensor.KindTensor, Tensor: &t, Storage: len(e.to.Storages)})
	e.to.Storages = append(e.to.Storages, s)
	return v
}

// AddDelegate adds a delegate; name is for messages.
func (e *Edit) AddDelegate(name string) int {
	e.to.Delegates = append(e.to.Delegates, name)
	return len(e.to.Delegates) - 1
}

// MakeConstant gives a storage bytes that were computed at load, as many as it has. The
// steps that write it must be dropped, but for those that make views.
func (e *Edit) MakeConstant(storage int, data []byte) {
	s := &e.to.Storages[storage]
	s.Kind, s.Data = Folded, data
	for _, v := range s.Values {
		t := *e.to.Values[v].Tensor
		t.Const, t.Dynamism = true, tensor.Static
		e.to.Values[v].Tensor = &t
	}
}

// Join gives the values of storage b the bytes of storage a, of which they become views,
// and leaves b without any. Neither is a constant. The steps that write b must be dropped,
// and nothing may write a while values of b are still to be read.
func (e *Edit) Join(a, b int) {
	from, to := &e.to.Storages[b], &e.to.Storages[a]
	for _, v := range from.Values {
		e.to.Values[v].Storage = a
	}
	if !e.joined[a] {
		to.Values = slices.Clip(to.Values) // those of the method that is edited stay as they are
		e.joined[a] = true
	}
	to.Values = append(to.Values, from.Values...)
	to.Bytes, to.Output = max(to.Bytes, from.Bytes), to.Output || from.Output
	*from = Storage{}
}

// Apply makes the changes: steps are numbered anew, jumps lead where they led, and
// effects and lifetimes are found again. It refuses changes after which a value is
// read that was never written, or that no file may ask for either.
func (e *Edit) Apply() (*Method, error) {
	m := e.to
	if err := e.renumber(); err != nil {
		return nil, err
	}
	m.setChanges()
	m.setLifetimes()
	m.freeUnused()
	for i := range m.Storages {
		if m.Storages[i].Kind == State && (i >= len(e.from.Storages) || e.from.Storages[i].Kind == Activation) {
			return nil, fmt.Errorf("edit of method %q: value %d is read before it is written: %w", m.Name, m.Storages[i].Values[0], pte.ErrFormat)
		}
	}
	return m, m.check()
}

// freeUnused takes the bytes of activations that no step touches any more, and gives them
// back to those that some step does.
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

// renumber makes the list of steps.
func (e *Edit) renumber() error {
	old := e.to.Steps
	place := make([]int, len(old)+1) // old index to new: the first step that control meets
	labels := make([]int, e.labels+1)
	steps := make([]Step, 0, len(old))
	for i := range len(old) + 1 {
		place[i] = len(steps)
		for _, s := range e.inserts[i] {
			if s.Kind == 0 {
				labels[-s.Target] = len(steps)
				continue
			}
			if err := e.link(&s); err != nil {
				return err
			}
			steps = append(steps, s)
		}
		if i == len(old) || e.drop[i] {
			continue
		}
		s := old[i]
		if e.changed[i] {
			if err := e.link(&s); err != nil {
				return err
			}
		}
		steps = append(steps, s)
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

// link finds the effects of a new or changed step. A view must be one of the bytes
// that it shares already: storages are never joined or split.
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
