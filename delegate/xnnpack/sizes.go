package xnnpack

import (
	"math"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// times returns a product of sizes, or a huge number instead of overflowing.
func times(factors ...int) int64 {
	p := int64(1)
	for _, f := range factors {
		if f != 0 && p > math.MaxInt64/4/int64(f) {
			return math.MaxInt64 / 4
		}
		p *= int64(f)
	}
	return p
}

// plus returns a sum, or a huge number instead of overflowing.
func plus(a, b int64) int64 { return min(a, math.MaxInt64/4) + min(b, math.MaxInt64/4) }

func roundUp(n, multiple int) int { return (n + multiple - 1) / multiple * multiple }

func lineUp(n int64) int64 { return (n + tensor.Alignment - 1) &^ (tensor.Alignment - 1) }

// repeat returns the size of so many blocks of n bytes, or a huge number instead of overflowing.
func repeat(blocks int, n int64) int64 {
	if n > math.MaxInt64/4/int64(max(1, blocks)) {
		return math.MaxInt64 / 4
	}
	return int64(blocks) * n
}

// needs is the memory of an image and one of its units, in bytes.
type needs struct {
	weights int64 // packed constants
	scratch int64 // values between nodes, tables of pointers, working memory of nodes
	timed   int64 // a second runtime, in the same workspace, that times its nodes
	shared  int64 // the part of scratch for values between nodes, if units share a workspace
}

// check compares needs with the limits of the payload.
func (n needs) check(l delegate.Limits) error { return l.Check(ID, n.weights, n.scratch) }
