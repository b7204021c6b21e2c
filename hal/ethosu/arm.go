package ethosu

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// armDriver is for Arm's driver stack, where firmware on a Cortex-M runs the NPU (NXP i.MX 93).
func armDriver(k kernel) *Driver {
	return &Driver{
		Name:   "arm",
		Doc:    "Arm's Linux driver stack",
		Auto:   true,
		Probe:  func() Outcome { return probeArm(k) },
		Open:   func(path string) (Device, error) { return openArm(k, path) },
		Claims: func(path string) bool { return strings.HasPrefix(path, armPrefix) },
	}
}

func probeArm(k kernel) Outcome {
	nodes := k.nodes(armNodes)
	if len(nodes) == 0 {
		return Outcome{State: Skipped, Reason: "no " + armNodes}
	}
	out := Outcome{State: Failed}
	var found, failed []string
	for _, path := range nodes {
		d, err := openArm(k, path)
		if err != nil {
			failed = append(failed, err.Error())
			continue
		}
		found = append(found, fmt.Sprintf("%s is %v, firmware driver %s", path, d.info.Config, d.version))
		out.Paths = append(out.Paths, path)
		d.Close()
	}
	out.Reason = strings.Join(failed, "; ")
	if found != nil {
		out.State, out.Reason = Loaded, strings.Join(found, "; ")
	}
	return out
}

// armDevice is an open device node.
type armDevice struct {
	node
	version string
	// protocol is how inferences are started, determined by the first one.
	protocol atomic.Pointer[armProtocol]
}

func openArm(k kernel, path string) (*armDevice, error) {
	n, err := openNode(k, "arm", path, probeArm)
	if err != nil {
		return nil, err
	}
	d := &armDevice{node: n}
	if err := d.identify(); err != nil {
		k.close(d.fd)
		return nil, err
	}
	return d, nil
}

// unknownRequest reports whether the kernel does not support a request.
func unknownRequest(err error) bool {
	return errors.Is(err, syscall.ENOTTY) || errors.Is(err, syscall.EINVAL)
}

// identify queries the NPU.
func (d *armDevice) identify() error {
	c := &armCapabilities{}
	if _, err := request(d.k, d.fd, armCapabilitiesCall, unsafe.Pointer(c)); err != nil {
		if unknownRequest(err) {
			return d.other(err)
		}
		return d.error("open", "CAPABILITIES_REQ", err)
	}
	config, err := c.config()
	if err != nil {
		return d.unsupported("open", "%w", err)
	}
	d.version = fmt.Sprintf("%d.%d.%d", c.driverMajor, c.driverMinor, c.driverPatch)
	d.info.Config = config
	return nil
}

// other describes a device that answers differently than expected.
func (d *armDevice) other(err error) error {
	if _, ping := request(d.k, d.fd, armPingCall, nil); ping != nil {
		return d.error("open", "CAPABILITIES_REQ", err)
	}
	return d.unsupported("open", "a driver stack of 24.x or later (direct drive, or a subsystem with its interface), "+
		"whose structures are not known here; Linux's own accel driver drives the same NPUs: %w", err)
}

// config derives the family from the architecture, and for architecture 1 from the product: field
// PRODUCT_MAJOR of register ID.
func (c *armCapabilities) config() (isa.Config, error) {
	const productU55 = 4
	f := isa.U65
	switch {
	case c.archMajor == 2:
		f = isa.U85
	case c.archMajor != 1:
		return isa.Config{}, fmt.Errorf("product %d of architecture %d.%d", c.productMajor, c.archMajor, c.archMinor)
	case c.productMajor == productU55:
		f = isa.U55
	}
	id := c.archMajor<<28 | c.archMinor&255<<20 | c.archPatch&15<<16 | c.productMajor&15<<12 |
		c.versionMajor&15<<8 | c.versionMinor&15<<4 | c.versionStatus&15
	return isa.ParseConfig(uint32(f)<<28|c.streamVersion&15<<4|c.macs&15, id)
}

// armBuffer is a mapped kernel buffer.
type armBuffer struct {
	fd  int
	mem []byte
}

// file performs a request that returns a file descriptor.
func (d *armDevice) file(op, what string, fd int, number uint32, arg unsafe.Pointer) (int, error) {
	n, err := request(d.k, fd, number, arg)
	if err != nil {
		return -1, d.error(op, what, err)
	}
	return n, nil
}

