package move

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// state is the state of an instruction: the views of its source and destination, and the copies that later runs repeat.
type state struct {
	from, to strided.View
	copier   strided.Copier
	layouts  []layout  // by dimension, see assemble
	value    [2]uint64 // one element of any type

	plans   strided.Plans
	partial bool // a run does more than the plans
}

// planned returns an operator that repeats its copies as long as the shapes and buffers of its arguments stay, which
// alone decide them.
func planned(f kernels.Func) kernels.Func {
	return func(c *kernels.Ctx, a kernels.Args) error {
		m := kernels.Keep[state](c)
		m.plans.Reset()
		m.partial = false
		if err := f(c, a); err != nil {
			return err
		}
		if !m.partial {
			c.Repeat(m)
		}
		return nil
	}
}

// Repeat implements [kernels.Repeater].
func (m *state) Repeat(c *kernels.Ctx) error {
	m.plans.Repeat(c)
	return nil
}

// A viewFunc changes a view of argument 0 as the other arguments say.
type viewFunc func(v *strided.View, a kernels.Args) error

// copyOf returns the operator that copies a view of argument 0 to its out.
func copyOf(view viewFunc) kernels.Func {
	return func(c *kernels.Ctx, a kernels.Args) error {
		m := kernels.Keep[state](c)
		m.from.Of(a.Tensor(0))
		if err := view(&m.from, a); err != nil {
			return err
		}
		return m.store(c, a, len(a)-2)
	}
}

// copy copies m.from to m.to, which has the same sizes.
func (m *state) copy(c *kernels.Ctx) {
	if !m.plans.View(c, &m.copier, &m.to, &m.from) {
		m.partial = true
	}
}

// store resizes out argument i to the sizes of m.from, a view of argument 0, and copies it there.
func (m *state) store(c *kernels.Ctx, a kernels.Args, i int) error {
	if err := m.resize(a, i, m.from.Shape()); err != nil {
		return err
	}
	m.copy(c)
	return nil
}

// resize resizes out argument i, which must have the element type of argument 0, and sets m.to to it.
func (m *state) resize(a kernels.Args, i int, sizes []int) error {
	return m.resizeTo(a, i, a.Tensor(i), sizes)
}

// resizeTo is resize for an out in a list, argument i.
func (m *state) resizeTo(a kernels.Args, i int, out *tensor.Tensor, sizes []int) error {
	if err := kernels.WantDType(i, out, a.Tensor(0).DType); err != nil {
		return err
	}
	if err := out.Resize(sizes); err != nil {
		return &kernels.OutError{Arg: i, Err: err}
	}
	m.to.Of(out)
	return nil
}

// load sets m.from to t, converted to type d in scratch memory if it has another. i is the argument's index, for the
// error.
func (m *state) load(c *kernels.Ctx, i int, t *tensor.Tensor, d tensor.DType) error {
	m.from.Of(t)
	if t.DType == d {
		return nil
	}
	if tensor.CanCast(t.DType, d) {
		n := t.Numel()
		m.partial = true
		m.from.Data, m.from.Elem = kernels.Scratch[uint8](c, n*d.Size()), d.Size()
		if tensor.CastBytes(m.from.Data, d, t.Data, t.DType, n) {
			return nil
		}
	}
	return kernels.Bad(i, t.DType.String(), "a type that casts to "+d.String())
}
