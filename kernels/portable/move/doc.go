// Package move (no compatibility promise) implements the operators that only move
// elements: views, slices, permutations, concatenation, padding. None looks at an
// element's type unless it converts it; each works out a strided mapping and leaves the
// copy to [Strided]. Dim orders may be mixed freely: a tensor's strides say where its
// elements are.
package move
