// Package moves (no compatibility promise) has the loops that copy elements of any datatype.
package moves
