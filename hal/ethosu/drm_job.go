package ethosu

import (
	"context"
	"fmt"
	"syscall"
	"time"
	"unsafe"

	"github.com/etrun-go/etrun/hal/ethosu/isa"
)

// drmJob is memory for a network, and the requests that run it. Everything that the kernel receives
// pointers to is part of it, so that submitting does not allocate.
type drmJob struct {
	network *drmNetwork
	buffers [isa.NumRegions]drmBuffer
	timeout time.Duration
	runs    uint64
	broken  error // why it can no longer be used

	task    drmTask
	submit  drmSubmit
	wait    drmWait
	monitor drmMonitor
	read    drmValues
	values  [drmMaxValues]uint64 // sums over all runs
	before  [drmMaxValues]uint64
	events  []uint64
}

func (n *drmNetwork) NewJob(o JobOptions) (Job, error) {
	j := &drmJob{network: n, timeout: o.Timeout}
	if j.timeout <= 0 {
		j.timeout = defaultTimeout
	}
	err := j.allocate()
	if err == nil {
		err = j.count(&o)
	}
	if err != nil {
		j.Close()
		return nil, err
	}
	j.task = drmTask{stream: n.stream, sram: uint32(n.sram)}
	j.address()
	j.submit = drmSubmit{jobs: unsafe.Pointer(&j.task), count: 1, monitor: j.monitor.id}
	return j, nil
}

// size returns the number of bytes of a region that are mapped.
func (n *drmNetwork) size(region int) int64 {
	if region == markerRegion {
		return n.marker + markerSpace
	}
	return n.program.Regions[region].Size
}

// owned reports whether each job has its own buffer for the region.
func (n *drmNetwork) owned(region int) bool {
	return n.used[region] && n.program.Regions[region].Kind != isa.Constants
}

func (j *drmJob) allocate() error {
	n := j.network
	for i := range j.buffers {
		kind := n.program.Regions[i].Kind
		// Inputs that no command reads still need memory.
		if !n.owned(i) && kind != isa.Inputs && kind != isa.Outputs {
			continue
		}
		b, err := n.device.allocate(n.size(i), n.size(i)*n.factor)
		if err != nil {
			return err
		}
		j.buffers[i] = b
	}
	return nil
}

// address sets the buffer handles of the regions that the stream uses.
func (j *drmJob) address() {
	n := j.network
	for i := range j.buffers {
		j.task.regions[i] = 0
		if n.owned(i) {
			j.task.regions[i] = j.buffers[i].handle
		}
	}
	if n.constants.handle != 0 {
		j.task.regions[n.region] = n.constants.handle
	}
}

// count creates the requested counters. Kernels without counters count nothing.
func (j *drmJob) count(o *JobOptions) error {
	d := j.network.device
	if !o.Cycles && len(o.Events) == 0 || d.counters == 0 && len(o.Events) == 0 {
		return nil
	}
	if len(o.Events) > d.counters {
		return d.unsupported("allocate", "got %d PMU events, want at most %d", len(o.Events), d.counters)
	}
	for i, e := range o.Events {
		if e > 0xffff {
			return d.unsupported("allocate", "PMU event %d", e)
		}
		j.monitor.events[i] = uint16(e)
	}
	j.monitor.count = uint32(len(o.Events))
	if err := d.call(drmMonitorCall, unsafe.Pointer(&j.monitor)); err != nil {
		return d.error("allocate", "PERFMON_CREATE", err)
	}
	if want := uint32(len(o.Events)) + 1; j.monitor.count != want {
		return d.fault("allocate", "PERFMON_CREATE: %d counters, want %d", j.monitor.count, want)
	}
	j.events = make([]uint64, len(o.Events))
	j.read = drmValues{id: j.monitor.id, values: unsafe.Pointer(&j.values)}
	return nil
}

func (j *drmJob) Region(i int) []byte {
	if i < 0 || i >= len(j.buffers) {
		return nil
	}
	switch r := &j.network.program.Regions[i]; r.Kind {
	case isa.Scratch, isa.Inputs, isa.Outputs:
		if b := j.buffers[i].mem; int64(len(b)) >= r.Size {
			return b[:r.Size:r.Size]
		}
	}
	return nil
}

