//go:build linux && (amd64 || arm64)

package ethosu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/etrun-go/etrun/hal/ethosu/ethosutest"
	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

func TestArmLayouts(t *testing.T) {
	words := func(n int) string { // 01000000 02000000 …
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%02x%02x0000", (i+1)&255, (i+1)>>8)
		}
		return b.String()
	}
	number := func(p unsafe.Pointer, size uintptr) {
		for i := range size / 4 {
			*(*uint32)(unsafe.Add(p, 4*i)) = uint32(i) + 1
		}
	}
	var capabilities armCapabilities
	var inference armInference
	var placed armPlaced
	number(unsafe.Pointer(&capabilities), unsafe.Sizeof(capabilities))
	number(unsafe.Pointer(&inference), unsafe.Sizeof(inference))
	number(unsafe.Pointer(&placed), unsafe.Sizeof(placed))
	capacity, used, source, cancelled := armCapacity{1}, armRange{1, 2}, armSource{1, 2}, armCancelled{1}
	status := armStatus{1, armCounting{[armMaxEvents]uint32{2, 3, 4, 5}, 6}, [armMaxEvents]uint32{7, 8, 9, 10}, 0x0000000c0000000b}
	for _, l := range []layout{
		{"CAPABILITIES_REQ", armCapabilitiesCall, 0x80340102, unsafe.Pointer(&capabilities), unsafe.Sizeof(capabilities), words(13)},
		{"BUFFER_CREATE", armBufferCall, 0x80040110, unsafe.Pointer(&capacity), unsafe.Sizeof(capacity), words(1)},
		{"BUFFER_SET", armRangeSetCall, 0x80080111, unsafe.Pointer(&used), unsafe.Sizeof(used), words(2)},
		{"BUFFER_GET", armRangeGetCall, 0x40080112, unsafe.Pointer(&used), unsafe.Sizeof(used), words(2)},
		{"NETWORK_CREATE", armNetworkCall, 0x80080120, unsafe.Pointer(&source), unsafe.Sizeof(source), words(2)},
		{"INFERENCE_CREATE", armStartCall, 0x80A00130, unsafe.Pointer(&inference), unsafe.Sizeof(inference), words(40)},
		{"INFERENCE_CREATE with a memory layout", armPrepareCall, 0x81B00130, unsafe.Pointer(&placed), unsafe.Sizeof(placed), words(108)},
		{"INFERENCE_STATUS", armStatusCall, 0x80300131, unsafe.Pointer(&status), unsafe.Sizeof(status), words(12)},
		{"INFERENCE_CANCEL", armCancelCall, 0x80040132, unsafe.Pointer(&cancelled), unsafe.Sizeof(cancelled), words(1)},
		{"INFERENCE_INVOKE", armInvokeCall, 0x80300133, unsafe.Pointer(&status), unsafe.Sizeof(status), words(12)},
	} {
		l.check(t)
	}
	if armPingCall != 0x100 {
		t.Errorf("PING: request %#x, want 0x100", armPingCall)
	}
	for _, f := range []struct {
		name         string
		offset, want uintptr
	}{
		{"capabilities.productMajor", unsafe.Offsetof(capabilities.productMajor), 12},
		{"capabilities.macs", unsafe.Offsetof(capabilities.macs), 28},
		{"capabilities.streamVersion", unsafe.Offsetof(capabilities.streamVersion), 32},
		{"inference.outputs", unsafe.Offsetof(inference.outputs), 68},
		{"inference.kind", unsafe.Offsetof(inference.kind), 136},
		{"inference.counting", unsafe.Offsetof(inference.counting), 140},
		{"placed.constantsOffset", unsafe.Offsetof(placed.constantsOffset), 136},
		{"placed.arenaOffset", unsafe.Offsetof(placed.arenaOffset), 140},
		{"placed.ins", unsafe.Offsetof(placed.ins), 144},
		{"placed.outs", unsafe.Offsetof(placed.outs), 276},
		{"placed.kind", unsafe.Offsetof(placed.kind), 408},
		{"placed.counting", unsafe.Offsetof(placed.counting), 412},
		{"status.events", unsafe.Offsetof(status.events), 24},
		{"status.cycles", unsafe.Offsetof(status.cycles), 40},
	} {
		if f.offset != f.want {
			t.Errorf("%s: offset %d, want %d", f.name, f.offset, f.want)
		}
	}
}

