//go:build linux && (amd64 || arm64)

package ethosu

import (
	"bytes"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/etrun-go/etrun/hal/ethosu/ethosutest"
	"github.com/etrun-go/etrun/hal/ethosu/isa"
	"github.com/etrun-go/etrun/hal/ethosu/npu"
)

// fakeArm is a kernel of Arm's driver stack with one device, whose firmware runs jobs on the
// software NPU.
type fakeArm struct {
	*fakeHardware
	config  isa.Config
	invoked bool // inferences are created once and invoked
	later   bool // requests are those of a later release

	fault func(request uint32) error
	run   func(inf *fakeInference, execute func(part float64))
	wake  bool // poll reports a false wakeup
	spoil func(request uint32, arg unsafe.Pointer)

	next  int
	files map[int]any
	calls map[uint32]int
}

type fakeArmBuffer struct {
	*fakeMemory
	used armRange
}

type fakeNetwork struct{ payload *fakeArmBuffer }

// fakeInference is one run, or an inference that is invoked for each run.
type fakeInference struct {
	counting  armCounting
	execute   func(part float64)
	status    uint32
	done      chan struct{}
	cancelled bool
}

func newFakeArm(t testing.TB, c isa.Config, invoked bool) *fakeArm {
	return &fakeArm{fakeHardware: newFakeHardware(t), config: c, invoked: invoked, files: map[int]any{}, calls: map[uint32]int{}}
}

const fakeArmNode = "/dev/ethosu0"

func (k *fakeArm) nodes(string) []string { return []string{fakeArmNode} }

func (k *fakeArm) add(file any) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.next++
	k.files[1<<20+k.next] = file
	return 1<<20 + k.next
}

func (k *fakeArm) file(fd int) any {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.files[fd]
}

func (k *fakeArm) open(string) (int, error) { return k.add("device"), nil }

func (k *fakeArm) close(fd int) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.files[fd] == nil {
		return syscall.EBADF
	}
	delete(k.files, fd)
	return nil
}

func (k *fakeArm) mmap(fd int, _ int64, size int) ([]byte, error) {
	return k.linux.mmap(k.file(fd).(*fakeArmBuffer).fd, 0, size)
}

func (k *fakeArm) remap(mem []byte, fd int, _ int64) error {
	return k.linux.remap(mem, k.file(fd).(*fakeArmBuffer).fd, 0)
}

func (k *fakeArm) poll(fd int, timeout time.Duration) (bool, error) {
	if k.fault != nil {
		if err := k.fault(0); err != nil {
			return false, err
		}
	}
	k.mu.Lock()
	done, wake := k.files[fd].(*fakeInference).done, k.wake
	k.wake = false
	k.mu.Unlock()
	if wake {
		return true, nil
	}
	select {
	case <-done:
		return true, nil
	case <-time.After(timeout):
		return false, nil
	}
}

func (k *fakeArm) ioctl(fd int, request uint32, arg unsafe.Pointer) (int, error) {
	k.mu.Lock()
	k.calls[request]++
	k.mu.Unlock()
	if k.fault != nil {
		if err := k.fault(request); err != nil {
			return -1, err
		}
	}
	n, err := k.serve(fd, request, arg)
	if err == nil && k.spoil != nil {
		k.spoil(request, arg)
	}
	return n, err
}

func (k *fakeArm) serve(fd int, request uint32, arg unsafe.Pointer) (int, error) {
	switch f := k.file(fd).(type) {
	case string:
		return k.device(request, arg)
	case *fakeArmBuffer:
		return f.ioctl(request, arg)
	case *fakeNetwork:
		return k.network(f, request, arg)
	case *fakeInference:
		return k.inference(f, request, arg)
	}
	return -1, syscall.EBADF
}

