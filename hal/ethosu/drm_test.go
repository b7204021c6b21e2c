//go:build linux && (amd64 || arm64)

package ethosu

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/etrun-go/etrun/hal/ethosu/ethosutest"
	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// layout is a request and the bytes of its structure. Each field has a distinct value whose
// hexadecimal digits identify it.
type layout struct {
	name   string
	number uint32
	want   uint32 // from the kernel's header
	arg    unsafe.Pointer
	size   uintptr
	golden string
}

// at returns a pointer field that contains a number: an invalid address.
func at(n uintptr) unsafe.Pointer {
	n += 0x112233440000
	return *(*unsafe.Pointer)(unsafe.Pointer(&n))
}

func (l *layout) check(t *testing.T) {
	t.Helper()
	if l.number != l.want {
		t.Errorf("%s: request %#x, want %#x", l.name, l.number, l.want)
	}
	got := hex.EncodeToString(unsafe.Slice((*byte)(l.arg), l.size))
	if want := strings.ReplaceAll(l.golden, " ", ""); got != want {
		t.Errorf("%s: bytes\n got %s\nwant %s", l.name, got, want)
	}
}

func TestDRMLayouts(t *testing.T) {
	version := drmVersion{1, 2, 3, 0, 4, at(5), 6, at(7), 8, at(9)}
	gem := drmClose{handle: 0x01020304}
	query := drmQuery{1, 2, at(3)}
	info := drmInfo{0x10006003, 0x10003018, 0x60000, 4}
	create := drmCreate{0x1122334455667788, 1, 2}
	wait := drmWait{handle: 1, timeout: -2}
	offset := drmOffset{handle: 1, offset: 0x100000000}
	stream := drmStream{size: 1, flags: 2, data: at(3), handle: 4}
	task := drmTask{1, 2, [isa.NumRegions]uint32{3, 4, 5, 6, 7, 8, 9, 10}}
	submit := drmSubmit{at(1), 2, 3}
	monitor := drmMonitor{1, 2, [drmMaxEvents]uint16{3, 4, 5, 6, 7, 8, 9, 10}}
	unmonitor := drmUnmonitor{id: 1}
	values := drmValues{id: 1, values: at(2)}
	for _, l := range []layout{
		{"VERSION", drmVersionCall, 0xC0406400, unsafe.Pointer(&version), unsafe.Sizeof(version),
			"01000000 02000000 03000000 00000000 0400000000000000 0500443322110000 0600000000000000 0700443322110000 0800000000000000 0900443322110000"},
		{"GEM_CLOSE", drmCloseCall, 0x40086409, unsafe.Pointer(&gem), unsafe.Sizeof(gem), "04030201 00000000"},
		{"DEV_QUERY", drmQueryCall, 0xC0106440, unsafe.Pointer(&query), unsafe.Sizeof(query), "01000000 02000000 0300443322110000"},
		{"NPU_INFO", 0, 0, unsafe.Pointer(&info), unsafe.Sizeof(info), "03600010 18300010 00000600 04000000"},
		{"BO_CREATE", drmCreateCall, 0xC0106441, unsafe.Pointer(&create), unsafe.Sizeof(create), "8877665544332211 01000000 02000000"},
		{"BO_WAIT", drmWaitCall, 0xC0106442, unsafe.Pointer(&wait), unsafe.Sizeof(wait), "01000000 00000000 feffffffffffffff"},
		{"BO_MMAP_OFFSET", drmOffsetCall, 0xC0106443, unsafe.Pointer(&offset), unsafe.Sizeof(offset), "01000000 00000000 0000000001000000"},
		{"CMDSTREAM_BO_CREATE", drmStreamCall, 0xC0186444, unsafe.Pointer(&stream), unsafe.Sizeof(stream), "01000000 02000000 0300443322110000 04000000 00000000"},
		{"SUBMIT", drmSubmitCall, 0xC0106445, unsafe.Pointer(&submit), unsafe.Sizeof(submit), "0100443322110000 02000000 03000000"},
		{"job", 0, 0, unsafe.Pointer(&task), unsafe.Sizeof(task), "01000000 02000000 03000000 04000000 05000000 06000000 07000000 08000000 09000000 0a000000"},
		{"PERFMON_CREATE", drmMonitorCall, 0xC0186446, unsafe.Pointer(&monitor), unsafe.Sizeof(monitor), "01000000 02000000 0300 0400 0500 0600 0700 0800 0900 0a00"},
		{"PERFMON_DESTROY", drmUnmonitorCall, 0xC0086447, unsafe.Pointer(&unmonitor), unsafe.Sizeof(unmonitor), "01000000 00000000"},
		{"PERFMON_GET_VALUES", drmValuesCall, 0xC0106448, unsafe.Pointer(&values), unsafe.Sizeof(values), "01000000 00000000 0200443322110000"},
	} {
		l.check(t)
	}
}