// create creates a buffer, all of which is used.
func (d *armDevice) create(size int64) (int, error) {
	if size > math.MaxInt32 {
		return -1, d.unsupported("allocate", "a buffer of %d bytes", size)
	}
	fd, err := d.file("allocate", fmt.Sprintf("BUFFER_CREATE of %d bytes", size), d.fd, armBufferCall, unsafe.Pointer(&armCapacity{uint32(size)}))
	if err != nil {
		return -1, err
	}
	if _, err := request(d.k, fd, armRangeSetCall, unsafe.Pointer(&armRange{0, uint32(size)})); err != nil {
		d.k.close(fd)
		return -1, d.error("allocate", "BUFFER_SET", err)
	}
	return fd, nil
}

func (d *armDevice) allocate(size int64) (*armBuffer, error) {
	fd, err := d.create(max(size, 1))
	if err != nil {
		return nil, err
	}
	mem, err := d.k.mmap(fd, 0, int(max(size, 1)))
	if err != nil {
		d.k.close(fd)
		return nil, d.error("allocate", "mmap", err)
	}
	return &armBuffer{fd, mem}, nil
}

// load creates a buffer with contents b, nil if b is empty.
func (d *armDevice) load(b []byte) (*armBuffer, error) {
	if len(b) == 0 {
		return nil, nil
	}
	buf, err := d.allocate(int64(len(b)))
	if err != nil {
		return nil, err
	}
	copy(buf.mem, b)
	return buf, nil
}

// renew replaces the memory of a mapping; runs that have not ended keep the old memory.
func (d *armDevice) renew(b *armBuffer) error {
	fd, err := d.create(int64(len(b.mem)))
	if err != nil {
		return err
	}
	if err := d.k.remap(b.mem, fd, 0); err != nil {
		d.k.close(fd)
		return d.error("allocate", "mmap", err)
	}
	d.k.close(b.fd)
	b.fd = fd
	clear(b.mem)
	return nil
}

func (d *armDevice) free(b *armBuffer) {
	if b == nil || b.mem == nil {
		return
	}
	_ = d.k.munmap(b.mem) // fails only for addresses that are not mapped
	_ = d.k.close(b.fd)
	b.mem = nil
}

// armFastMemory is the memory that the firmware provides for region 2.
const armFastMemory = 384 << 10

// armNetwork is a driver payload and its constants on the device.
type armNetwork struct {
	device    *armDevice
	program   *Program
	fd        int
	payload   *armBuffer
	constants *armBuffer
}

// Load checks that the firmware supports the program: it provides memory for the constants, one
// arena, and fast scratch.
func (d *armDevice) Load(p *Program) (Network, error) {
	if err := d.info.Config.Runs(p.Config); err != nil {
		return nil, d.unsupported("load", "%w", err)
	}
	for i, size := range p.Stream.Footprint() {
		switch kind := p.Regions[i].Kind; {
		case size == 0, i == 0 && kind == isa.Constants, i == 1 && kind == isa.Scratch:
		case i == 2 && kind == isa.Fast && size <= armFastMemory:
		case i == 2 && kind == isa.Fast:
			return nil, d.unsupported("load", "fast scratch: got %d bytes, want at most %d", size, armFastMemory)
		default:
			return nil, d.unsupported("load", "region %d for %v: the program was compiled for direct drive", i, kind)
		}
	}
	n := &armNetwork{device: d, program: p, fd: -1}
	if err := n.load(); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

func (n *armNetwork) load() (err error) {
	d, p := n.device, n.program
	if n.payload, err = d.load(p.Payload); err != nil {
		return err
	}
	if p.Stream.Footprint()[0] > 0 {
		if n.constants, err = d.load(p.Regions[0].Data); err != nil {
			return err
		}
	}
	n.fd, err = d.file("load", "NETWORK_CREATE", d.fd, armNetworkCall, unsafe.Pointer(&armSource{armFromBuffer, uint32(n.payload.fd)}))
	return err
}

func (n *armNetwork) Close() error {
	if n.fd >= 0 {
		_ = n.device.k.close(n.fd) // the kernel releases it with the device at the latest
		n.fd = -1
	}
	n.device.free(n.payload)
	n.device.free(n.constants)
	return nil
}
