package lowering

import "github.com/etrun-go/etrun/kernels/tensor"

// RowWise is implemented by images that know which of their calls compute every row by itself.
type RowWise interface {
	// Rows returns the dimension of the rows of each output of a call with n rows. Only the sizes and orders of the arguments, inputs and then
	// outputs, matter; dims has the dimension of the rows of each input, -1 for those that are the same for all rows. A
	// size there is a multiple of n: a row has as many indices, one after the other. The error is the reason why an output may
	// depend on several rows.
	Rows(n int, args []*tensor.Tensor, dims []int) (outputs []int, err error)
}