// drmVectors returns calls that the driver's NPUs can run, and the required configuration of the
// device.
func drmVectors(t *testing.T) []*ethosutest.Vector {
	var out []*ethosutest.Vector
	for _, v := range append(ethosutest.Vectors(t, "u65*"), ethosutest.Vectors(t, "u85*")...) {
		if len(v.Payload()) < 8<<10 {
			out = append(out, v)
		}
	}
	return out
}

func TestDRMVectors(t *testing.T) {
	for _, v := range drmVectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			d := openFake(t, newFakeDRM(t, v.Call(t).Driver.Config))
			runVector(t, d, v)
		})
	}
}

func openFake(t testing.TB, k *fakeDRM) *drmDevice {
	t.Helper()
	d, err := openDRM(k, fakeNode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.Close()
		if len(k.buffers) > 0 || k.files != 0 || len(k.monitor) > 0 {
			t.Errorf("left open: %d buffers, %d files, %d counters", len(k.buffers), k.files, len(k.monitor))
		}
	})
	return d
}

// drmCase is a job of a real network on a fake device.
type drmCase struct {
	k      *fakeDRM
	vector *ethosutest.Vector
	p      *Program
	j      Job
}

func newDRMCase(t testing.TB, o JobOptions) *drmCase {
	t.Helper()
	c := &drmCase{vector: ethosutest.Find(t, "u65-256/digits_cnn/d0")}
	c.p = programOf(t, c.vector)
	c.k = newFakeDRM(t, c.p.Config)
	c.k.counters = 4
	d := openFake(t, c.k)
	n, err := d.Load(c.p)
	if err != nil {
		t.Fatal(err)
	}
	if c.j, err = n.NewJob(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.j.Close(); n.Close() })
	return c
}

