//go:build linux && (amd64 || arm64)

package ethosu

import (
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/etrun-go/etrun/hal/ethosu/ethosutest"
	"github.com/etrun-go/etrun/hal/ethosu/isa"
	"github.com/etrun-go/etrun/hal/ethosu/npu"
)

// fakeMemory is device memory: a file in memory, so that mappings of it are real.
type fakeMemory struct {
	fd  int
	mem []byte // the device's mapping
}

func newFakeMemory(t testing.TB, h *fakeHardware, size int64) *fakeMemory {
	fd, err := unix.MemfdCreate("fake", unix.MFD_CLOEXEC)
	if err == nil {
		err = unix.Ftruncate(fd, size)
	}
	var mem []byte
	if err == nil {
		mem, err = unix.Mmap(fd, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		t.Fatal(err)
	}
	m := &fakeMemory{fd, mem}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.memory = append(h.memory, m)
	return m
}

// fakeHardware is the part of a fake kernel that runs jobs. Other calls go to the real kernel.
type fakeHardware struct {
	linux
	t      testing.TB
	runs   sync.WaitGroup
	end    chan struct{} // closed when the test ends, for runs that hang
	mu     sync.Mutex
	memory []*fakeMemory
}

// newFakeHardware sets up hardware for a test. Its memory remains until all runs have ended.
func newFakeHardware(t testing.TB) *fakeHardware {
	h := &fakeHardware{t: t, end: make(chan struct{})}
	t.Cleanup(func() {
		close(h.end)
		h.runs.Wait()
		for _, m := range h.memory {
			unix.Munmap(m.mem)
			unix.Close(m.fd)
		}
	})
	return h
}

// fakeDRM is a kernel with one device of the driver "ethosu". It is as strict as the
// driver, and runs jobs on the software NPU.
type fakeDRM struct {
	*fakeHardware
	name     string
	config   isa.Config
	sram     uint32
	counters uint32
	openErr  error

	// fault returns an error to answer a request with, or nil.
	fault func(request uint32) error
	// run controls the outcome of a job; nil means success.
	run func(fence chan struct{}, execute func(part float64))
	// shorten corrupts answers.
	shorten func(request uint32, arg unsafe.Pointer)

	files   int
	next    uint32
	buffers map[uint32]*fakeBuffer
	npu     sync.Mutex // one job at a time
	sramMem []byte
	monitor map[uint32]*[drmMaxValues]uint64
	calls   map[uint32]int
}

type fakeBuffer struct {
	*fakeMemory
	stream []byte // of a command stream
	size   [isa.NumRegions]int64
	fence  chan struct{} // of the last job that writes it
}

func newFakeDRM(t testing.TB, c isa.Config) *fakeDRM {
	return &fakeDRM{fakeHardware: newFakeHardware(t), name: drmName, config: c, sram: 384 << 10, sramMem: make([]byte, 384<<10),
		buffers: map[uint32]*fakeBuffer{}, monitor: map[uint32]*[drmMaxValues]uint64{}, calls: map[uint32]int{}}
}

// hang is a run that ends with the test.
func (h *fakeHardware) hang(fence chan struct{}, _ func(part float64)) {
	<-h.end
	close(fence)
}

const fakeNode = "/dev/accel/accel0"

func (k *fakeDRM) nodes(string) []string { return []string{fakeNode} }

func (k *fakeDRM) open(path string) (int, error) {
	if k.openErr != nil {
		return -1, k.openErr
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.files++
	return 1 << 20, nil
}

func (k *fakeDRM) close(int) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.files--
	return nil
}

// mmap maps buffer n at offset n<<32.
func (k *fakeDRM) mmap(_ int, offset int64, size int) ([]byte, error) {
	b := k.buffer(uint32(offset >> 32))
	if b == nil || size > len(b.mem) {
		return nil, syscall.EINVAL
	}
	return k.linux.mmap(b.fd, 0, size)
}

func (k *fakeDRM) remap(mem []byte, _ int, offset int64) error {
	return k.linux.remap(mem, k.buffer(uint32(offset>>32)).fd, 0)
}

func (k *fakeDRM) buffer(handle uint32) *fakeBuffer {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.buffers[handle]
}

func (k *fakeDRM) add(b *fakeBuffer) uint32 {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.next++
	k.buffers[k.next] = b
	return k.next
}

func (k *fakeDRM) ioctl(_ int, request uint32, arg unsafe.Pointer) (int, error) {
	k.mu.Lock()
	k.calls[request]++
	k.mu.Unlock()
	if k.fault != nil {
		if err := k.fault(request); err != nil {
			return -1, err
		}
	}
	serve, ok := fakeDRMCalls[request]
	if !ok {
		return -1, syscall.ENOTTY
	}
	if err := serve(k, arg); err != nil {
		return -1, err
	}
	if k.shorten != nil {
		k.shorten(request, arg)
	}
	return 0, nil
}

var fakeDRMCalls = map[uint32]func(*fakeDRM, unsafe.Pointer) error{
	drmVersionCall: (*fakeDRM).version, drmCloseCall: (*fakeDRM).release, drmQueryCall: (*fakeDRM).query,
	drmCreateCall: (*fakeDRM).create, drmWaitCall: (*fakeDRM).wait, drmOffsetCall: (*fakeDRM).offset,
	drmStreamCall: (*fakeDRM).command, drmSubmitCall: (*fakeDRM).submit, drmMonitorCall: (*fakeDRM).perfmon,
	drmUnmonitorCall: (*fakeDRM).unperfmon, drmValuesCall: (*fakeDRM).values,
}

func (k *fakeDRM) version(arg unsafe.Pointer) error {
	v := (*drmVersion)(arg)
	copy(unsafe.Slice((*byte)(v.name), v.nameLen), k.name)
	v.major, v.nameLen = 1, uint64(len(k.name))
	return nil
}

func (k *fakeDRM) query(arg unsafe.Pointer) error {
	q := (*drmQuery)(arg)
	if q.kind != 0 || q.size < 12 {
		return syscall.EINVAL
	}
	*(*drmInfo)(q.pointer) = drmInfo{k.config.Arch, k.config.Word, k.sram, k.counters}
	return nil
}

func (k *fakeDRM) create(arg unsafe.Pointer) error {
	c := (*drmCreate)(arg)
	if c.size == 0 || c.flags > 1 {
		return syscall.EINVAL
	}
	c.size = (c.size + 4095) &^ 4095
	c.handle = k.add(&fakeBuffer{fakeMemory: newFakeMemory(k.t, k.fakeHardware, int64(c.size))})
	return nil
}

func (k *fakeDRM) release(arg unsafe.Pointer) error {
	h := (*drmClose)(arg).handle
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.buffers[h] == nil {
		return syscall.EINVAL
	}
	delete(k.buffers, h)
	return nil
}

func (k *fakeDRM) offset(arg unsafe.Pointer) error {
	o := (*drmOffset)(arg)
	if k.buffer(o.handle) == nil {
		return syscall.ENOENT
	}
	o.offset = uint64(o.handle) << 32
	return nil
}

// command checks a stream: its commands, and that STOP is the last.
func (k *fakeDRM) command(arg unsafe.Pointer) error {
	c := (*drmStream)(arg)
	if c.size == 0 || c.flags != 0 {
		return syscall.EINVAL
	}
	b := &fakeBuffer{stream: slices.Clone(unsafe.Slice((*byte)(c.data), c.size))}
	p, err := npu.Decode(k.config, b.stream)
	body, e := isa.BeforeStop(k.config.Family, b.stream)
	if err != nil || e != nil || len(body)+4 != len(b.stream) {
		return syscall.EINVAL
	}
	b.size = p.Footprint()
	c.handle = k.add(b)
	return nil
}

func (k *fakeDRM) submit(arg unsafe.Pointer) error {
	s := (*drmSubmit)(arg)
	for _, task := range unsafe.Slice((*drmTask)(s.jobs), s.count) {
		if err := k.start(&task, s.monitor); err != nil {
			return err
		}
	}
	return nil
}

// start checks the rules of a job, then runs it in the background.
func (k *fakeDRM) start(task *drmTask, monitor uint32) error {
	cmd := k.buffer(task.stream)
	if cmd == nil {
		return syscall.ENOENT
	}
	if cmd.stream == nil || task.sram > 0 && (task.regions[2] != 0 || task.sram > k.sram) {
		return syscall.EINVAL
	}
	var mem npu.Memory
	var used []*fakeBuffer
	for i, h := range task.regions {
		switch b := k.buffer(h); {
		case h == 0 && i == 2 && task.sram > 0:
			mem[i] = k.sramMem[:task.sram]
		case h == 0 && cmd.size[i] == 0:
		case cmd.size[i] == 0:
			return syscall.EINVAL
		case b == nil:
			return syscall.ENOENT
		case b.stream != nil:
			return syscall.EINVAL
		case cmd.size[i] > int64(len(b.mem)):
			return syscall.EOVERFLOW
		default:
			mem[i], used = b.mem, append(used, b)
		}
	}
	k.begin(cmd.stream, &mem, used, monitor)
	return nil
}

func (k *fakeDRM) begin(stream []byte, mem *npu.Memory, used []*fakeBuffer, monitor uint32) {
	fence := make(chan struct{})
	k.mu.Lock()
	for _, b := range used {
		b.fence = fence
	}
	values := k.monitor[monitor]
	k.mu.Unlock()
	execute := func(part float64) {
		k.npu.Lock()
		defer k.npu.Unlock()
		if err := ethosutest.Execute(k.config, stream, mem, part); err != nil {
			k.t.Errorf("the NPU: %v", err)
		}
		if values != nil {
			for i := range values {
				values[i] += uint64(1000 * (i + 1))
			}
		}
	}
	run := k.run
	if run == nil {
		run = func(fence chan struct{}, execute func(part float64)) { execute(1); close(fence) }
	}
	k.runs.Go(func() { run(fence, execute) })
}

func (k *fakeDRM) wait(arg unsafe.Pointer) error {
	w := (*drmWait)(arg)
	k.mu.Lock()
	b := k.buffers[w.handle]
	var fence chan struct{}
	if b != nil {
		fence = b.fence
	}
	k.mu.Unlock()
	if b == nil {
		return syscall.EINVAL
	}
	if fence == nil {
		return nil
	}
	select {
	case <-fence:
		return nil
	case <-time.After(time.Duration(w.timeout - k.monotonic())):
		return syscall.ETIME
	}
}

func (k *fakeDRM) perfmon(arg unsafe.Pointer) error {
	m := (*drmMonitor)(arg)
	if m.count > k.counters {
		return syscall.EINVAL
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	m.id = uint32(len(k.monitor) + 1)
	m.count++
	k.monitor[m.id] = new([drmMaxValues]uint64)
	return nil
}

func (k *fakeDRM) unperfmon(arg unsafe.Pointer) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.monitor, (*drmUnmonitor)(arg).id)
	return nil
}

func (k *fakeDRM) values(arg unsafe.Pointer) error {
	v := (*drmValues)(arg)
	k.mu.Lock()
	defer k.mu.Unlock()
	*(*[drmMaxValues]uint64)(v.values) = *k.monitor[v.id]
	return nil
}
