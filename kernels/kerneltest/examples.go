package kerneltest

import (
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Examples returns the arguments of calls of an operator, outs included, as [ParseCall] returns them: those with expected values, and
// those of real programs, whose inputs are zeros.
func Examples(op string) (list [][]any) {
	for _, c := range expected()[op] {
		list = append(list, c.args)
	}
	return append(list, calls()[op]...)
}

// Outs calls an operator on copies of arguments, outs included, and returns its outs, or a tensor that it returns.
func Outs(set *kernels.Set, op string, args []any) ([]*tensor.Tensor, error) {
	_, sig, _, err := set.Lookup(op)
	if err != nil {
		return nil, err
	}
	var result *tensor.Tensor
	if n := len(sig.Args); len(args) > n {
		result, _ = args[n].(*tensor.Tensor)
		args = args[:n]
	}
	k, err := newCall(set, op, slices.Clone(args), result)
	if err != nil {
		return nil, err
	}
	refused, broken := k.run(kernels.NewCtx(nil))
	if broken != nil {
		return nil, broken
	}
	if refused != nil {
		return nil, refused
	}
	outs := make([]*tensor.Tensor, len(k.written))
	for i, g := range k.written {
		outs[i] = g.t
	}
	return outs, nil
}