// works runs the job and compares its outputs.
func (c *drmCase) works(t testing.TB) Result {
	t.Helper()
	feed(c.vector, c.p, c.j)
	r, err := c.j.Submit(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	check(t, c.vector, c.p, c.j)
	return r
}

// once returns an error for the first n requests with a number.
func once(number uint32, n int, err error) func(uint32) error {
	return func(request uint32) error {
		if request == number && n > 0 {
			n--
			return err
		}
		return nil
	}
}

// TestDRMFaults injects a fault into one run. The run must fail with an error, and the device and
// the job must work afterwards.
func TestDRMFaults(t *testing.T) {
	for _, c := range []struct {
		name   string
		fault  func(uint32) error
		run    func(fence chan struct{}, execute func(float64))
		hangs  bool
		want   error
		status syscall.Errno
	}{
		{name: "EINTR storm on submit", fault: once(drmSubmitCall, 1000, syscall.EINTR)},
		{name: "EINTR storm on wait", fault: once(drmWaitCall, 1000, syscall.EINTR)},
		{name: "EAGAIN on submit", fault: once(drmSubmitCall, 20, syscall.EAGAIN)},
		{name: "EBUSY on wait", fault: once(drmWaitCall, 3, syscall.EBUSY)},
		{name: "wait ends early", fault: once(drmWaitCall, 3, syscall.ETIME)},
		{name: "endless EINTR", fault: once(drmSubmitCall, 1<<30, syscall.EINTR), want: ErrTimeout},
		{name: "endless EAGAIN on wait", fault: once(drmWaitCall, 1<<30, syscall.EAGAIN), want: ErrTimeout},
		{name: "ENODEV on submit", fault: once(drmSubmitCall, 1, syscall.ENODEV), want: ErrMissing, status: syscall.ENODEV},
		{name: "ENODEV on wait", fault: once(drmWaitCall, 1, syscall.ENODEV), want: ErrMissing, status: syscall.ENODEV},
		{name: "EIO on wait", fault: once(drmWaitCall, 1, syscall.EIO), want: ErrFault, status: syscall.EIO},
		{name: "ENOMEM on submit", fault: once(drmSubmitCall, 1, syscall.ENOMEM), want: ErrFault, status: syscall.ENOMEM},
		{name: "hangs", hangs: true, want: ErrTimeout},
		{name: "reset before the first operation", run: func(fence chan struct{}, _ func(float64)) { close(fence) }, want: ErrFault},
		{name: "reset in the middle", run: func(fence chan struct{}, execute func(float64)) { execute(0.5); close(fence) }, want: ErrFault},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			job := newDRMCase(t, JobOptions{Timeout: time.Second})
			job.works(t)
			job.k.fault, job.k.run = c.fault, c.run
			if c.hangs {
				job.k.run = job.k.hang
			}
			feed(job.vector, job.p, job.j)
			_, err := job.j.Submit(context.Background())
			var e *DeviceError
			switch {
			case !errors.Is(err, c.want):
				t.Fatalf("got %v, want %v", err, c.want)
			case c.want != nil && (!errors.As(err, &e) || e.Status != uint32(c.status)):
				t.Fatalf("got %#v, want status %d", err, c.status)
			case c.want == nil:
				check(t, job.vector, job.p, job.j)
			}
			job.k.fault, job.k.run = nil, nil
			job.works(t)
		})
	}
}

// TestDRMLateRun lets a run that timed out continue and end later: it must not access the memory
// that the job uses by then.
func TestDRMLateRun(t *testing.T) {
	t.Parallel()
	c := newDRMCase(t, JobOptions{Timeout: time.Second})
	release, ended := make(chan struct{}), make(chan struct{})
	c.k.run = func(fence chan struct{}, execute func(float64)) {
		<-release
		execute(1)
		close(fence)
		close(ended)
	}
	feed(c.vector, c.p, c.j)
	region := c.j.Region(1)
	if _, err := c.j.Submit(context.Background()); !errors.Is(err, ErrTimeout) {
		t.Fatalf("got %v, want %v", err, ErrTimeout)
	}
	out := c.p.Outputs[0].at(c.j)
	if stale := bytes.TrimLeft(out, "\x00"); len(stale) > 0 {
		t.Errorf("after a time-out the output has %d bytes that are not 0", len(stale))
	}
	for i := range region {
		region[i] = 0xa5
	}
	close(release)
	<-ended
	if n := bytes.Count(region, []byte{0xa5}); n != len(region) {
		t.Fatalf("the late run wrote %d bytes of the job's memory", len(region)-n)
	}
	c.k.run = nil
	if &c.j.Region(1)[0] != &region[0] {
		t.Error("the region has moved")
	}
	c.works(t)
}

func TestDRMCancel(t *testing.T) {
	c := newDRMCase(t, JobOptions{})
	c.k.run = c.k.hang
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("no patience")
	time.AfterFunc(20*time.Millisecond, func() { cancel(why) })
	start := time.Now()
	_, err := c.j.Submit(ctx)
	if !errors.Is(err, why) || !errors.Is(err, ErrInterrupted) {
		t.Fatalf("got %v, want %v", err, why)
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("the cancelled call took %v", d)
	}
	c.k.run = nil
	c.works(t)
}

