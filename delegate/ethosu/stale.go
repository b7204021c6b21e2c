package ethosu

import (
	"errors"
	"fmt"
	"strings"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// StaleOutput is an output of a delegate whose declared type is not what the NPU writes.
type StaleOutput struct {
	Method   string
	Delegate int          // its place in the method's delegate list
	Output   int          // of the delegate
	Declared tensor.DType // by the program
	Written  tensor.DType // by the NPU
	Sizes    []int        // as declared
	DimOrder []uint8      // as declared, nil for contiguous
	// Known is how the caller or the program says that the output is quantised, nil where
	// none does. Err is a *delegate.QuantError where the program contradicts itself.
	Known *delegate.QuantUse
	Err   error
}

// Calibration is a stale output in a run, as the NPU wrote it.
type Calibration struct {
	StaleOutput
	Stored []int32 // in the order of the tensor's memory, valid during the call
}

// StaleError is a program with outputs of delegates that are of a stale type and of which
// nothing tells how they are quantised. [Backend.Survey] lists all of a method.
type StaleError struct {
	Outputs []StaleOutput
}

// maxListed bounds the outputs that the text of an error names.
const maxListed = 256

func (e *StaleError) Error() string {
	var s, entries strings.Builder
	fmt.Fprintf(&s, "stale type of %d outputs:", len(e.Outputs))
	for i, o := range e.Outputs {
		if i == maxListed {
			fmt.Fprintf(&s, " and %d more;", len(e.Outputs)-i)
			entries.WriteString(", …")
			break
		}
		fmt.Fprintf(&s, " %s;", &o)
		if i > 0 {
			entries.WriteString(", ")
		}
		fmt.Fprintf(&entries, `{"method": %q, "delegate": %d, "output": %d, "scale": SCALE, "zero_point": ZERO}`, o.Method, o.Delegate, o.Output)
	}
	fmt.Fprintf(&s, " export the program again with an ExecuTorch that declares them as they are written,"+
		" or give their scales and zero points (qparams; etrun npu calibrate fits them to reference values): [%s]", &entries)
	return s.String()
}

// String names the output and what is wrong with it.
func (o *StaleOutput) String() string {
	s := fmt.Sprintf("delegate %d output %d, sizes %v: declared %v, the NPU writes %v (expansion factor %d, element size %d)",
		o.Delegate, o.Output, o.Sizes, o.Declared, o.Written, o.Declared.Size()/o.Written.Size(), o.Written.Size())
	if o.Err != nil {
		s += ", and the program does not say how it is quantised: " + o.Err.Error()
	}
	return s
}

// Survey reports the stale outputs of all payloads at once, as a *StaleError. A payload
// that cannot be compiled at all comes first: no quantisation mends it.
func (b Backend) Survey(payloads []*delegate.Payload) error {
	var all StaleError
	for _, p := range payloads {
		c, err := parse(p.Data, p.Named)
		if err == nil {
			im := &image{container: c, backend: &b}
			err = im.plan(p)
		}
		if stale, ok := errors.AsType[*StaleError](err); ok {
			all.Outputs = append(all.Outputs, stale.Outputs...)
		} else if err != nil {
			return fmt.Errorf("delegate %d (%q): %w", p.Index, ID, err)
		}
	}
	if len(all.Outputs) == 0 {
		return nil
	}
	return &delegate.Error{Backend: ID, Reason: delegate.ErrPayload, Err: &all}
}

// calibrated is the transfer of an output as [Backend.Calibrate] says it is quantised,
// from what the NPU wrote.
func (t *transfer) calibrated(b *Backend, src []byte) (*transfer, error) {
	c := Calibration{StaleOutput: *t.stale, Stored: make([]int32, t.elements)}
	for i := range c.Stored {
		c.Stored[i] = t.stored(src, i)
	}
	q, err := b.Calibrate(&c)
	if err != nil {
		return nil, fmt.Errorf("delegate %d output %d: %w", c.Delegate, c.Output, err)
	}
	fitted := *t
	if err := fitted.quantized(&delegate.QuantUse{Quantization: q, By: "the caller"}); err != nil {
		return nil, delegate.Errorf(ID, delegate.ErrArgument, fmt.Sprintf("output %d", c.Output), "%w", err)
	}
	return &fitted, nil
}
