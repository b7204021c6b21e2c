package graph

import (
	"math"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Times returns a product of sizes, or a huge number instead of overflowing.
func Times(factors ...int) int64 {
	p := int64(1)
	for _, f := range factors {
		if f != 0 && p > math.MaxInt64/4/int64(f) {
			return math.MaxInt64 / 4
		}
		p *= int64(f)
	}
	return p
}

// Plus returns a sum, or a huge number instead of overflowing.
func Plus(a, b int64) int64 { return min(a, math.MaxInt64/4) + min(b, math.MaxInt64/4) }

// RoundUp returns the next multiple.
func RoundUp(n, multiple int) int { return (n + multiple - 1) / multiple * multiple }

// AlignUp returns the next multiple of the alignment of tensors.
func AlignUp(n int64) int64 { return (n + tensor.Alignment - 1) &^ (tensor.Alignment - 1) }

// Repeat returns the size of so many blocks of n bytes, or a huge number instead of overflowing.
func Repeat(blocks int, n int64) int64 {
	if n > math.MaxInt64/4/int64(max(1, blocks)) {
		return math.MaxInt64 / 4
	}
	return int64(blocks) * n
}

// Needs is the memory of an image and one of its units, in bytes.
type Needs struct {
	Weights int64 // packed constants
	Scratch int64 // values between nodes, tables of pointers, working memory of nodes
	Timed   int64 // a second runtime, in the same workspace, that times its nodes
	Shared  int64 // the part of scratch for values between nodes, if units share a workspace
}

// Check compares needs with the limits of the payload.
func (n Needs) Check(l delegate.Limits) error { return l.Check(ID, n.Weights, n.Scratch) }

// OwnPages is the minimum size in bytes of panels that are stored outside of the Go heap.
const OwnPages = 16 << 10

// ReadBehind is the size of a vector in bytes.
const ReadBehind = 64
