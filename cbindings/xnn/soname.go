package xnn

// Soname describes one version of the library: the numbers that XNNPACK changes between versions.
// Datatypes, Unary, Binary and Reduce are indexed by the constants below.
type Soname struct {
	Name      string
	Build     string // the upstream commit, for messages
	Datatypes [numDatatypes]int32
	Unary     [numUnary]int32
	Binary    [numBinary]int32
	Reduce    [numReduce]int32
	// Reshape2D: a fully connected node has the flag for an output of two dimensions. Without it the
	// output has the input's rank.
	Reshape2D bool
	// TransposedExample is how many bytes are allocated while the first transposed convolution of
	// a type is created: an example that is packed to identify the packing.
	TransposedExample int64
	// NarrowProducts: with AVX-512, float32 products of at most 16 output channels, or of an odd
	// multiple of 16, are computed 16 at a time. Without it they are computed 32 at a time.
	NarrowProducts bool
}

// Datatype names an element type of XNNPACK (enum xnn_datatype) apart from numbers.
type Datatype uint8

// Element types.
const (
	FP32 Datatype = iota
	FP16
	QInt8
	QUint8
	QInt32
	QCInt8
	QCInt32
	QCInt4
	QDInt8
	QBInt4
	Int32
	numDatatypes
)

// UnaryOperator names an elementwise function (enum xnn_unary_operator).
type UnaryOperator uint8

// Elementwise functions of one operand.
const (
	Convert UnaryOperator = iota
	Clamp
	Abs
	BankersRounding
	Ceiling
	ELU
	Exp
	Floor
	Gelu
	Hardswish
	LeakyReLU
	Log
	Negate
	Sigmoid
	Square
	SquareRoot
	ReciprocalSquareRoot
	Tanh
	Cosine
	Sine
	numUnary
)

// BinaryOperator names a broadcasting function (enum xnn_binary_operator).
type BinaryOperator uint8

// Elementwise functions of two operands.
const (
	Add BinaryOperator = iota
	Subtract
	Multiply
	Divide
	Maximum
	Minimum
	PReLU
	numBinary
)

// ReduceOperator names a reduction (enum xnn_reduce_operator).
type ReduceOperator uint8

// Reductions.
const (
	Sum ReduceOperator = iota
	Mean
	numReduce
)

// sonames are the supported versions: the one that scripts/xnnpack.sh builds, and Debian's. If a
// folder has several, the first one of this list is opened.
var sonames = []*Soname{{
	Name:  "libXNNPACK.so.0.20260727",
	Build: "92a7ad501b95",
	Datatypes: [numDatatypes]int32{
		FP32: 1, FP16: 2, QInt8: 3, QUint8: 4, QInt32: 5, QCInt8: 6, QCInt32: 7, QCInt4: 8, QDInt8: 9,
		Int32: 11, QBInt4: 12,
	},
	Unary: [numUnary]int32{
		Abs: 0, BankersRounding: 2, Ceiling: 3, Clamp: 4, Convert: 5, Cosine: 6, ELU: 7, Exp: 8, Floor: 9, Gelu: 10,
		Hardswish: 11, LeakyReLU: 12, Log: 13, Negate: 14, ReciprocalSquareRoot: 15, Sigmoid: 16, Sine: 17,
		SquareRoot: 18, Square: 19, Tanh: 20,
	},
	Binary: [numBinary]int32{Add: 0, Subtract: 1, Multiply: 2, Divide: 3, Maximum: 4, Minimum: 5, PReLU: 8},
	Reduce: [numReduce]int32{Sum: 0, Mean: 2},
	// 2 groups of 48x23 channels, 3x3 float32, and the same packed in tiles
	TransposedExample: 192 << 10,
	NarrowProducts:    true,
}, {
	Name:  "libXNNPACK.so.0.20241108",
	Build: "4ea82e595b36",
	Datatypes: [numDatatypes]int32{
		FP32: 1, FP16: 2, QInt8: 3, QUint8: 4, QInt32: 5, QCInt8: 6, QCInt32: 7, QCInt4: 8, QDInt8: 9,
		Int32: 11, QBInt4: 12,
	},
	Unary: [numUnary]int32{
		Convert: 0, Clamp: 1, Abs: 2, BankersRounding: 3, Ceiling: 4, ELU: 5, Exp: 6, Floor: 7, Gelu: 8,
		Hardswish: 9, LeakyReLU: 10, Log: 11, Negate: 12, Sigmoid: 13, Square: 14, SquareRoot: 15,
		ReciprocalSquareRoot: 16, Tanh: 17, Cosine: 19, Sine: 20,
	},
	Binary:    [numBinary]int32{Add: 0, Subtract: 1, Multiply: 2, Divide: 3, Maximum: 4, Minimum: 5, PReLU: 8},
	Reduce:    [numReduce]int32{Sum: 0, Mean: 1},
	Reshape2D: true,
}}

func knownSoname(name string) *Soname {
	for _, s := range sonames {
		if s.Name == name {
			return s
		}
	}
	return nil
}
