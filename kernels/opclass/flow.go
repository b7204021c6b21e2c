package opclass

// Flow says which elements of the operands an element of the outs depends on: along which dimensions the parts of tensors are
// computed apart. Lists of sizes are the only numbers that change when the number of parts does.
type Flow uint8

// The flows.
const (
	Mixed Flow = iota // nothing is known: an element may depend on all others

	Elements // on the elements at its own position, where dimensions of size 1 are repeated
	Spread   // as Elements, but the last argument has the sizes, or how often each dimension is repeated
	Filled   // on no tensor: argument 0 has the sizes
	Reshaped // on the element at its own position in memory: argument 1 has the sizes

	// On the elements of the first operand that differ in certain dimensions only; other operands are the same for all parts.

	Along      // in the dimension, or the list of them, in the argument dim, dims or axis, which may come or go
	Inner0     // in none
	Inner1     // in the last dimension
	Inner2     // in the last two
	Inner3     // in the last three
	Normalized // in as many inner dimensions as the list in argument 1 has elements
	Padded     // in half as many
	Samples    // in all but dimension 0
	Permuted   // in none; the dimensions have another order
	Product    // in the last one, which the second operand replaces
	Lookup     // in those of the argument indices, which is the one with parts
	Indexed    // as Lookup, or in the dimensions that the list in argument 1 indexes

	// On the elements of all operands, which have the same parts.

	Pairs    // in the last dimension
	Gathered // in the dimension in argument 1
	Joined   // in the dimension in argument 1, along which the tensors of a list are joined
	Products // a product of two matrices, or of two lists of as many matrices
	AddProduct

	Flows // how many there are
)

// Numbers says how the integers of an operator's results depend on those of its arguments.
type Numbers uint8

// The dependences.
const (
	Computed Numbers = iota // in any other way
	Kept                    // they are some of them
	Summed                  // they are sums of them
)
