// Package goengine (no compatibility promise) runs graphs in Go: it packs constants, plans
// memory, and has the loops of every type of node.
package goengine
