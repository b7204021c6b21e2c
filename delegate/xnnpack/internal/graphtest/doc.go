// Package graphtest (no compatibility promise) makes graphs, payloads and arguments for tests.
package graphtest
