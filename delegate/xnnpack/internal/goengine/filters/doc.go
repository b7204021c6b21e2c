// Package filters (no compatibility promise) packs filters for products of floats, bytes and 4-bit elements.
package filters
