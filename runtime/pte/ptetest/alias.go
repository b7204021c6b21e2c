// Package ptetest (no compatibility promise) writes ExecuTorch's file formats, for tests:
// whole programs from their descriptions, and files with single fields changed, dropped or
// shared.
//
// Three levels build on each other. [Write], [WriteData] and [WriteBundle] turn the
// descriptions of package pte into files. [Decode] turns a file into a [File], a tree
// of [Node] that mirrors its tables, in which a test changes what no description can
// express; its method Bytes writes it back. [mutateFile] makes such changes at random,
// for fuzzing.
package ptetest

import "github.com/etrun-go/etrun/runtime/pte/tree"

// The trees of package tree.
type (
	Node   = tree.Node
	Scalar = tree.Scalar
	File   = tree.File
)

// Decode is tree.Decode.
func Decode(data []byte) (*File, error) { return tree.Decode(data) }
