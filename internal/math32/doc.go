// Package math32 computes functions of float32 slices several times faster than
// package math does element by element.
//
// Each function of slices computes as many elements as dst has, and is correctly rounded
// but for a few results in a thousand, which are the neighbouring
// float32. Infinities, NaN and subnormal numbers are treated as in package math. The
// work is done in float64 with short polynomials between table values; the largest
// error of each function is in the tests.
package math32