func openFakeArm(t testing.TB, k *fakeArm) *armDevice {
	t.Helper()
	d, err := openArm(k, fakeArmNode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.Close()
		if len(k.files) > 0 {
			t.Errorf("left open: %v", k.files)
		}
	})
	return d
}

// generations runs a test on kernels of both generations.
func generations(t *testing.T, f func(t *testing.T, invoked bool)) {
	t.Run("started", func(t *testing.T) { f(t, false) })
	t.Run("invoked", func(t *testing.T) { f(t, true) })
}

func TestArmVectors(t *testing.T) {
	vectors := append(ethosutest.Vectors(t, "u65-256"), ethosutest.Vectors(t, "u55-128")...)
	generations(t, func(t *testing.T, invoked bool) {
		for _, v := range vectors {
			if p := programOf(t, v); len(p.Container) < 8<<10 && p.Regions[3].Kind == isa.Unused {
				t.Run(v.Name, func(t *testing.T) {
					runVector(t, openFakeArm(t, newFakeArm(t, p.Config, invoked)), v)
				})
			}
		}
	})
}

type armCase struct {
	k      *fakeArm
	vector *ethosutest.Vector
	p      *Program
	j      Job
}

func newArmCase(t testing.TB, invoked bool, o JobOptions) *armCase {
	t.Helper()
	c := &armCase{vector: ethosutest.Find(t, "u65-256/digits_cnn/d0")}
	c.p = programOf(t, c.vector)
	c.k = newFakeArm(t, c.p.Config, invoked)
	n, err := openFakeArm(t, c.k).Load(c.p)
	if err != nil {
		t.Fatal(err)
	}
	if c.j, err = n.NewJob(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.j.Close(); n.Close() })
	return c
}

