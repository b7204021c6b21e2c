package lowering

// RowWise is implemented by images that know which of their calls compute every row by itself.
type RowWise interface {
	// Rows returns the dimension of the rows of each output if the inputs have rows along the given dimensions, -1 for
	// inputs without rows, which are constants. The dimensions before it have size 1. ok means that a call with several rows
	// computes for each what a call with it alone would, for any number of rows.
	Rows(inputs []int) (outputs []int, ok bool)
}