// TestDRMNoMemory times out without other memory available: the job must not be used again while
// the old run may write to it.
func TestDRMNoMemory(t *testing.T) {
	c := newDRMCase(t, JobOptions{Timeout: 20 * time.Millisecond})
	c.k.run = c.k.hang
	c.k.fault = once(drmCreateCall, 1<<30, syscall.ENOMEM)
	if _, err := c.j.Submit(context.Background()); !errors.Is(err, ErrTimeout) {
		t.Fatalf("got %v, want %v", err, ErrTimeout)
	}
	c.k.run, c.k.fault = nil, nil
	if _, err := c.j.Submit(context.Background()); !errors.Is(err, ErrFault) {
		t.Fatalf("got %v, want %v", err, ErrFault)
	}
}

func TestDRMCounters(t *testing.T) {
	c := newDRMCase(t, JobOptions{Cycles: true, Events: []uint32{17, 0x80}})
	for run := range 3 {
		r := c.works(t)
		if r.Cycles != 3000 || len(r.Events) != 2 || r.Events[0] != 1000 || r.Events[1] != 2000 {
			t.Fatalf("run %d: %+v, want 3000 cycles, events 1000 and 2000", run, r)
		}
	}
}

// TestDRMWrongAnswers makes the kernel answer with impossible numbers.
func TestDRMWrongAnswers(t *testing.T) {
	for _, c := range []struct {
		name    string
		request uint32
		spoil   func(arg unsafe.Pointer)
		want    string
	}{
		{"short buffer", drmCreateCall, func(a unsafe.Pointer) { (*drmCreate)(a).size = 16 }, "16 bytes, want"},
		{"no buffer", drmCreateCall, func(a unsafe.Pointer) { (*drmCreate)(a).handle = 0 }, "buffer 0"},
		{"too many counters", drmMonitorCall, func(a unsafe.Pointer) { (*drmMonitor)(a).count = 200 }, "200 counters, want 2"},
		{"unknown configuration", drmQueryCall, func(a unsafe.Pointer) { (*drmInfo)((*drmQuery)(a).pointer).config = 0xffffffff }, "0xffffffff"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := ethosutest.Find(t, "u65-256/add/d0")
			p := programOf(t, v)
			k := newFakeDRM(t, p.Config)
			k.counters = 4
			k.shorten = func(request uint32, arg unsafe.Pointer) {
				if request == c.request {
					c.spoil(arg)
				}
			}
			err := openAndRun(k, p)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
}

func openAndRun(k kernel, p *Program) error {
	d, err := openDRM(k, fakeNode)
	if err != nil {
		return err
	}
	defer d.Close()
	n, err := d.Load(p)
	if err != nil {
		return err
	}
	defer n.Close()
	j, err := n.NewJob(JobOptions{Cycles: true, Events: []uint32{1}})
	if err != nil {
		return err
	}
	defer j.Close()
	_, err = j.Submit(context.Background())
	return err
}

func TestDRMProbe(t *testing.T) {
	u65, _ := isa.ParseConfig(0x10003018, 0)
	for _, c := range []struct {
		name  string
		setup func(k *fakeDRM)
		state State
		want  string
	}{
		{"an NPU", func(*fakeDRM) {}, Loaded, "/dev/accel/accel0 is ethos-u65-256, 384 KiB SRAM"},
		{"another driver", func(k *fakeDRM) { k.name = "rocket" }, Skipped, "other drivers' devices: /dev/accel/accel0"},
		{"no permission", func(k *fakeDRM) { k.openErr = syscall.EACCES }, Failed, "permission denied"},
		{"query fails", func(k *fakeDRM) { k.fault = once(drmQueryCall, 1, syscall.EIO) }, Failed, "DEV_QUERY"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newFakeDRM(t, u65)
			c.setup(k)
			got := drmDriver(k).Probe()
			if got.State != c.state || !strings.Contains(got.Reason, c.want) {
				t.Errorf("got %v: %s, want %v: %s", got.State, got.Reason, c.state, c.want)
			}
			if (got.Paths != nil) != (c.state == Loaded) {
				t.Errorf("paths %v of a driver that is %v", got.Paths, c.state)
			}
		})
	}
}

// TestDRMOtherNPU loads programs onto NPUs that cannot run them.
func TestDRMOtherNPU(t *testing.T) {
	d := openFake(t, newFakeDRM(t, ethosutest.Find(t, "u65-256/add/d0").Call(t).Driver.Config))
	for _, name := range []string{"u55-128/add/d0", "u65-512/digits_cnn/d0", "u85-256/add/d0"} {
		if _, err := d.Load(programOf(t, ethosutest.Find(t, name))); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s on a u65-256: got %v, want %v", name, err, ErrUnsupported)
		}
	}
}

