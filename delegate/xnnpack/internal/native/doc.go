// Package native (no compatibility promise) runs graphs with libXNNPACK: which graphs and sizes the
// library supports, the definition of their nodes, packed weights and their files, and memory.
package native
