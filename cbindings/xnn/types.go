package xnn

import (
	"fmt"
	"unsafe"
)

// Handles of XNNPACK's objects; 0 is none.
type (
	Subgraph     uintptr // xnn_subgraph_t
	Runtime      uintptr // xnn_runtime_t
	Workspace    uintptr // xnn_workspace_t
	WeightsCache uintptr // xnn_weights_cache_t
	Threadpool   uintptr // pthreadpool_t
)

// Address is a pointer that XNNPACK keeps beyond the call.
type Address uintptr

// AddressOf is where the elements of s are, 0 if there are none. The caller keeps
// them alive and pinned as long as XNNPACK may use the address.
func AddressOf[T any](s []T) Address {
	if len(s) == 0 {
		return 0
	}
	return addressOf(unsafe.SliceData(s))
}

// Limits and flags of xnnpack.h that no version changed.
const (
	MaxDims    = 6          // XNN_MAX_TENSOR_DIMS
	ExtraBytes = 16         // XNN_EXTRA_BYTES: readable bytes behind every operand
	NoValue    = 0xFFFFFFFF // XNN_INVALID_VALUE_ID

	ValueExternalInput  = 1 // XNN_VALUE_FLAG_EXTERNAL_INPUT
	ValueExternalOutput = 2 // XNN_VALUE_FLAG_EXTERNAL_OUTPUT

	FlagBasicProfiling = 0x08 // XNN_FLAG_BASIC_PROFILING, of a runtime
	FlagYieldWorkers   = 0x10 // XNN_FLAG_YIELD_WORKERS, of a runtime
	FlagKeepDims       = 0x40 // XNN_FLAG_KEEP_DIMS, of a reduction

	// FlagNoFusion keeps a runtime's nodes as they were defined
	// (XNN_FLAG_NO_OPERATOR_FUSION of the internal header).
	FlagNoFusion = 0x80000000
)

// ExternalValue is struct xnn_external_value: where an input or output is.
type ExternalValue struct {
	ID   uint32
	_    uint32
	Data Address
}

// BinaryParams is struct xnn_binary_params.
type BinaryParams struct{ OutputMin, OutputMax float64 }

// UnaryParams is union xnn_unary_params: clamp's bounds, or the alpha of elu or the
// negative slope of leaky_relu in the first.
type UnaryParams [2]float32

// ProfileInfo says what GetRuntimeProfilingInfo is asked for (enum xnn_profile_info).
type ProfileInfo uint32

// The three questions.
const (
	ProfileNumOperators   ProfileInfo = 0 // one uint
	ProfileOperatorName   ProfileInfo = 1 // names, each ended by a zero byte
	ProfileOperatorTiming ProfileInfo = 2 // one uint64 a name, microseconds
)

// Status is enum xnn_status.
type Status uint32

// Results of XNNPACK's functions.
const (
	Success              Status = 0
	Uninitialized        Status = 1
	InvalidParameter     Status = 2
	InvalidState         Status = 3
	UnsupportedParameter Status = 4
	UnsupportedHardware  Status = 5
	OutOfMemory          Status = 6
	ReallocationRequired Status = 7
	Deprecated           Status = 8
)

var statusNames = [...]string{"success", "uninitialized", "invalid parameter", "invalid state",
	"unsupported parameter", "unsupported hardware", "out of memory", "reallocation required", "deprecated"}

func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("status %d", uint32(s))
}

// Error is the status as the error of a named call, nil for Success.
func (s Status) Error(call string) error {
	if s == Success {
		return nil
	}
	return &StatusError{Call: call, Status: s}
}

// StatusError is a call that XNNPACK refused.
type StatusError struct {
	Call   string // the C function
	Status Status
}

func (e *StatusError) Error() string { return e.Call + ": " + e.Status.String() }

func addressOf[T any](p *T) Address { return Address(unsafe.Pointer(p)) }
