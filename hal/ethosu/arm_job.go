package ethosu

import (
	"context"
	"encoding/binary"
	"syscall"
	"time"
	"unsafe"
)

// armJob is an arena for a network, and the requests that run it.
type armJob struct {
	network  *armNetwork
	protocol *armProtocol
	arena    *armBuffer
	timeout  time.Duration
	broken   error // why it can no longer be used

	layout   *armBuffer // armStarted: sizes, for the firmware
	started  armInference
	placed   armPlaced
	prepared int // armInvoked: the inference's file descriptor, or -1

	counting armCounting
	status   armStatus
	used     armRange
	events   []uint64
}

// armProtocol is how a generation of the driver stack starts inferences.
type armProtocol struct {
	// prepare creates the resources kept between runs.
	prepare func(j *armJob) error
	// start starts a run and returns its file descriptor.
	start func(j *armJob) (fd int, err error)
	// finish closes what start opened.
	finish func(j *armJob, fd int)
}

// armProtocols are the known generations, newest first: a kernel rejects requests of another size
// as unknown.
var armProtocols = []*armProtocol{
	{(*armJob).prepareInvoked, (*armJob).invoke, func(*armJob, int) {}}, // created once, invoked for each run
	{(*armJob).prepareStarted, (*armJob).create, (*armJob).close},       // created, and so started, for each run
}

func (n *armNetwork) NewJob(o JobOptions) (Job, error) {
	j := &armJob{network: n, timeout: o.Timeout, prepared: -1}
	if j.timeout <= 0 {
		j.timeout = defaultTimeout
	}
	err := j.count(&o)
	if err == nil {
		j.arena, err = n.device.allocate(n.program.Regions[1].Size)
	}
	if err == nil {
		err = j.choose()
	}
	if err != nil {
		j.Close()
		return nil, err
	}
	return j, nil
}

func (j *armJob) count(o *JobOptions) error {
	if len(o.Events) > armMaxEvents {
		return j.network.device.unsupported("allocate", "got %d PMU events, want at most %d", len(o.Events), armMaxEvents)
	}
	for i, e := range o.Events {
		if e > 255 {
			return j.network.device.unsupported("allocate", "PMU event %d: want at most 255", e)
		}
		j.counting.events[i] = e
	}
	if o.Cycles {
		j.counting.cycles = 1
	}
	j.events = make([]uint64, len(o.Events))
	return nil
}

// choose determines the device's protocol with the first job.
func (j *armJob) choose() error {
	d := j.network.device
	if j.protocol = d.protocol.Load(); j.protocol != nil {
		return j.protocol.prepare(j)
	}
	var err error
	for _, j.protocol = range armProtocols {
		if err = j.protocol.prepare(j); err == nil {
			d.protocol.Store(j.protocol)
			return nil
		}
		if !unknownRequest(err) {
			return err
		}
	}
	return err
}

// prepareStarted writes the table that firmware of this generation reads: the numbers of inputs and
// outputs; the sizes of constants, scratch, fast scratch, inputs and outputs; and space for as many
// addresses.
func (j *armJob) prepareStarted() error {
	n := j.network
	p := n.program
	sizes := []int64{p.Regions[0].Size, p.Regions[1].Size, p.Regions[2].Size}
	for _, list := range [][]Binding{p.Inputs, p.Outputs} {
		for i := range list {
			sizes = append(sizes, int64(list[i].Bytes()))
		}
	}
	if j.layout == nil {
		var err error
		if j.layout, err = n.device.allocate(8 + int64(len(sizes))*12); err != nil {
			return err
		}
	}
	table := j.layout.mem
	binary.LittleEndian.PutUint32(table, uint32(len(p.Inputs)))
	binary.LittleEndian.PutUint32(table[4:], uint32(len(p.Outputs)))
	for i, size := range sizes {
		binary.LittleEndian.PutUint32(table[8+4*i:], uint32(size))
	}
	j.started = armInference{kind: armOperator, counting: j.counting}
	j.started.inputs.add(j.arena)
	j.started.inputs.add(j.layout)
	j.started.inputs.add(n.constants)
	return nil
}

// add adds a buffer, if there is one.
func (f *armFiles) add(b *armBuffer) {
	if b != nil {
		f.fds[f.count] = uint32(b.fd)
		f.count++
	}
}

// create creates an inference, which also starts it.
func (j *armJob) create() (int, error) {
	return j.network.device.k.ioctl(j.network.fd, armStartCall, unsafe.Pointer(&j.started))
}

func (j *armJob) close(fd int) { _ = j.network.device.k.close(fd) }

// prepareInvoked creates the inference.
func (j *armJob) prepareInvoked() error {
	n := j.network
	d := n.device
	c := &j.placed
	*c = armPlaced{kind: armOperator, counting: j.counting}
	c.inputs.add(j.arena)
	c.inputs.add(n.constants)
	if !c.ins.set(n.program.Inputs) || !c.outs.set(n.program.Outputs) {
		return d.unsupported("allocate", "got %d inputs and %d outputs, want at most %d",
			len(n.program.Inputs), len(n.program.Outputs), armMaxBuffers)
	}
	fd, err := d.file("allocate", "INFERENCE_CREATE", n.fd, armPrepareCall, unsafe.Pointer(c))
	if err != nil {
		return err
	}
	if j.prepared >= 0 {
		j.close(j.prepared)
	}
	j.prepared = fd
	return nil
}

