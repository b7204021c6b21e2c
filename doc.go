// Package etrun opens ExecuTorch programs and runs their methods.
//
//	prog, err := etrun.Open("mobilenet_v2.pte", etrun.WithDelegates(all.Backends()...))
//	defer prog.Close()
//	m, err := prog.Load(ctx, "forward")
//	defer m.Close()
//	scores, err := etrun.Run[float32](ctx, m, pixels) // valid until the next Run
//
// # Programs and methods
//
// A [Program] is an open file, verified whole: [Open] and [Parse], or [OpenSource] for any
// [Source] such as an embedded file. It is immutable and safe for concurrent use. [Program.Meta]
// describes a method without loading it.
//
// A [Method] is a live instance of one of the program's methods, with memory and state of its
// own. One goroutine uses it at a time; a call while another runs gives ErrBusy and changes
// nothing. Instances share constants and packed weights, so a second one costs little. A
// [Pool] holds several for callers in many goroutines.
//
// # Inputs and outputs
//
// [Run] is the short form. Where nothing may be allocated, [Set] the inputs, [Method.Execute]
// and [Get] the outputs. [Method.SetInput], [Method.SetValue] and [Method.Output] have
// tensors and values of any kind; [Method.BindInput] and [Method.BindOutput] let the method
// use the caller's own memory instead of copies.
//
// Inputs keep their values until they are set again. Outputs are valid until the next
// execute. Mutable buffers of the program, its state, keep theirs until [Method.Reset].
//
// # Operators and backends
//
// [DefaultOperators] are all operators of this module; [WithOperators] adds others. A part of
// a program that was lowered for a backend needs that backend: [WithDelegates] gives it.
// [Program.Warnings] says what was given but is of no use, and what runs slower than it
// could.
//
// # Observers
//
// An [Observer] is told what a program does and how long it takes, as far as it wants to
// know: loads and their stages, executes, instructions, delegates and nodes inside them,
// memory, waiting for a pool, and failures. [WithObserver] sets one for a program,
// [Method.Observe] one for some executes. Package runtime/trace has a recorder with writers
// of tables and traces.
//
// # Errors
//
// Every error is one of the classes [ErrFormat], [ErrUnsupported], [ErrMissing], [ErrInput],
// [ErrMemory], [ErrExecute], [ErrDevice], [ErrClosed], [ErrBusy] and [ErrPanic], the cause of
// the context that ended, or an [io/fs.PathError] of a file that cannot be read. Types such as
// [InputError] and [InstructionError] say the place. No file and no argument makes the package
// panic.
//
// # Compatibility
//
// This package promises compatibility, with kernels and kernels/tensor, delegate, its
// backends delegate/xnnpack and delegate/ethosu with delegate/all, runtime/trace and
// runtime/metrics. The types of other packages that some methods give are described there,
// without that promise: [Program.Spec], [Program.Bundle], [Method.Plan], [Method.Folded] and [Method.Rewritten].
package etrun
