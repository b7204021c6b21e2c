// Package simd holds the inner loops that are worth vector instructions: blocks of
// matrix products, sums over taps, row kernels, and arithmetic, comparisons,
// conversions and functions of each element. Every function is written in Go first
// (generic.go and its like), and its comment gives the loop that it equals; where the
// processor has AVX2 and FMA, or NEON, a hand-written twin takes its place, and AVX-512
// for matrix products and conversions. The tag purego leaves the twins out.
//
// Twins add in another order and fuse multiplications with additions, so sums and
// functions may differ from the Go loop in the last bits; the others do not. Results do
// not depend on where the slices start, nor on the number of threads.
//
// Slices of one call do not overlap unless the comment says that they may.
package simd