// set stores the locations of tensors; ok is false if there are too many.
func (t *armTensors) set(list []Binding) (ok bool) {
	if len(list) > armMaxBuffers {
		return false
	}
	for i := range list {
		t.offsets[i], t.sizes[i] = uint32(list[i].Offset), uint32(list[i].Bytes())
	}
	t.count = uint32(len(list))
	return true
}

// invoke starts the inference.
func (j *armJob) invoke() (int, error) {
	_, err := j.network.device.k.ioctl(j.prepared, armInvokeCall, unsafe.Pointer(&j.status))
	return j.prepared, err
}

func (j *armJob) Region(i int) []byte {
	if size := j.network.program.Regions[1].Size; i == 1 && int64(len(j.arena.mem)) >= size {
		return j.arena.mem[:size:size]
	}
	return nil
}

func (j *armJob) Submit(ctx context.Context) (Result, error) {
	d := j.network.device
	if j.broken != nil {
		return Result{}, j.broken
	}
	if err := d.queue.Enter(ctx); err != nil {
		return Result{}, interrupted(ctx, d.name, "submit")
	}
	defer d.queue.Leave()
	deadline := time.Now().Add(j.timeout)
	fd, err := j.start(ctx, deadline)
	if err != nil {
		return Result{}, err
	}
	err = j.await(ctx, fd, deadline)
	if err != nil {
		j.abandon(fd)
	}
	j.protocol.finish(j, fd)
	if err != nil {
		return Result{}, err
	}
	return j.result()
}

func (j *armJob) over(ctx context.Context, deadline time.Time, op string) error {
	return over(ctx, deadline, j.timeout, j.network.device.name, op)
}

// start starts a run.
func (j *armJob) start(ctx context.Context, deadline time.Time) (int, error) {
	for {
		fd, err := j.protocol.start(j)
		switch err {
		case nil:
			return fd, nil
		case syscall.EINTR:
		case syscall.EAGAIN, syscall.EBUSY:
			time.Sleep(100 * time.Microsecond)
		default:
			return -1, j.network.device.error("submit", "starting the inference", err)
		}
		if err := j.over(ctx, deadline, "submit"); err != nil {
			return -1, err
		}
	}
}

// await waits for the end of a run and reads its status.
func (j *armJob) await(ctx context.Context, fd int, deadline time.Time) error {
	d := j.network.device
	for {
		ready, err := d.k.poll(fd, max(0, min(slice, time.Until(deadline))))
		switch {
		case err == nil && ready:
			if done, err := j.ended(fd); done || err != nil {
				return err
			}
			time.Sleep(100 * time.Microsecond) // spurious wakeup
		case err == nil, err == syscall.EINTR, err == syscall.EAGAIN:
		default:
			return d.error("wait", "poll", err)
		}
		if err := j.over(ctx, deadline, "wait"); err != nil {
			return err
		}
	}
}

// ended reads the status of a run.
func (j *armJob) ended(fd int) (bool, error) {
	d := j.network.device
	j.status = armStatus{status: armRunning}
	if _, err := request(d.k, fd, armStatusCall, unsafe.Pointer(&j.status)); err != nil {
		return false, d.error("wait", "INFERENCE_STATUS", err)
	}
	switch s := j.status.status; {
	case s == armOK:
		return true, nil
	case s == armRunning, s == armAborting:
		return false, nil
	case s < uint32(len(armStatusNames)):
		return false, &DeviceError{Device: d.name, Op: "wait", Reason: ErrFault, Status: s,
			Err: &callError{"inference", armEnd(armStatusNames[s])}}
	default:
		return false, d.fault("wait", "inference: status %d", s)
	}
}

// armEnd is a final status as an error.
type armEnd string

func (e armEnd) Error() string { return string(e) }

// abandon cancels a run and leaves it the memory that it may still write, because the firmware only
// handles requests between runs. The job gets other memory.
func (j *armJob) abandon(fd int) {
	d := j.network.device
	_, _ = request(d.k, fd, armCancelCall, unsafe.Pointer(&armCancelled{})) // the answer does not matter
	err := d.renew(j.arena)
	if err == nil {
		err = j.protocol.prepare(j)
	}
	if err != nil {
		j.broken = d.fault("submit", "no memory to replace that of an abandoned run: %w", err)
	}
}

// result checks that the arena is unchanged and reads the counters.
func (j *armJob) result() (Result, error) {
	d := j.network.device
	if _, err := request(d.k, j.arena.fd, armRangeGetCall, unsafe.Pointer(&j.used)); err != nil {
		return Result{}, d.error("wait", "BUFFER_GET", err)
	}
	if j.used.offset != 0 || int(j.used.size) != len(j.arena.mem) {
		return Result{}, d.fault("wait", "arena: got %d bytes at offset %d, want %d at 0", j.used.size, j.used.offset, len(j.arena.mem))
	}
	var r Result
	if j.counting.cycles != 0 {
		r.Cycles = j.status.cycles
	}
	for i := range j.events {
		j.events[i] = uint64(j.status.events[i])
	}
	if len(j.events) > 0 {
		r.Events = j.events
	}
	return r, nil
}

func (j *armJob) Close() error {
	d := j.network.device
	if j.prepared >= 0 {
		j.close(j.prepared)
		j.prepared = -1
	}
	d.free(j.arena)
	d.free(j.layout)
	return nil
}
