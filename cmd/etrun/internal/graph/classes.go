package graph

import "strings"

// named are classes by parts of names; the first match counts.
type named []struct {
	class string
	parts []string
}

// of returns the class of a name, or other.
func (n named) of(name, other string) string {
	name = strings.ToLower(name)
	for _, row := range n {
		for _, part := range row.parts {
			if strings.Contains(name, part) {
				return row.class
			}
		}
	}
	return other
}

// classes are the classes of operations.
var classes = named{
	{"jump", []string{"jumpfalse", "sizesjump"}},
	{"convert", []string{"quantize_per", "dequantize", "convert", "to_copy", "dim_order"}},
	{"product", []string{"conv", "linear", "mm", "fullyconnected", "matrixmultiply", "matmul", "attention", "sdpa", "embedding",
		"depthwise"}},
	{"activation", []string{"relu", "sigmoid", "tanh", "gelu", "silu", "hardswish", "hardtanh", "clamp", "softmax", "elu", "softplus"}},
	{"norm", []string{"norm"}},
	{"reduce", []string{"pool", "mean", "sum", "argmax", "argmin", "amax", "amin", "topk", "reduce"}},
	{"move", []string{"view", "permute", "transpose", "reshape", "cat", "slice", "select", "copy", "expand", "split", "stack", "squeeze",
		"pad", "index", "clone", "dma", "concatenate", "flip", "rearrange", "repeat", "gather", "scatter", "move"}},
}

// classOf returns the class of an operation.
func classOf(name string) string { return classes.of(name, "element") }
