package lowering

import "github.com/etrun-go/etrun/delegate"

// Planned is implemented by images whose units take working memory from the memory plan of the
// method instance. There it shares bytes with values that other instructions use, and with inputs
// and outputs of the call outside the moments of their use.
type Planned interface {
	delegate.Image
	// Workspace describes the working memory of a unit; nil if units have only memory of their own.
	// The result does not change, and must not be changed.
	Workspace() *Workspace
}

// Workspace describes the working memory of a call and its use over the moments of the call, for
// example one for each operation. Blocks that are used at the same moment share no bytes.
type Workspace struct {
	Moments int     // numbered from 0
	Blocks  []Block // no data stays in them from one call to the next
	Args    []Span  // when each argument's bytes are read or written; outputs are used to the last moment
}

// Block is a part of a workspace.
type Block struct {
	Bytes int64 // at the declared sizes of the arguments
	Span
}

// Span is the first and the last moment of a use, inclusive.
type Span struct{ First, Last int }

// Repeater is implemented by units that keep results of nodes while the inputs that these depend on do not change.
type Repeater interface {
	// Repeats marks inputs, by argument, that may stay the same from one call to the next, and drops what is kept. It returns the bytes
	// that the unit will keep at its present sizes from the first call on in which they did; 0 if no results are worth it.
	Repeats(inputs []bool) (bytes int64)
	// Unchanged says, before each call, whether all marked inputs have the contents that they had in the call before.
	Unchanged(same bool)
}
