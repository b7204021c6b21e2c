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

// Address is a pointer that XNNPACK keeps after the call.
type Address uintptr

// AddressOf returns the address of the elements of s, 0 if there are none. The caller must keep
// them alive and pinned as long as XNNPACK may use the address.
func AddressOf[T any](s []T) Address {
	if len(s) == 0 {
		return 0
	}
	return addressOf(unsafe.SliceData(s))
}

// Limits and flags of xnnpack.h that are the same in all versions.
const (
	MaxDims    = 6          // XNN_MAX_TENSOR_DIMS
	ExtraBytes = 16         // XNN_EXTRA_BYTES: readable bytes after every operand
	NoValue    = 0xFFFFFFFF // XNN_INVALID_VALUE_ID

	ValueExternalInput  = 1 // XNN_VALUE_FLAG_EXTERNAL_INPUT
	ValueExternalOutput = 2 // XNN_VALUE_FLAG_EXTERNAL_OUTPUT

	FlagBasicProfiling = 0x08 // XNN_FLAG_BASIC_PROFILING, of a runtime
	FlagYieldWorkers   = 0x10 // XNN_FLAG_YIELD_WORKERS, of a runtime
	FlagKeepDims       = 0x40 // XNN_FLAG_KEEP_DIMS, of a reduction

	// FlagNoFusion disables the fusion of a runtime's nodes (XNN_FLAG_NO_OPERATOR_FUSION of the
	// internal header).
	FlagNoFusion = 0x80000000
)

// ExternalValue is struct xnn_external_value: the location of an input or output.
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

// ProfileInfo selects the result of GetRuntimeProfilingInfo (enum xnn_profile_info).
type ProfileInfo uint32

// Kinds of profiling information.
const (
	ProfileNumOperators   ProfileInfo = 0 // one uint
	ProfileOperatorName   ProfileInfo = 1 // names, each ended by a zero byte
	ProfileOperatorTiming ProfileInfo = 2 // one uint64 per name, microseconds
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

// Error returns the status as the error of the named call, nil for Success.
func (s Status) Error(call string) error {
	if s == Success {
		return nil
	}
	return &StatusError{Call: call, Status: s}
}

// StatusError is an unsuccessful status of a call.
type StatusError struct {
	Call   string // the C function
	Status Status
}

func (e *StatusError) Error() string { return e.Call + ": " + e.Status.String() }

func addressOf[T any](p *T) Address { return Address(unsafe.Pointer(p)) }
