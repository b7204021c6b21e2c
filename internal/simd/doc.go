// Package simd holds the inner loops that are worth vector instructions: blocks of
// matrix products, sums over taps, row kernels, and arithmetic, comparisons,
// conversions and functions of each element.
//
// Every loop is written in Go first: that is its definition, what runs without vectors,
// and what tests compare with. Where the processor has AVX2 and FMA, or NEON, assembly
// takes its place, and AVX-512 for matrix products, conversions and activations. Products of
// bytes also have forms for dot products and, on arm64, products of matrices. The tag purego
// leaves assembly out.
//
// An exported function chooses among the loops of all processors. gen declares the assembly,
// and gives what a build lacks an empty body, which nothing calls.
//
// Loops over elements are rows of a table in gen, which writes the exported functions,
// the loops in Go, and the assembly; it writes tiles of products, sums over taps and
// NEON's transposes from their shapes. Loops of other shapes are written by hand, in files
// without the mark of generated code. All assembly names its arguments with their
// offsets, so that go vet checks them.
//
// Assembly adds in another order and fuses multiplications with additions, so sums and
// functions may differ from the Go loop in the last bits; the others do not. Results do
// not depend on where the slices start, nor on the number of threads.
//
// Slices of one call do not overlap unless the comment says that they may.
//
//go:generate go run ./gen
package simd
