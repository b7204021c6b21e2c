// Package move (no compatibility promise) implements the operators that only move elements: views, slices,
// permutations, concatenation, padding. They compute views ([strided.View]) of their arguments and copy them. Only
// conversions depend on the element type. Dim orders may be mixed.
package move
