package kernels

import "github.com/etrun-go/etrun/kernels/tensor"

// Call is an instruction's call of an operator, repeated in every run. It belongs to one method
// instance.
type Call struct {
	op    Func
	args  Args
	state any // the operator's state, see Keep

	unread uint64 // outs that nothing reads, see SetUnread

	// Tensor arguments, if the slots never change. What the operator prepared for them remains
	// valid while none of them is resized or bound.
	fixed   bool
	tensors []*tensor.Tensor
	changes uint64
	replay  Repeater
}

// Repeater repeats a call that an operator prepared, see [Ctx.Repeat].
type Repeater interface {
	Repeat(c *Ctx) error
}

// NewCall prepares a call. fixed means that only the contents and sizes of tensors change between
// calls: no slot is assigned another tensor, number or list.
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

// Args returns the call's argument slots.
func (k *Call) Args() Args { return k.args }

// SetUnread says which outs have elements that nothing reads: bit i stands for argument i.
func (k *Call) SetUnread(outs uint64) { k.unread = outs }

// Reset drops what the operator has kept: after a panic it may be incomplete.
func (k *Call) Reset() { k.state, k.replay = nil, nil }

// Do executes the call. If the operator prepared a repetition and the argument shapes and buffers
// are unchanged, only that is executed.
func (k *Call) Do(c *Ctx) error {
	c.State, c.unread = &k.state, k.unread
	if k.replay != nil && k.sum() == k.changes {
		err := k.replay.Repeat(c)
		c.Release()
		return err
	}
	c.replay = nil
	err := k.op(c, k.args)
	k.replay = nil
	if err == nil && k.fixed && c.replay != nil {
		k.replay, k.changes = c.replay, k.sum()
	}
	c.Release()
	return err
}

// sum increases whenever a tensor changes, because each tensor's counter only increases.
func (k *Call) sum() (n uint64) {
	for _, t := range k.tensors {
		n += t.Changes()
	}
	return n
}

// Repeat registers r to replace later executions of the running call, as long as only the elements
// of its tensors change. An operator calls it at most once, after it has succeeded. To avoid
// allocations, r should be part of the operator's state (see [Keep]).
func (c *Ctx) Repeat(r Repeater) { c.replay = r }
