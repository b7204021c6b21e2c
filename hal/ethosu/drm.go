package ethosu

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"unsafe"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
	"github.com/etrun-go/etrun/internal/pack"
)

// drmDriver is for Linux's accel driver of the U65 and U85.
func drmDriver(k kernel) *Driver {
	return &Driver{
		Name:   "drm",
		Doc:    "Linux accel driver (U65, U85)",
		Auto:   true,
		Probe:  func() Outcome { return probeDRM(k) },
		Open:   func(path string) (Device, error) { return openDRM(k, path) },
		Claims: func(path string) bool { return strings.HasPrefix(path, drmPrefix) },
	}
}

// errOtherDriver is the probe result for an accelerator of another kind.
var errOtherDriver = errors.New("another driver's device")

func probeDRM(k kernel) Outcome {
	nodes := k.nodes(drmNodes)
	if len(nodes) == 0 {
		return Outcome{State: Skipped, Reason: "no " + drmNodes}
	}
	var found, failed, others []string
	var paths []string
	for _, path := range nodes {
		switch d, err := openDRM(k, path); {
		case err == nil:
			found = append(found, fmt.Sprintf("%s is %v, %d KiB SRAM", path, d.info.Config, d.info.SRAM>>10))
			paths = append(paths, path)
			d.Close()
		case errors.Is(err, errOtherDriver):
			others = append(others, path)
		default:
			failed = append(failed, err.Error())
		}
	}
	switch {
	case paths != nil:
		return Outcome{State: Loaded, Reason: strings.Join(found, "; "), Paths: paths}
	case failed != nil:
		return Outcome{State: Failed, Reason: strings.Join(failed, "; ")}
	}
	return Outcome{State: Skipped, Reason: "other drivers' devices: " + strings.Join(others, ", ")}
}

// drmDevice is an open device node.
type drmDevice struct {
	node
	counters int // of PMU events
}

func openDRM(k kernel, path string) (*drmDevice, error) {
	n, err := openNode(k, "drm", path, probeDRM)
	if err != nil {
		return nil, err
	}
	d := &drmDevice{node: n}
	if err := d.identify(); err != nil {
		k.close(d.fd)
		return nil, err
	}
	return d, nil
}

func (d *drmDevice) call(number uint32, arg unsafe.Pointer) error {
	_, err := request(d.k, d.fd, number, arg)
	return err
}

// identify queries the driver and the NPU.
func (d *drmDevice) identify() error {
	var name [64]byte
	v := &drmVersion{nameLen: uint64(len(name)), name: unsafe.Pointer(&name)}
	if err := d.call(drmVersionCall, unsafe.Pointer(v)); err != nil {
		return d.error("open", "VERSION", err)
	}
	if got := string(name[:min(v.nameLen, uint64(len(name)))]); got != drmName {
		return d.unsupported("open", "%w: %q", errOtherDriver, got)
	}
	info := &drmInfo{}
	q := &drmQuery{size: uint32(unsafe.Sizeof(*info)), pointer: unsafe.Pointer(info)}
	if err := d.call(drmQueryCall, unsafe.Pointer(q)); err != nil {
		return d.error("open", "DEV_QUERY", err)
	}
	c, err := isa.ParseConfig(info.config, info.id)
	if err != nil {
		return &DeviceError{Device: d.name, Op: "open", Reason: ErrUnsupported, Status: info.config, Err: err}
	}
	d.counters = min(int(info.counters), drmMaxEvents)
	d.info.Config, d.info.SRAM = c, int64(info.sram)
	return nil
}

// drmBuffer is a buffer object of the kernel, mapped if the CPU uses it.
type drmBuffer struct {
	handle uint32
	mem    []byte
}

// create allocates a buffer. The kernel clears it.
func (d *drmDevice) create(size int64) (uint32, error) {
	c := &drmCreate{size: uint64(size)}
	if err := d.call(drmCreateCall, unsafe.Pointer(c)); err != nil {
		return 0, d.error("allocate", fmt.Sprintf("BO_CREATE of %d bytes", size), err)
	}
	if c.handle == 0 || c.size < uint64(size) {
		d.release(c.handle)
		return 0, d.fault("allocate", "BO_CREATE: buffer %d of %d bytes, want %d", c.handle, c.size, size)
	}
	return c.handle, nil
}

func (d *drmDevice) release(handle uint32) {
	if handle != 0 {
		// This fails only for an invalid handle, which cannot be, or if the device is gone together
		// with its buffers.
		_ = d.call(drmCloseCall, unsafe.Pointer(&drmClose{handle: handle}))
	}
}

func (d *drmDevice) offset(handle uint32) (int64, error) {
	o := &drmOffset{handle: handle}
	if err := d.call(drmOffsetCall, unsafe.Pointer(o)); err != nil {
		return 0, d.error("allocate", "BO_MMAP_OFFSET", err)
	}
	return int64(o.offset), nil
}

