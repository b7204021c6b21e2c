package kernels

import (
	"errors"
	"testing"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// counting is an operator that counts its calls and repetitions.
type counting struct {
	calls, repeats int
	fail           error
}

func (n *counting) call(c *Ctx, _ Args) error {
	n.calls++
	c.Repeat(n)
	return n.fail
}

func (n *counting) Repeat(*Ctx) error {
	n.repeats++
	return nil
}

// TestCallRepeats changes the arguments of a call between its executions and checks whether the
// operator runs in full.
func TestCallRepeats(t *testing.T) {
	x := tensor.Make(tensor.Float32, []int{4}, nil, tensor.DynamicBound)
	memory, other := tensor.AlignedBytes(16), tensor.AlignedBytes(16)
	x.Bind(memory)
	item := tensor.New(tensor.Float32, 2)
	list := tensor.NewList(tensor.KindTensorList, []*tensor.Value{new(tensor.TensorValue(item))})
	op := &counting{}
	call := NewCall(op.call, Args{new(tensor.TensorValue(x)), new(tensor.IntValue(1)), &list}, true)
	c := NewCtx(nil)
	for _, row := range []struct {
		what  string
		do    func()
		full  bool
		error bool
	}{
		{"the first call", func() {}, true, false},
		{"nothing changed", func() {}, false, false},
		{"other elements", func() { tensor.Data[float32](x)[0] = 7 }, false, false},
		{"resized", func() { x.Resize([]int{3}) }, true, false},
		{"resized to the same sizes", func() { x.Resize([]int{3}) }, false, false},
		{"resized there and back", func() { x.Resize([]int{4}); x.Resize([]int{3}) }, true, false},
		{"bound to other bytes", func() { x.Bind(other) }, true, false},
		{"bound to the same bytes", func() { x.Bind(other) }, false, false},
		{"an item of a list unbound", func() { item.Bind(nil) }, true, false},
		{"failed after a change", func() { x.Bind(memory); op.fail = errors.New("failed") }, true, true},
		{"failed again", func() {}, true, true},
		{"succeeded again", func() { op.fail = nil }, true, false},
		{"nothing changed after all", func() {}, false, false},
	} {
		calls, repeats := op.calls, op.repeats
		row.do()
		if err := call.Do(c); (err != nil) != row.error {
			t.Errorf("%s: got error %v", row.what, err)
		}
		if full := op.calls > calls; full != row.full || full == (op.repeats > repeats) {
			t.Errorf("%s: %d calls and %d repetitions, want a call: %v", row.what, op.calls-calls, op.repeats-repeats, row.full)
		}
	}
}

// TestCallOfChangingSlots executes a call whose slots may change.
func TestCallOfChangingSlots(t *testing.T) {
	op := &counting{}
	call := NewCall(op.call, Args{new(tensor.IntValue(1))}, false)
	c := NewCtx(nil)
	for range 3 {
		if err := call.Do(c); err != nil {
			t.Fatal(err)
		}
	}
	if op.calls != 3 || op.repeats != 0 {
		t.Errorf("%d calls and %d repetitions, want 3 and none", op.calls, op.repeats)
	}
}
