package native

import (
	"context"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// inGoFrom is how many calls in a row were repeated in Go before the next ones run there first.
const inGoFrom = 2

// Execute runs the graph on the arguments. The runtime stores their addresses until a call with
// other arguments.
func (u *Unit) Execute(ctx context.Context, args []*tensor.Value) error {
	if err := u.follow(args); err != nil {
		return err
	}
	if u.UseOther {
		return u.other.Execute(ctx, args)
	}
	if u.Image.checked {
		return u.executeChecked(ctx, args)
	}
	if err := u.invoke(); err != nil {
		return err
	}
	u.finishOutputs()
	return nil
}

// executeChecked runs a call of a region whose numbers are checked: in the library if its inputs and outputs are finite
// there, else in Go. After some calls in a row that ran twice, calls run in Go first, and in the library as well only if
// the outputs are finite: so which engine computes a result does not depend on the calls before it.
func (u *Unit) executeChecked(ctx context.Context, args []*tensor.Value) error {
	inputs := u.Image.Graph.Inputs
	if !u.areFinite(0, inputs) {
		return u.runInGo(ctx, args)
	}
	if u.Repeated >= inGoFrom && !u.finish { // outputs that are finished may overwrite inputs
		if err := u.runInGo(ctx, args); err != nil || !u.areFinite(inputs, len(u.args)) {
			return err
		}
		u.Repeated = 0
	}
	if err := u.invoke(); err != nil {
		return err
	}
	if !u.areFinite(inputs, len(u.args)) {
		u.Repeated++
		return u.runInGo(ctx, args)
	}
	u.Repeated, u.ranInGo = 0, false
	u.finishOutputs()
	return nil
}

// areFinite reports whether arguments [from, to) have only finite numbers, far from the largest ones.
func (u *Unit) areFinite(from, to int) bool {
	for _, a := range u.args[from:to] {
		if !graph.IsModest(a.Value.Datatype, a.Data) {
			return false
		}
	}
	return true
}

// runInGo runs a call of a region in Go.
func (u *Unit) runInGo(ctx context.Context, args []*tensor.Value) error {
	if err := u.makeOther(); err != nil {
		return err
	}
	u.ranInGo = true
	return u.other.Execute(ctx, args)
}

// finishOutputs copies and converts the outputs of the library where that is needed.
func (u *Unit) finishOutputs() {
	if u.finish {
		graph.Finish(u.args)
	}
}
