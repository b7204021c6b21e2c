package ethosu

import "errors"

// Reasons of a DeviceError; match with errors.Is.
var (
	ErrMissing     = errors.New("no such device")        // no device found
	ErrUnsupported = errors.New("not for this device")   // another configuration, or not supported by the driver
	ErrProgram     = errors.New("bad program")           // the program violates the format
	ErrFault       = errors.New("device fault")          // the device stopped or rejected the run
	ErrTimeout     = errors.New("device timeout")        // not finished within JobOptions.Timeout
	ErrInterrupted = errors.New("wait for device ended") // the caller's context ended
	ErrClosed      = errors.New("device closed")
)

// DeviceError is a failure of an operation on a device.
type DeviceError struct {
	Device string // driver and path: "drm /dev/accel/accel0", "npu"
	Op     string // "open", "load", "allocate", "submit", "wait"
	Reason error  // one of the above
	Status uint32 // the device's own status or errno, 0 if there is none
	Err    error  // the details, may be nil
}

func (e *DeviceError) Error() string {
	s := e.Device + ": " + e.Op + ": " + e.Reason.Error()
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the reason and the details.
func (e *DeviceError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.Err}
}
