package ethosu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/ethosu"
	"github.com/etrun-go/etrun/hal/ethosu/isa"
	"github.com/etrun-go/etrun/hal/ethosu/npu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// unit is a network with its own memory.
type unit struct {
	image   *image
	job     ethosu.Job
	regions [isa.NumRegions][]byte

	profiling  bool
	operations []npu.Operation // if traced or measured
	times      []time.Duration // durations of the operations of the last Execute, if measured
	last       time.Time
	after      npu.Trace // observed
	see        func(*delegate.NodeValues)
	shown      delegate.NodeValues
}

// Execute copies all inputs to the NPU's memory, runs the network, and copies the outputs; inputs
// and outputs may share memory.
func (u *unit) Execute(ctx context.Context, args []*tensor.Value) error {
	im := u.image
	if len(args) != len(im.inputs)+len(im.outputs) {
		return delegate.Errorf(ID, delegate.ErrArgument, "", "got %d arguments, want %d", len(args), len(im.inputs)+len(im.outputs))
	}
	for i := range im.inputs {
		t := &im.inputs[i]
		b, err := t.argument("input", i, args[i])
		if err != nil {
			return err
		}
		t.copy(t, u.at(t.rec), b)
	}
	u.times, u.last = u.times[:0], u.start()
	if _, err := u.job.Submit(ctx); err != nil {
		return u.failed(ctx, err)
	}
	for i := range im.outputs {
		t := &im.outputs[i]
		b, err := t.argument("output", i, args[len(im.inputs)+i])
		if err != nil {
			return err
		}
		if t.stale != nil {
			if t, err = t.calibrated(im.backend, u.at(t.rec)); err != nil {
				return err
			}
		}
		t.copy(t, b, u.at(t.rec))
	}
	return nil
}

// at returns the memory of a record.
func (u *unit) at(r *record) []byte {
	return u.regions[r.region][r.offset:][:r.bytes()]
}

// failed returns the cause of the context if it ended the run.
func (u *unit) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return context.Cause(ctx)
	}
	return deviceError(err)
}

// Close frees the memory.
func (u *unit) Close() error {
	if err := u.job.Close(); err != nil {
		return deviceError(err)
	}
	return nil
}

// SetProfiling switches the measurement of operations, if the device can stop after each.
func (u *unit) SetProfiling(on bool) error {
	o, ok := u.job.(ethosu.Observable)
	if !ok {
		return nil
	}
	u.profiling = on
	u.observe(o)
	return nil
}

// observe makes the device stop after each operation if it is traced, measured or viewed.
func (u *unit) observe(o ethosu.Observable) {
	if !u.profiling && u.see == nil && u.image.backend.Trace == nil {
		o.Observe(nil)
		return
	}
	if u.after == nil {
		u.operations, u.after = u.image.program.Stream.Operations(), u.observed
	}
	o.Observe(u.after)
}

func (u *unit) start() (now time.Time) {
	if u.profiling {
		now = time.Now()
	}
	return now
}

// observed is called after each operation.
func (u *unit) observed(i int, mem *npu.Memory) error {
	if u.profiling {
		u.times = append(u.times, time.Since(u.last))
	}
	if im := u.image; im.backend.Trace != nil {
		im.backend.Trace(&TraceEvent{Method: im.method, Delegate: im.index, Index: i, Operation: &u.operations[i], Memory: mem})
	}
	if u.see != nil {
		u.show(i, mem)
	}
	u.last = u.start()
	return nil
}

// show reports the bytes that operation i has written, including gaps between rows.
func (u *unit) show(i int, mem *npu.Memory) {
	op := &u.operations[i]
	u.shown = delegate.NodeValues{Index: i, Name: op.Name, Written: true, Values: u.shown.Values[:0]}
	for k, r := range op.Writes {
		t := tensor.Make(tensor.Uint8, []int{int(r.Hi - r.Lo)}, nil, tensor.Static)
		t.Bind(mem[r.Region][r.Lo:r.Hi])
		u.shown.Values = append(u.shown.Values, delegate.NodeValue{Index: k, Value: tensor.TensorValue(t)})
	}
	u.see(&u.shown)
}

// View implements delegate.Viewer if the device stops after each operation: the software NPU.
// Values are the written bytes in the NPU's layout.
func (u *unit) View(see func(*delegate.NodeValues)) {
	if o, ok := u.job.(ethosu.Observable); ok {
		u.see = see
		u.observe(o)
	}
}

// Profile appends the times of the last Execute's operations.
func (u *unit) Profile(dst []delegate.NodeTime) []delegate.NodeTime {
	for i, d := range u.times {
		dst = append(dst, delegate.NodeTime{Name: u.operations[i].Name, Duration: d})
	}
	return dst
}

// Unit creates an instance with its own memory.
func (im *image) Unit(in delegate.Instance) (delegate.Unit, error) {
	o := im.options
	o.Pool = in.Pool
	job, err := im.network.NewJob(o)
	if err != nil {
		return nil, deviceError(err)
	}
	u := &unit{image: im, job: job}
	for i := range u.regions {
		u.regions[i] = job.Region(i)
	}
	if im.backend.Trace == nil {
		return u, nil
	}
	observable, ok := job.(ethosu.Observable)
	if !ok {
		job.Close()
		return nil, delegate.Errorf(ID, delegate.ErrUnsupported, "", "tracing: the device does not stop after each operation")
	}
	u.observe(observable)
	return u, nil
}

func deviceError(err error) error {
	for _, r := range deviceReasons {
		if errors.Is(err, r.device) {
			return &delegate.Error{Backend: ID, Reason: r.reason, Err: err}
		}
	}
	return &delegate.Error{Backend: ID, Reason: delegate.ErrDevice, Err: err}
}

// deviceReasons maps device errors to delegate errors.
var deviceReasons = []struct{ device, reason error }{
	{ethosu.ErrMissing, delegate.ErrMissing},
	{ethosu.ErrUnsupported, delegate.ErrUnsupported},
	{ethosu.ErrProgram, delegate.ErrPayload},
}

// argument returns the bytes of a call's argument, which must have the declared size.
func (t *transfer) argument(what string, i int, v *tensor.Value) ([]byte, error) {
	if v.Kind != tensor.KindTensor || v.Tensor == nil {
		return nil, delegate.Errorf(ID, delegate.ErrArgument, fmt.Sprintf("%s %d", what, i), "got %v, want a tensor", v.Kind)
	}
	if b := v.Tensor.Data; len(b) == t.bytes && v.Tensor.NBytes() == t.bytes {
		return b, nil
	}
	return nil, delegate.Errorf(ID, delegate.ErrArgument, fmt.Sprintf("%s %d", what, i), "got %v with %d bytes, want %d",
		v.Tensor, v.Tensor.NBytes(), t.bytes)
}
