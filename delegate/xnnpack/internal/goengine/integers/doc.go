// Package integers (no compatibility promise) has the loops over bytes, and products with 4-bit filters.
package integers
