package ethosu

import (
	"unsafe"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// The interface of Linux's accel driver "ethosu" (include/uapi/drm/ethosu_accel.h), and what all
// DRM drivers share (include/uapi/drm/drm.h). Pointers are 64 bits in the kernel's structures, so
// this driver requires a 64-bit machine.

const (
	drmNodes  = "/dev/accel/accel*"
	drmPrefix = "/dev/accel/"
	drmName   = "ethosu" // of the kernel's driver
	drmKind   = 'd'
	drmBase   = 0x40 // of the driver's own requests
)

// Requests.
var (
	drmVersionCall   = ioctlNumber(ioctlRead|ioctlWrite, drmKind, 0, unsafe.Sizeof(drmVersion{}))
	drmCloseCall     = ioctlNumber(ioctlWrite, drmKind, 9, unsafe.Sizeof(drmClose{}))
	drmQueryCall     = drmNumber(0, unsafe.Sizeof(drmQuery{}))
	drmCreateCall    = drmNumber(1, unsafe.Sizeof(drmCreate{}))
	drmWaitCall      = drmNumber(2, unsafe.Sizeof(drmWait{}))
	drmOffsetCall    = drmNumber(3, unsafe.Sizeof(drmOffset{}))
	drmStreamCall    = drmNumber(4, unsafe.Sizeof(drmStream{}))
	drmSubmitCall    = drmNumber(5, unsafe.Sizeof(drmSubmit{}))
	drmMonitorCall   = drmNumber(6, unsafe.Sizeof(drmMonitor{}))
	drmUnmonitorCall = drmNumber(7, unsafe.Sizeof(drmUnmonitor{}))
	drmValuesCall    = drmNumber(8, unsafe.Sizeof(drmValues{}))
)

func drmNumber(n, size uintptr) uint32 {
	return ioctlNumber(ioctlRead|ioctlWrite, drmKind, drmBase+n, size)
}

// drmVersion is struct drm_version (DRM_IOCTL_VERSION).
type drmVersion struct {
	major, minor, patch int32
	_                   int32
	nameLen             uint64
	name                unsafe.Pointer
	dateLen             uint64
	date                unsafe.Pointer
	descLen             uint64
	desc                unsafe.Pointer
}

// drmClose is struct drm_gem_close (DRM_IOCTL_GEM_CLOSE).
type drmClose struct {
	handle uint32
	_      uint32
}

// drmQuery is struct drm_ethosu_dev_query (DEV_QUERY).
type drmQuery struct {
	kind    uint32 // 0 asks for drmInfo
	size    uint32
	pointer unsafe.Pointer
}

// drmInfo is struct drm_ethosu_npu_info. Kernels without counters do not have the last field and
// leave it 0.
type drmInfo struct {
	id       uint32 // register ID
	config   uint32 // register CONFIG
	sram     uint32 // bytes
	counters uint32 // of PMU events
}

// drmCreate is struct drm_ethosu_bo_create (BO_CREATE).
type drmCreate struct {
	size   uint64 // rounded up to pages by the kernel
	flags  uint32
	handle uint32
}

// drmWait is struct drm_ethosu_bo_wait (BO_WAIT).
type drmWait struct {
	handle  uint32
	_       uint32
	timeout int64 // a time of the monotonic clock, ns
}

// drmOffset is struct drm_ethosu_bo_mmap_offset (BO_MMAP_OFFSET).
type drmOffset struct {
	handle uint32
	_      uint32
	offset uint64
}

// drmStream is struct drm_ethosu_cmdstream_bo_create (CMDSTREAM_BO_CREATE).
type drmStream struct {
	size   uint32
	flags  uint32
	data   unsafe.Pointer
	handle uint32
	_      uint32
}

// drmTask is struct drm_ethosu_job. Handle 0 is no buffer.
type drmTask struct {
	stream  uint32
	sram    uint32 // bytes of device memory for region 2, instead of a buffer
	regions [isa.NumRegions]uint32
}

// drmSubmit is struct drm_ethosu_submit (SUBMIT).
type drmSubmit struct {
	jobs    unsafe.Pointer // *drmTask
	count   uint32
	monitor uint32 // 0 for none, as kernels without counters require
}

// Counters of a drmMonitor.
const (
	drmMaxEvents = 8
	drmMaxValues = drmMaxEvents + 1 // the last one counts cycles
)

// drmMonitor is struct drm_ethosu_perfmon_create (PERFMON_CREATE).
type drmMonitor struct {
	id     uint32
	count  uint32 // events, made the number of values by the kernel
	events [drmMaxEvents]uint16
}

// drmUnmonitor is struct drm_ethosu_perfmon_destroy (PERFMON_DESTROY).
type drmUnmonitor struct {
	id uint32
	_  uint32
}

// drmValues is struct drm_ethosu_perfmon_get_values (PERFMON_GET_VALUES).
type drmValues struct {
	id     uint32
	_      uint32
	values unsafe.Pointer // *[drmMaxValues]uint64
}