func (j *drmJob) Submit(ctx context.Context) (Result, error) {
	d := j.network.device
	if j.broken != nil {
		return Result{}, j.broken
	}
	if err := d.queue.Enter(ctx); err != nil {
		return Result{}, interrupted(ctx, d.name, "submit")
	}
	defer d.queue.Leave()
	j.runs++
	marker := j.buffers[markerRegion].mem[j.network.marker:]
	armMarker(marker, j.runs)
	deadline := time.Now().Add(j.timeout)
	if err := j.start(ctx, deadline); err != nil {
		return Result{}, err
	}
	if err := j.await(ctx, deadline); err != nil {
		return Result{}, j.abandon(err)
	}
	if !completed(marker) {
		return Result{}, d.fault("wait", "the run did not complete: the kernel found it hanging or faulty and reset the NPU")
	}
	return j.measured()
}

func (j *drmJob) over(ctx context.Context, deadline time.Time, op string) error {
	return over(ctx, deadline, j.timeout, j.network.device.name, op)
}

// start submits the job to the kernel.
func (j *drmJob) start(ctx context.Context, deadline time.Time) error {
	d := j.network.device
	for {
		_, err := d.k.ioctl(d.fd, drmSubmitCall, unsafe.Pointer(&j.submit))
		switch err {
		case nil:
			return nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			time.Sleep(100 * time.Microsecond)
		default:
			return d.error("submit", "SUBMIT", err)
		}
		if err := j.over(ctx, deadline, "submit"); err != nil {
			return err
		}
	}
}

// await waits until no work uses the job's memory.
func (j *drmJob) await(ctx context.Context, deadline time.Time) error {
	d := j.network.device
	j.wait.handle = j.buffers[markerRegion].handle
	for {
		j.wait.timeout = d.k.monotonic() + int64(max(0, min(slice, time.Until(deadline))))
		_, err := d.k.ioctl(d.fd, drmWaitCall, unsafe.Pointer(&j.wait))
		switch err {
		case nil:
			return nil
		case etime, syscall.ETIMEDOUT, syscall.EBUSY, syscall.EINTR, syscall.EAGAIN:
		default:
			return d.error("wait", "BO_WAIT", err)
		}
		if err := j.over(ctx, deadline, "wait"); err != nil {
			return err
		}
	}
}

// abandon leaves a run that may still continue, with the memory that it writes, and allocates other
// memory for the job. There is no request to stop a run; the kernel itself ends runs that make no
// progress.
func (j *drmJob) abandon(why error) error {
	n := j.network
	for i := range j.buffers {
		if !n.owned(i) {
			continue
		}
		if err := n.device.renew(&j.buffers[i], n.size(i)*n.factor); err != nil {
			j.broken = &DeviceError{Device: n.device.name, Op: "submit", Reason: ErrFault,
				Err: fmt.Errorf("no memory to replace that of an abandoned run: %w", err)}
			break
		}
	}
	j.address()
	return why
}

// measured reads the counters, which are sums over all runs of the job.
func (j *drmJob) measured() (Result, error) {
	if j.monitor.id == 0 {
		return Result{}, nil
	}
	d := j.network.device
	j.before = j.values
	if err := d.call(drmValuesCall, unsafe.Pointer(&j.read)); err != nil {
		return Result{}, d.error("wait", "PERFMON_GET_VALUES", err)
	}
	for i := range j.events {
		j.events[i] = j.values[i] - j.before[i]
	}
	last := len(j.events)
	return Result{Cycles: j.values[last] - j.before[last], Events: j.events}, nil
}

func (j *drmJob) Close() error {
	d := j.network.device
	if j.monitor.id != 0 {
		_ = d.call(drmUnmonitorCall, unsafe.Pointer(&drmUnmonitor{id: j.monitor.id})) // the ID is the kernel's
		j.monitor.id = 0
	}
	for i := range j.buffers {
		d.free(&j.buffers[i])
	}
	return nil
}
