package ethosu

import (
	"errors"
	"fmt"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/ethosu"
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
