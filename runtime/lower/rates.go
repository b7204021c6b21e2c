package lower

// class is a kind of operator call. The calls of a class take the same time per unit of what a term counts.
type class uint8

// The classes.
const (
	classCall          class = iota // of every call: starts
	classHalf                       // of 16-bit floats, which are converted: elements of all arguments
	classPoint                      // convolutions with windows of one element
	classWindow                     // convolutions that copy windows
	classStrided                    // the same, with a stride
	classPlanes                     // depthwise convolutions, plane by plane
	classPlanesStrided              //
	classPixels                     // depthwise convolutions of all channels at once, on copies
	classTransposed                 // transposed convolutions
	classLinear                     // products with a matrix whose columns are contiguous
	classMatrix                     // products with a matrix whose rows are contiguous
	classBatch                      // batches of these
	classMaximum                    // pools
	classAverage                    //
	classMean                       //
	classSoftmax                    //
	classResize                     // bilinear
	classBinary                     // functions of two tensors, or of one and a number
	classPair                       // functions of two tensors of one shape
	classJoin                       // concatenations
	classMoveRows                   // permutations in which runs of elements stay contiguous
	classMoveElements               // other permutations
	classCopy                       //
	classQuantize                   //
	classDequantize                 //
	classLayerNorm                  //
	classBatchNorm                  //
	classGelu                       //
	classSigmoid                    // and SiLU
	classTanh                       //
	classExact                      // other operators, by family
	classArith                      //
	classPointwise                  //
	classSum                        //
	classLoose                      //
	classes
)

// term is what a part of a call's time is proportional to.
type term uint8

// The terms.
const (
	termStart   term = iota // calls
	termRow                 // what is computed one after the other: rows, tiles
	termPlane               // planes, matrices
	termTap                 // elements that are copied first, or do not stay in the nearest cache
	termLine                // runs of elements that are copied first
	termWork                // MACs, with tiles filled up; elements of windows
	termElement             // of the results
	termWeight              // elements of the filter
	terms
)

// amounts are the amounts of a call's terms.
type amounts [terms]float64

// rateTable are times in nanoseconds, on one thread.
type rateTable [classes]amounts
