// Package reduce (no compatibility promise) implements the operators that reduce many elements to one: sums,
// products, extremes and their indices, variances, and running sums.
//
// A reduction processes its input in memory as outer blocks of n rows of inner elements (see [layout]). Sums are
// computed in chunks whose results are summed again, which limits the rounding error and makes it independent of the
// number of threads.
package reduce
