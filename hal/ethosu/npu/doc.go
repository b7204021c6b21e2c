// Package npu (no compatibility promise) is an Ethos-U in software: it runs the command
// streams of the U55, U65 and U85 with the numbers that the hardware computes, bit for
// bit.
//
// The model is functional. It runs one operation after the other, in the order of the
// stream, so waits, block sizes and buffer allocations have no effect; blocks matter
// only for the order in which weights are stored. Every address that an operation can
// form is checked against its region before anything runs, so inner loops need no
// checks of their own, and the work is bounded before it starts.
//
// A stream goes through three forms: [Decode] gives a [Program], all operations with
// their registers read; [Program.Bind] checks them against the memory they will have
// and decodes the weights that are known then, giving a [Network]; a [Run] is a
// network with its own working memory.
package npu
