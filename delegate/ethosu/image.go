package ethosu

import (
	"errors"
	"fmt"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/ethosu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// image is a payload loaded onto a device.
type image struct {
	container *container
	program   *ethosu.Program
	options   ethosu.JobOptions
	method    string
	index     int
	backend   *Backend // with its options
	device    ethosu.Device
	network   ethosu.Network
	scratch   int64 // memory of one unit
	inputs    []transfer
	outputs   []transfer
}

// plan checks the arguments of the delegate's calls against the payload's records and prepares
// their transfers.
func (im *image) plan(p *delegate.Payload) error {
	c := im.container
	nin, nout := len(c.inputs), len(c.outputs)
	if p.Args == nil { // the program never calls it
		return nil
	}
	if len(p.Args) != nin+nout {
		return malformed("", "the payload has %d inputs and %d outputs, but the program's call has %d arguments", nin, nout, len(p.Args))
	}
	for i := range c.inputs {
		t, err := planInput(&c.inputs[i], p.Args[i], c.permuted)
		if err != nil {
			return placed(fmt.Sprintf("input %d", i), err)
		}
		im.inputs = append(im.inputs, t)
	}
	var stale StaleError
	for i := range c.outputs {
		o := im.stale(p, nin, i)
		t, err := planOutput(&c.outputs[i], p.Args[nin+i], c.permuted, o, im.backend.Calibrate != nil)
		if e, ok := errors.AsType[*StaleError](err); ok {
			stale.Outputs = append(stale.Outputs, e.Outputs...)
		} else if err != nil {
			return placed(fmt.Sprintf("output %d", i), err)
		}
		im.outputs = append(im.outputs, t)
	}
	if len(stale.Outputs) > 0 {
		return &delegate.Error{Backend: ID, Reason: delegate.ErrPayload, Err: &stale}
	}
	return nil
}

// stale describes an output in case its declared type is stale: its quantization according to the
// caller or to the program's operators.
func (im *image) stale(p *delegate.Payload, inputs, output int) *StaleOutput {
	o := &StaleOutput{Method: p.Method, Delegate: p.Index, Output: output, Written: written(im.container.outputs[output].elemSize)}
	a := p.Args[inputs+output]
	if a == nil {
		return o
	}
	o.Declared, o.Sizes, o.DimOrder = a.DType, a.Sizes, a.DimOrder
	for i := range im.backend.QParams {
		q := &im.backend.QParams[i]
		if (q.Method == "" || q.Method == p.Method) && q.Delegate == p.Index && q.Output == output {
			o.Known = &delegate.QuantUse{Quantization: q.Quantization, DType: o.Written, By: "the caller"}
			return o
		}
	}
	if a.DType.IsInt() {
		o.Known, o.Err = a.Quantization()
	} else {
		o.Known, o.Err = a.QuantizationAs(o.Written)
	}
	return o
}

// placed adds a place to a transfer's error.
func placed(place string, err error) error {
	return &delegate.Error{Backend: ID, Reason: delegate.ErrUnsupported, Place: place, Err: err}
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

// Close unloads the network from its device.
func (im *image) Close() error {
	err := im.network.Close()
	if e := im.device.Close(); err == nil {
		err = e
	}
	if err != nil {
		return deviceError(err)
	}
	return nil
}

// transfer describes how an argument is copied to or from the NPU's memory.
type transfer struct {
	rec      *record
	bytes    int // size of the argument
	elements int
	copy     func(t *transfer, dst, src []byte)
	chunk    int // bytes of the argument that are contiguous in the NPU's memory
	stride   int // bytes in the NPU's memory from one chunk to the next
	scale    float32
	zero     int32
	quant    *delegate.QuantUse // origin of scale and zero, nil if unused
	stale    *StaleOutput       // set for an output that is calibrated in each run
}

// copyBytes copies the argument unchanged.
func copyBytes(_ *transfer, dst, src []byte) { copy(dst, src) }

// inputTypes maps the supported types of inputs to the element size that the NPU reads.
var inputTypes = [tensor.NumDTypes]int{tensor.Int32: 4, tensor.Int8: 1, tensor.Uint8: 1, tensor.Int16: 2, tensor.Bool: 1}

func planInput(r *record, a *delegate.ArgSpec, permuted bool) (transfer, error) {
	t, err := newTransfer(r, a)
	if err != nil {
		return t, err
	}
	if inputTypes[a.DType] != r.elemSize {
		return t, fmt.Errorf("got elements of %v, want %d bytes each", a.DType, r.elemSize)
	}
	if t.elements != r.elements() {
		return t, fmt.Errorf("got %s with %d elements, want %s with %d", tensor.FormatSizes(a.Sizes), t.elements, tensor.FormatSizes(r.shape[:]), r.elements())
	}
	t.copy = copyBytes
	if permuted && channelsMove(a, r) {
		t.copy = channelsLast
	}
	return t, nil
}

// newTransfer performs the checks common to all arguments.
func newTransfer(r *record, a *delegate.ArgSpec) (transfer, error) {
	t := transfer{rec: r}
	if a == nil {
		return t, fmt.Errorf("not a tensor")
	}
	n, ok := tensor.Product(a.Sizes)
	if !ok || !a.DType.Valid() {
		return t, fmt.Errorf("%v %s", a.DType, tensor.FormatSizes(a.Sizes))
	}
	t.elements, t.bytes = n, n*a.DType.Size()
	return t, nil
}

// bytes returns the size of the tensor in the NPU's memory.
func (r *record) bytes() int { return r.elements() * r.elemSize }