func (k *fakeArm) device(request uint32, arg unsafe.Pointer) (int, error) {
	switch {
	case request == armPingCall:
		return 0, nil
	case k.later:
		return -1, syscall.ENOTTY
	case request == armCapabilitiesCall:
		id := map[isa.Family][2]uint32{isa.U55: {1, 4}, isa.U65: {1, 6}, isa.U85: {2, 7}}[k.config.Family]
		*(*armCapabilities)(arg) = armCapabilities{archMajor: id[0], productMajor: id[1], macs: k.config.Word & 15,
			streamVersion: uint32(k.config.Version), driverMajor: 0, driverMinor: 16}
		return 0, nil
	case request == armBufferCall:
		n := (*armCapacity)(arg).bytes
		return k.add(&fakeArmBuffer{fakeMemory: newFakeMemory(k.t, k.fakeHardware, int64(n))}), nil
	case request == armNetworkCall:
		s := (*armSource)(arg)
		b, ok := k.file(int(s.fd)).(*fakeArmBuffer)
		if s.kind != armFromBuffer || !ok {
			return -1, syscall.EINVAL
		}
		return k.add(&fakeNetwork{b}), nil
	}
	return -1, syscall.EINVAL
}

func (b *fakeArmBuffer) ioctl(request uint32, arg unsafe.Pointer) (int, error) {
	r := (*armRange)(arg)
	switch request {
	case armRangeSetCall:
		if int(r.offset)+int(r.size) > len(b.mem) {
			return -1, syscall.EINVAL
		}
		b.used = *r
	case armRangeGetCall:
		*r = b.used
	default:
		return -1, syscall.EINVAL
	}
	return 0, nil
}

func (k *fakeArm) network(n *fakeNetwork, request uint32, arg unsafe.Pointer) (int, error) {
	switch {
	case request == armStartCall && !k.invoked:
		c := (*armInference)(arg)
		if c.kind != armOperator || c.inputs.count < 2 {
			return -1, syscall.EINVAL
		}
		c2 := c.inputs
		c2.count--
		copy(c2.fds[1:], c.inputs.fds[2:]) // without the table of sizes
		inf, err := k.newInference(n, &c2, &c.counting)
		if err != nil {
			return -1, err
		}
		k.begin(inf)
		return k.add(inf), nil
	case request == armPrepareCall && k.invoked:
		c := (*armPlaced)(arg)
		if c.kind != armOperator || c.ins.count > armMaxBuffers || c.outs.count > armMaxBuffers {
			return -1, syscall.EINVAL
		}
		inf, err := k.newInference(n, &c.inputs, &c.counting)
		if err != nil {
			return -1, err
		}
		return k.add(inf), nil
	}
	return -1, syscall.EINVAL
}

// newInference parses what the firmware's operator gets: payload, arena, constants.
func (k *fakeArm) newInference(n *fakeNetwork, f *armFiles, counting *armCounting) (*fakeInference, error) {
	var mem npu.Memory
	for i := range int(f.count) {
		b, ok := k.file(int(f.fds[i])).(*fakeArmBuffer)
		if !ok || i > 1 {
			return nil, syscall.EINVAL
		}
		mem[1-i] = b.mem[:b.used.size]
	}
	p, err := isa.ParsePayload(n.payload.mem[:n.payload.used.size])
	if err != nil {
		return nil, syscall.EINVAL
	}
	mem[2] = make([]byte, armFastMemory)
	return &fakeInference{counting: *counting, status: armError, execute: func(part float64) {
		if err := ethosutest.Execute(p.Config, bytes.Clone(p.Stream), &mem, part); err != nil {
			k.t.Errorf("the NPU: %v", err)
		}
	}}, nil
}

func (k *fakeArm) begin(inf *fakeInference) {
	run := k.run
	if run == nil {
		run = func(inf *fakeInference, execute func(part float64)) {
			execute(1)
			k.finish(inf, armOK)
		}
	}
	k.mu.Lock()
	inf.status, inf.done = armRunning, make(chan struct{})
	k.mu.Unlock()
	k.runs.Go(func() { run(inf, inf.execute) })
}

func (k *fakeArm) finish(inf *fakeInference, status uint32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	inf.status = status
	close(inf.done)
}

func (k *fakeArm) inference(inf *fakeInference, request uint32, arg unsafe.Pointer) (int, error) {
	switch {
	case request == armStatusCall:
		k.mu.Lock()
		defer k.mu.Unlock()
		*(*armStatus)(arg) = armStatus{status: inf.status, counting: inf.counting, events: [armMaxEvents]uint32{11, 12, 13, 14}, cycles: 1 << 33}
		return 0, nil
	case request == armCancelCall:
		k.mu.Lock()
		defer k.mu.Unlock()
		inf.cancelled = true
		return 0, nil
	case request == armInvokeCall && k.invoked:
		k.begin(inf)
		return 0, nil
	}
	return -1, syscall.EINVAL
}
