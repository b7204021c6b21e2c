// Package npu (no compatibility promise) is a bit-exact software implementation of the Ethos-U: it
// runs the command streams of the U55, U65 and U85 with the same results as the hardware.
//
// The model is functional. It runs operations one by one in stream order, so that waits, block
// sizes and buffer allocations have no effect; block sizes only determine the order in which
// weights are stored. Before anything runs, every address that an operation can form is checked
// against its region, so that inner loops need no checks, and the amount of work is limited.
//
// A stream is processed in three steps. [Decode] returns a [Program]: all operations with their
// registers decoded. [Program.Bind] checks it against the memory regions, decodes the constant
// weights, and returns a [Network]. A [Run] is a network with its own working memory.
package npu
