// Package numbers (no compatibility promise) has the values of a graph, and the numbers that their bytes mean.
package numbers
