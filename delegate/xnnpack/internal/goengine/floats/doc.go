// Package floats (no compatibility promise) has the loops over floats.
package floats
