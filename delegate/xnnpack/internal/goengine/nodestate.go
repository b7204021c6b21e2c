package goengine

// nodeState is the state that a unit holds for a node between runs: a prepared loop, which is valid
// while values keep their addresses and shapes.
type nodeState struct {
	loop       any
	generation uint64 // of the addresses that the loop was prepared for
}