// TestDRMFastMemory puts region 2 into the device's memory if it fits, else into a buffer.
func TestDRMFastMemory(t *testing.T) {
	for _, v := range ethosutest.Vectors(t, "*") {
		p := programOf(t, v)
		if p.Regions[2].Kind != isa.Fast || p.Config.Family == isa.U55 || len(p.Container) > 64<<10 {
			continue
		}
		for _, sram := range []uint32{384 << 10, uint32(p.Regions[2].Size - 1), 0} {
			k := newFakeDRM(t, p.Config)
			k.sram = sram
			runVector(t, openFake(t, k), v)
		}
		return
	}
	t.Fatal("no vector with fast scratch")
}

func TestDRMConcurrent(t *testing.T) {
	v := ethosutest.Find(t, "u65-256/conv3x3/d0")
	p := programOf(t, v)
	d := openFake(t, newFakeDRM(t, p.Config))
	n, err := d.Load(p)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			j, err := n.NewJob(JobOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			defer j.Close()
			for range 5 {
				feed(v, p, j)
				if _, err := j.Submit(context.Background()); err != nil {
					t.Error(err)
				}
				check(t, v, p, j)
			}
		})
	}
	all.Wait()
}

// idleDRM is a kernel whose NPU needs no time: it only writes the completion marker.
type idleDRM struct{ *fakeDRM }

func (k idleDRM) ioctl(fd int, request uint32, arg unsafe.Pointer) (int, error) {
	switch request {
	case drmSubmitCall:
		task := (*drmTask)((*drmSubmit)(arg).jobs)
		mem := k.buffers[task.regions[markerRegion]].mem
		for at := 0; at+markerSpace <= len(mem); at += markerBytes {
			if n := binary.LittleEndian.Uint64(mem[at:]); n != 0 && n == ^binary.LittleEndian.Uint64(mem[at+markerBytes:]) {
				copy(mem[at+markerBytes:], mem[at:at+markerBytes])
			}
		}
		return 0, nil
	case drmWaitCall:
		return 0, nil
	}
	return k.fakeDRM.ioctl(fd, request, arg)
}

func TestDRMSubmitAllocatesNothing(t *testing.T) {
	v := ethosutest.Find(t, "u65-256/add/d0")
	p := programOf(t, v)
	d, err := openDRM(idleDRM{newFakeDRM(t, p.Config)}, fakeNode)
	if err != nil {
		t.Fatal(err)
	}
	j := newJob(t, d, p)
	ctx := context.Background()
	if got := testing.AllocsPerRun(100, func() {
		if _, err := j.Submit(ctx); err != nil {
			t.Fatal(err)
		}
	}); got != 0 {
		t.Errorf("%v allocations in a Submit", got)
	}
}
