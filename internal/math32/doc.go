// Package math32 computes functions of float32 slices several times faster than element by element
// with package math.
//
// Each function computes len(dst) elements. Results are correctly rounded, except a few in a
// thousand, which are the neighboring float32. Infinities, NaN and subnormal numbers are treated as
// in package math. The functions compute in float64 with short polynomials between table values;
// the tests state the largest error of each function.
package math32
