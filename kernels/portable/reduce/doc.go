// Package reduce (no compatibility promise) implements the operators that take many
// elements to one: sums, products, extremes and their places, variances, and running sums.
//
// A reduction sees its input in memory as outer blocks of n rows of inner elements
// (see [layout]); sums are made in chunks whose results are summed again, which
// keeps the rounding error small, and the same on any number of threads.
package reduce
