package ethosu

import "unsafe"

// The interface of Arm's driver stack with a Cortex-M between Linux and the NPU
// (kernel_driver/include/uapi/ethosu.h of releases 22.08 to 23.x, and of NXP's kernels,
// which added inferences of single operators). Requests that create something return
// a file descriptor.

const (
	armNodes  = "/dev/ethosu*"
	armPrefix = "/dev/ethosu"
	armKind   = 1

	armMaxBuffers = 16 // ETHOSU_FD_MAX
	armMaxEvents  = 4  // ETHOSU_PMU_EVENT_MAX
)

// Requests. Directions are those of the header, whichever way the data goes.
var (
	armPingCall         = ioctlNumber(0, armKind, 0x00, 0)
	armCapabilitiesCall = ioctlNumber(ioctlRead, armKind, 0x02, unsafe.Sizeof(armCapabilities{}))
	armBufferCall       = ioctlNumber(ioctlRead, armKind, 0x10, unsafe.Sizeof(armCapacity{}))
	armRangeSetCall     = ioctlNumber(ioctlRead, armKind, 0x11, unsafe.Sizeof(armRange{}))
	armRangeGetCall     = ioctlNumber(ioctlWrite, armKind, 0x12, unsafe.Sizeof(armRange{}))
	armNetworkCall      = ioctlNumber(ioctlRead, armKind, 0x20, unsafe.Sizeof(armSource{}))
	armStartCall        = ioctlNumber(ioctlRead, armKind, 0x30, unsafe.Sizeof(armInference{}))
	armPrepareCall      = ioctlNumber(ioctlRead, armKind, 0x30, unsafe.Sizeof(armPlaced{}))
	armStatusCall       = ioctlNumber(ioctlRead, armKind, 0x31, unsafe.Sizeof(armStatus{}))
	armCancelCall       = ioctlNumber(ioctlRead, armKind, 0x32, unsafe.Sizeof(armCancelled{}))
	armInvokeCall       = ioctlNumber(ioctlRead, armKind, 0x33, unsafe.Sizeof(armStatus{}))
)

// armCapabilities is struct ethosu_uapi_device_capabilities.
type armCapabilities struct {
	versionStatus, versionMinor, versionMajor uint32
	productMajor                              uint32
	archPatch, archMinor, archMajor           uint32
	macs                                      uint32 // as a power of two
	streamVersion                             uint32
	customDMA                                 uint32
	driverPatch, driverMinor, driverMajor     uint32
}

// armCapacity is struct ethosu_uapi_buffer_create.
type armCapacity struct{ bytes uint32 }

// armRange is struct ethosu_uapi_buffer: the used part of a buffer.
type armRange struct{ offset, size uint32 }

// armSource is struct ethosu_uapi_network_create.
type armSource struct {
	kind uint32
	fd   uint32 // of a buffer with the driver payload
}

const armFromBuffer = 1 // ETHOSU_UAPI_NETWORK_BUFFER

// armFiles is a list of file descriptors of buffers, with its length.
type armFiles struct {
	count uint32
	fds   [armMaxBuffers]uint32
}

// armCounting is struct ethosu_uapi_pmu_config.
type armCounting struct {
	events [armMaxEvents]uint32 // 0 for none
	cycles uint32
}

// armOperator runs a driver payload; the other kind of inference runs TFLite models.
const armOperator = 1 // ETHOSU_UAPI_INFERENCE_OP

// armInference is struct ethosu_uapi_inference_create up to NXP's 6.6.3: creating the inference
// starts it.
type armInference struct {
	inputs   armFiles
	outputs  armFiles
	kind     uint32
	counting armCounting
}

// armTensors is the locations of tensors in an arena.
type armTensors struct {
	count   uint32
	offsets [armMaxBuffers]uint32
	sizes   [armMaxBuffers]uint32
}

// armPlaced is struct ethosu_uapi_inference_create of later kernels, with a struct
// ethosu_uapi_memory_layout: an inference is created once and started any number of times.
type armPlaced struct {
	inputs          armFiles
	outputs         armFiles
	constantsOffset uint32
	arenaOffset     uint32
	ins, outs       armTensors
	kind            uint32
	counting        armCounting
}

// armStatus is struct ethosu_uapi_result_status.
type armStatus struct {
	status   uint32
	counting armCounting
	events   [armMaxEvents]uint32
	cycles   uint64
}

// armCancelled is struct ethosu_uapi_cancel_inference_status.
type armCancelled struct{ status uint32 }

// Values of status.
const (
	armOK = iota
	armError
	armRunning
	armRejected
	armAborted
	armAborting
)

var armStatusNames = [...]string{"ok", "error", "running", "rejected", "aborted", "aborting"}