func (c *armCase) works(t testing.TB) Result {
	t.Helper()
	feed(c.vector, c.p, c.j)
	r, err := c.j.Submit(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	check(t, c.vector, c.p, c.j)
	return r
}

// startCall stands for the request that starts a run, in both generations.
const startCall = 1

// onceEither is once with startCall for the requests of both generations.
func onceEither(number uint32, n int, err error) func(uint32) error {
	fault := once(number, n, err)
	return func(request uint32) error {
		if request == armStartCall || request == armInvokeCall {
			request = startCall
		}
		return fault(request)
	}
}

// TestArmFaults injects a fault into one run. The run must fail with an error, and the device and
// the job must work afterwards.
func TestArmFaults(t *testing.T) {
	const pollCall = 0
	ends := func(status uint32, part float64) func(*fakeArm) func(*fakeInference, func(float64)) {
		return func(k *fakeArm) func(*fakeInference, func(float64)) {
			return func(inf *fakeInference, execute func(float64)) {
				if part > 0 {
					execute(part)
				}
				k.finish(inf, status)
			}
		}
	}
	hangs := func(k *fakeArm) func(*fakeInference, func(float64)) {
		return func(inf *fakeInference, _ func(float64)) { <-k.end; k.finish(inf, armAborted) }
	}
	for _, c := range []struct {
		name   string
		call   uint32 // the failing request
		times  int    // number of failures
		err    error  // the returned error
		run    func(*fakeArm) func(*fakeInference, func(float64))
		wake   bool
		spoil  func(uint32, unsafe.Pointer)
		want   error
		status uint32
	}{
		{name: "EINTR storm on start", call: startCall, times: 1000, err: syscall.EINTR},
		{name: "EINTR storm on poll", call: pollCall, times: 1000, err: syscall.EINTR},
		{name: "EINTR storm on status", call: armStatusCall, times: 1000, err: syscall.EINTR},
		{name: "EAGAIN on start", call: startCall, times: 20, err: syscall.EAGAIN},
		{name: "short poll", wake: true, run: func(k *fakeArm) func(*fakeInference, func(float64)) {
			return func(inf *fakeInference, execute func(float64)) {
				time.Sleep(20 * time.Millisecond)
				execute(1)
				k.finish(inf, armOK)
			}
		}},
		{name: "endless EINTR", call: startCall, times: 1 << 30, err: syscall.EINTR, want: ErrTimeout},
		{name: "endless EINTR on poll", call: pollCall, times: 1 << 30, err: syscall.EINTR, want: ErrTimeout},
		{name: "ENODEV on start", call: startCall, times: 1, err: syscall.ENODEV, want: ErrMissing, status: uint32(syscall.ENODEV)},
		{name: "ENODEV on poll", call: pollCall, times: 1, err: syscall.ENODEV, want: ErrMissing, status: uint32(syscall.ENODEV)},
		{name: "ENODEV on status", call: armStatusCall, times: 1, err: syscall.ENODEV, want: ErrMissing, status: uint32(syscall.ENODEV)},
		{name: "ENOMEM on start", call: startCall, times: 1, err: syscall.ENOMEM, want: ErrFault, status: uint32(syscall.ENOMEM)},
		{name: "hangs", run: hangs, want: ErrTimeout},
		{name: "error in the middle", run: ends(armError, 0.5), want: ErrFault, status: armError},
		{name: "rejected", run: ends(armRejected, 0), want: ErrFault, status: armRejected},
		{name: "aborted", run: ends(armAborted, 0.5), want: ErrFault, status: armAborted},
		{name: "unknown status", run: ends(77, 1), want: ErrFault},
		{name: "arena of another size", want: ErrFault, spoil: func(request uint32, arg unsafe.Pointer) {
			if request == armRangeGetCall {
				(*armRange)(arg).size = 0xffffffff
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			generations(t, func(t *testing.T, invoked bool) {
				job := newArmCase(t, invoked, JobOptions{Timeout: time.Second})
				job.works(t)
				job.k.fault, job.k.wake, job.k.spoil = onceEither(c.call, c.times, c.err), c.wake, c.spoil
				if c.run != nil {
					job.k.run = c.run(job.k)
				}
				feed(job.vector, job.p, job.j)
				_, err := job.j.Submit(context.Background())
				var e *DeviceError
				switch {
				case !errors.Is(err, c.want):
					t.Fatalf("got %v, want %v", err, c.want)
				case c.want != nil && (!errors.As(err, &e) || e.Status != c.status):
					t.Fatalf("got %#v, want status %d", err, c.status)
				case c.want == nil:
					check(t, job.vector, job.p, job.j)
				}
				job.k.fault, job.k.run, job.k.spoil = nil, nil, nil
				job.works(t)
			})
		})
	}
}

// TestArmLateRun lets a run that timed out continue and end later.
func TestArmLateRun(t *testing.T) {
	t.Parallel()
	generations(t, func(t *testing.T, invoked bool) {
		c := newArmCase(t, invoked, JobOptions{Timeout: time.Second})
		release, ended := make(chan struct{}), make(chan *fakeInference, 1)
		c.k.run = func(inf *fakeInference, execute func(float64)) {
			<-release
			execute(1)
			c.k.finish(inf, armOK)
			ended <- inf
		}
		feed(c.vector, c.p, c.j)
		region := c.j.Region(1)
		if _, err := c.j.Submit(context.Background()); !errors.Is(err, ErrTimeout) {
			t.Fatalf("got %v, want %v", err, ErrTimeout)
		}
		if stale := bytes.Trim(region, "\x00"); len(stale) > 0 {
			t.Errorf("after a time-out the arena has %d bytes that are not 0", len(stale))
		}
		for i := range region {
			region[i] = 0xa5
		}
		close(release)
		if inf := <-ended; !inf.cancelled {
			t.Error("the run was not cancelled")
		}
		if n := bytes.Count(region, []byte{0xa5}); n != len(region) {
			t.Fatalf("the late run wrote %d bytes of the job's memory", len(region)-n)
		}
		c.k.run = nil
		c.works(t)
	})
}

func TestArmCounters(t *testing.T) {
	generations(t, func(t *testing.T, invoked bool) {
		r := newArmCase(t, invoked, JobOptions{Cycles: true, Events: []uint32{17, 3}}).works(t)
		if r.Cycles != 1<<33 || len(r.Events) != 2 || r.Events[0] != 11 || r.Events[1] != 12 {
			t.Errorf("got %+v, want 2^33 cycles, events 11 and 12", r)
		}
	})
}

func TestArmProbe(t *testing.T) {
	u65, _ := isa.ParseConfig(0x10003008, 0)
	for _, c := range []struct {
		name  string
		setup func(k *fakeArm)
		state State
		want  string
	}{
		{"an NPU", func(*fakeArm) {}, Loaded, "/dev/ethosu0 is ethos-u65-256, firmware driver 0.16.0"},
		{"a later release", func(k *fakeArm) { k.later = true }, Failed, "24.x or later (direct drive"},
		{"another product", func(k *fakeArm) { k.config.Family = 3 }, Failed, "product 0 of architecture 0.0"},
		{"no answer", func(k *fakeArm) { k.fault = func(uint32) error { return syscall.EIO } }, Failed, "CAPABILITIES_REQ"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newFakeArm(t, u65, true)
			c.setup(k)
			got := armDriver(k).Probe()
			if got.State != c.state || !strings.Contains(got.Reason, c.want) {
				t.Errorf("got %v: %s, want %v: %s", got.State, got.Reason, c.state, c.want)
			}
			if len(k.files) > 0 {
				t.Errorf("left open: %v", k.files)
			}
		})
	}
}

// TestArmRefuses loads programs that the firmware cannot run.
func TestArmRefuses(t *testing.T) {
	d := openFakeArm(t, newFakeArm(t, ethosutest.Find(t, "u65-256/add/d0").Call(t).Driver.Config, true))
	big := programOf(t, ethosutest.Find(t, "u65-256/conv3x3/d0"))
	for _, c := range []struct {
		name string
		p    *Program
		want string
	}{
		{"direct drive", programOf(t, ethosutest.Find(t, "u65-256/add__directdrive/d0")), "compiled for direct drive"},
		{"another NPU", programOf(t, ethosutest.Find(t, "u55-128/add/d0")), "ethos-u55-128"},
		{"two regions of scratch", func() *Program { p := *big; p.Regions[0].Kind = isa.Scratch; return &p }(), "region 0 for scratch"},
	} {
		if _, err := d.Load(c.p); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

// idleArm is a kernel whose runs take no time and do nothing.
type idleArm struct{ *fakeArm }

func (k idleArm) ioctl(fd int, request uint32, arg unsafe.Pointer) (int, error) {
	switch request {
	case armInvokeCall:
		return 0, nil
	case armStatusCall:
		(*armStatus)(arg).status = armOK
		return 0, nil
	}
	return k.fakeArm.ioctl(fd, request, arg)
}

func (k idleArm) poll(int, time.Duration) (bool, error) { return true, nil }

func TestArmSubmitAllocatesNothing(t *testing.T) {
	p := programOf(t, ethosutest.Find(t, "u65-256/add/d0"))
	d, err := openArm(idleArm{newFakeArm(t, p.Config, true)}, fakeArmNode)
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
