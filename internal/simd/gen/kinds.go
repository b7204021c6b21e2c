package main

// Kinds of loops. Those of floats and of integers differ in their elements alone.

func elementwise(dst string, operands ...operand) *kind {
	return &kind{dst: dst, operands: operands, amd64: eachAMD64, arm64: eachARM64, wrapper: elementwiseWrapper, pure: elementwiseGo}
}

var (
	unaryFloat   = elementwise("float32", operand{"src", "float32"})
	binaryFloat  = elementwise("float32", operand{"a", "float32"}, operand{"b", "float32"})
	compareFloat = elementwise("uint8", operand{"a", "float32"}, operand{"b", "float32"})
	unaryInt     = elementwise("int32", operand{"src", "int32"})
	binaryInt    = elementwise("int32", operand{"a", "int32"}, operand{"b", "int32"})
	compareInt   = elementwise("uint8", operand{"a", "int32"}, operand{"b", "int32"})
	selection    = elementwise("uint32", operand{"mask", "uint8"}, operand{"a", "uint32"}, operand{"b", "uint32"})

	// An approximation computes a last incomplete block in all lanes, too.
	approximation = &kind{dst: "float32", operands: []operand{{"src", "float32"}},
		amd64: eachAMD64, arm64: eachARM64, wrapper: approximationWrapper}
)

// inner is a kind of vector loop that hand-written Go calls.
func inner(dst, result string, operands ...operand) *kind {
	return &kind{dst: dst, operands: operands, result: result, amd64: eachAMD64, arm64: eachARM64}
}

// reduction is a kind of vector loop that makes one number of its operands.
func reduction(operands ...string) *kind {
	k := &kind{result: "ret float32", amd64: reduceAMD64, arm64: reduceARM64}
	for _, o := range operands {
		k.operands = append(k.operands, operand{o, "float32"})
	}
	return k
}

// raw is a kind of vector loop whose code is all of it.
func raw(dst string, operands ...operand) *kind {
	return &kind{dst: dst, operands: operands, amd64: rawAMD64, arm64: rawARM64}
}

// extreme is a reduction with a loop of its own.
var extreme = &kind{operands: []operand{{"x", "float32"}}, result: "ret float32", amd64: rawAMD64, arm64: rawARM64}
