// Package ethosu is the delegate for Arm Ethos-U NPUs. It reads the payloads that ExecuTorch's Arm
// backend creates with the Vela compiler, and runs them on a device of
// [github.com/etrun-go/etrun/hal/ethosu].
package ethosu

import (
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/ethosu/npu"
)

// ID is the name that identifies the delegate in programs.
const ID = "EthosUBackend"

// Backend compiles Vela payloads. The zero value is ready to use. It is safe for concurrent use.
type Backend struct {
	// Device is "auto", "npu" (the software NPU), the name of another driver, or the path of a
	// device (see [ethosu.Load]). Empty means "auto".
	Device string
	// QParams are the scales and zero points of outputs whose declared type differs from the type
	// that the NPU writes.
	QParams []Quantization
	// Trace, if not nil, is called after each operation of every run, concurrently if units run
	// concurrently. The device must be the software NPU.
	Trace func(*TraceEvent)
	// Calibrate, if not nil, is called in every run for each output with a stale type and returns
	// its quantization; programs with such outputs then load. It is called concurrently if units
	// run concurrently. An error ends the run.
	Calibrate func(*Calibration) (delegate.Quantization, error)
}

// Quantization is the scale and zero point of an output of a delegate.
type Quantization struct {
	Method   string // "" means any
	Delegate int    // index in the method's list of delegates
	Output   int    // index of the delegate's output
	delegate.Quantization
}

// TraceEvent reports an operation that has run. It is valid during the call.
type TraceEvent struct {
	Method    string
	Delegate  int
	Index     int // index of the operation in the delegate's command stream
	Operation *npu.Operation
	Memory    *npu.Memory // all regions, after the operation
}
