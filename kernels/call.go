package kernels

import "github.com/etrun-go/etrun/kernels/tensor"

// Call is one instruction's call of an operator, made at every execute. It belongs
// to one method instance.
type Call struct {
	op    Func
	args  Args
	state any // the operator's own place, see Keep

	// Tensors among the arguments whose slots never change; what the operator prepared
	// for them holds while none of them was resized or bound.
	fixed   bool
	tensors []*tensor.Tensor
	changes uint64
	again   Repeater
}

// Repeater makes a call once more that an operator prepared, see [Ctx.Repeat].
type Repeater interface {
	Repeat(c *Ctx) error
}

// NewCall prepares a call. fixed says that nothing but tensors changes among the
// arguments: no slot gets another tensor, number or list.
func NewCall(op Func, args Args, fixed bool) Call {
	k := Call{op: op, args: args, fixed: fixed}
	if fixed {
		for _, v := range args {
			k.observe(v)
		}
	}
	return k
}

func (k *Call) observe(v *tensor.Value) {
	if v.Kind == tensor.KindTensor {
		k.tensors = append(k.tensors, v.Tensor)
	}
	for _, item := range v.Items {
		k.observe(item)
	}
}

// Args are the call's argument slots.
func (k *Call) Args() Args { return k.args }

// Do makes the call. Where the operator prepared for more calls with the same
// shapes, and they still are the same, it only computes.
func (k *Call) Do(c *Ctx) error {
	c.State = &k.state
	if k.again != nil && k.sum() == k.changes {
		err := k.again.Repeat(c)
		c.Release()
		return err
	}
	c.again = nil
	err := k.op(c, k.args)
	k.again = nil
	if err == nil && k.fixed && c.again != nil {
		k.again, k.changes = c.again, k.sum()
	}
	c.Release()
	return err
}

// sum grows whenever a tensor changes: each one's count only ever grows.
func (k *Call) sum() (n uint64) {
	for _, t := range k.tensors {
		n += t.Changes()
	}
	return n
}

// Repeat says that r makes the running call once more, for as long as its arguments
// stay as they are but for the elements of the tensors. An operator calls it at most
// once, when it has succeeded. r is best what the operator keeps.
func (c *Ctx) Repeat(r Repeater) { c.again = r }
