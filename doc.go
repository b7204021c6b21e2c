// Package etrun loads and runs ExecuTorch programs (.pte files).
//
//	prog, err := etrun.Open("mobilenet_v2.pte", etrun.WithDelegates(all.Backends()...))
//	defer prog.Close()
//	m, err := prog.Load(ctx, "forward")
//	defer m.Close()
//	scores, err := etrun.Run[float32](ctx, m, pixels) // valid until the next Run
//
// # Programs and methods
//
// A [Program] is an open file that has been verified completely. [Open] reads a file, [Parse]
// a byte slice, and [OpenSource] any [Source], such as an embedded file. A Program is
// immutable and safe for concurrent use. [Program.Meta] describes a method without loading it.
//
// A [Method] is a loaded instance of one of the program's methods, with its own memory and
// state. Only one goroutine may use it at a time: a call during another call returns ErrBusy
// and changes nothing. Instances share constants and packed weights, so each further instance
// costs little. A [Pool] manages several instances for concurrent callers.
//
// # Inputs and outputs
//
// [Run] sets the inputs, runs the method and returns its first output. To avoid allocations,
// call [Set] for each input, then [Method.Execute], then [Get] for each output.
// [Method.SetInput], [Method.SetValue] and [Method.Output] handle tensors and values of any
// kind. [Method.BindInput] and [Method.BindOutput] make the method use the caller's memory
// instead of copies.
//
// An input keeps its value until it is set again. Outputs are valid until the next run.
// Mutable buffers (the program's state) keep their contents until [Method.Reset].
//
// # Operators and backends
//
// [DefaultOperators] returns all operators of this module; [WithOperators] adds others.
// A program lowered to a backend needs that backend: pass it with [WithDelegates].
// [Program.Warnings] lists backends and data that the program does not use, and parts of it
// that run slower than they could.
//
// # Observers
//
// An [Observer] receives the events that it subscribes to, with their durations: loads and
// their stages, runs, instructions, delegate calls and the nodes inside delegates, memory,
// waits for a pool, and failures. [WithObserver] sets an observer for a program,
// [Method.Observe] for some runs of one method. Package runtime/trace provides a recorder,
// which writes tables and traces.
//
// # Errors
//
// Every error matches one of the classes [ErrFormat], [ErrUnsupported], [ErrMissing],
// [ErrInput], [ErrMemory], [ErrExecute], [ErrDevice], [ErrClosed], [ErrBusy] and [ErrPanic],
// or is the cause of a context that ended, or an [io/fs.PathError] for a file that cannot be
// read. Types such as [InputError] and [InstructionError] locate the failure. No file and no
// argument makes the package panic.
//
// # Compatibility
//
// The API of this package is stable, as are those of kernels, kernels/tensor, delegate,
// delegate/xnnpack, delegate/ethosu, delegate/all, runtime/trace, runtime/metrics, text and
// text/tokenizer. A few types of other packages may change: those of [Program.Spec],
// [Program.Bundle] and [Report].
package etrun