// allocate creates a buffer of at least capacity bytes and maps the first size of them.
func (d *drmDevice) allocate(size, capacity int64) (b drmBuffer, err error) {
	if b.handle, err = d.create(max(size, capacity, 1)); err != nil {
		return b, err
	}
	at, err := d.offset(b.handle)
	if err == nil {
		if b.mem, err = d.k.mmap(d.fd, at, int(max(size, 1))); err != nil {
			err = d.error("allocate", "mmap", err)
		}
	}
	if err != nil {
		d.release(b.handle)
		return drmBuffer{}, err
	}
	return b, nil
}

// renew replaces the memory of a mapping; runs that have not ended keep the old memory.
func (d *drmDevice) renew(b *drmBuffer, capacity int64) error {
	handle, err := d.create(max(int64(len(b.mem)), capacity))
	if err != nil {
		return err
	}
	at, err := d.offset(handle)
	if err == nil {
		if err = d.k.remap(b.mem, d.fd, at); err != nil {
			err = d.error("allocate", "mmap", err)
		}
	}
	if err != nil {
		d.release(handle)
		return err
	}
	d.release(b.handle)
	b.handle = handle
	return nil
}

func (d *drmDevice) free(b *drmBuffer) {
	if b.mem != nil {
		_ = d.k.munmap(b.mem) // fails only for addresses that are not mapped
	}
	d.release(b.handle)
	*b = drmBuffer{}
}

// markerRegion is the region of the marker: scratch, after its last byte.
const markerRegion = 1

// drmNetwork is a stream and its constants on the device.
type drmNetwork struct {
	device    *drmDevice
	program   *Program
	used      [isa.NumRegions]bool
	stream    uint32
	constants drmBuffer
	region    int   // of the constants
	sram      int64 // bytes of the device's memory for region 2
	factor    int64 // ratio of buffer size to region size that the kernel's check requires
	marker    int64 // offset in markerRegion
}

// Load also lets the kernel check the stream.
func (d *drmDevice) Load(p *Program) (Network, error) {
	if err := d.info.Config.Runs(p.Config); err != nil {
		return nil, d.unsupported("load", "%w", err)
	}
	n := &drmNetwork{device: d, program: p, factor: 1}
	if upscales(p) {
		n.factor = 4 // the kernel's check assumes the size of an IFM after upscaling
	}
	for i, size := range p.Stream.Footprint() {
		n.used[i] = size > 0
	}
	n.used[markerRegion] = true
	n.marker = pack.Align(p.Regions[markerRegion].Size, markerBytes)
	stream, err := withMarker(p.Config.Family, p.Commands, markerRegion, n.marker)
	if err != nil {
		return nil, &DeviceError{Device: d.name, Op: "load", Reason: ErrProgram, Err: err}
	}
	if err := n.load(stream); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// upscales reports whether a stream upscales an IFM.
func upscales(p *Program) bool {
	var s isa.Step
	for r := isa.NewReader(p.Config.Family, p.Commands); ; {
		if ok, err := r.Next(&s); !ok || err != nil {
			return false
		}
		if s.Code == isa.IFMUpscale && s.Param != 0 {
			return true
		}
	}
}

func (n *drmNetwork) load(stream []byte) error {
	d := n.device
	for i := range n.used {
		r := &n.program.Regions[i]
		switch {
		case !n.used[i]:
		case r.Kind == isa.Fast && r.Size <= d.info.SRAM:
			n.sram, n.used[i] = r.Size, false
		case r.Kind == isa.Constants && n.constants.handle != 0:
			return d.unsupported("load", "two regions of constants")
		case r.Kind == isa.Constants:
			b, err := d.allocate(r.Size, r.Size)
			if err != nil {
				return err
			}
			copy(b.mem, r.Data)
			n.constants, n.region = b, i
		}
	}
	c := &drmStream{size: uint32(len(stream)), data: unsafe.Pointer(unsafe.SliceData(stream))}
	err := d.call(drmStreamCall, unsafe.Pointer(c))
	switch {
	case errors.Is(err, syscall.EINVAL):
		return &DeviceError{Device: d.name, Op: "load", Reason: ErrUnsupported, Status: uint32(syscall.EINVAL),
			Err: &callError{"the kernel refuses the command stream (CMDSTREAM_BO_CREATE)", err}}
	case err != nil:
		return d.error("load", "CMDSTREAM_BO_CREATE", err)
	}
	if n.stream = c.handle; n.stream == 0 {
		return d.fault("load", "CMDSTREAM_BO_CREATE: no buffer")
	}
	return nil
}

func (n *drmNetwork) Close() error {
	n.device.release(n.stream)
	n.device.free(&n.constants)
	n.stream = 0
	return nil
}
