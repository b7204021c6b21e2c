// Package rows (no compatibility promise) finds the steps of a method that compute each row of their tensors by itself, such
// as the products of a language model for the tokens of a call. Several instances of the method, each in a call of one row,
// can run these steps together, as one call of several rows in an instance of their own, and only the others one by one.
package rows

// Plan says which steps run together.
type Plan struct {
	Segments []Segment
	// Outputs are outputs of the method that are computed together: each instance has a row of them.
	Outputs []int
	Dims    []int // by value: the dimension of the rows, None for tensors without rows. The dimensions before it have size 1
	Rows    int   // the largest number of rows
	// Lifted are tensors for one row that need a row for each instance in the common one: what is computed from the last row
	// of a call. Their first dimension is that of the rows. Selected are the steps that select that row: together, all rows
	// replace it.
	Lifted   []int
	Selected []int
	Inputs   []int // the indices of the inputs with rows
	// Together and Each are the numbers of steps of the two kinds.
	Together, Each int
}

// None is the dimension of rows of a tensor that has none.
const None = -1

// Segment is a range of steps that run in the same instances.
type Segment struct {
	First, End int
	Together   bool  // in the common instance; else in each of the others
	Copies     []int // values to be copied first: from each instance to the common one, or back
}

// Error is the reason why a method cannot run in several instances together.
type Error struct{ Reason string }

func (e *Error) Error() string { return "calls do not run together: " + e.Reason }
