package ethosu

import (
	"fmt"
	"strings"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// StaleOutput is an output of a delegate whose declared type differs from the type that the NPU
// writes.
type StaleOutput struct {
	Method   string
	Delegate int          // index in the method's list of delegates
	Output   int          // index of the delegate's output
	Declared tensor.DType // type declared by the program
	Written  tensor.DType // type written by the NPU
	Sizes    []int        // as declared
	DimOrder []uint8      // as declared, nil for contiguous
	// Known is the quantization according to the caller or the program's operators, nil if unknown.
	// Err is a *delegate.QuantError if the operators disagree.
	Known *delegate.QuantUse
	Err   error
}

// Calibration is a stale output in a run, as written by the NPU.
type Calibration struct {
	StaleOutput
	Stored []int32 // in memory order, valid during the call
}

// StaleError reports outputs of delegates whose declared type is stale and whose quantization is
// unknown. [Backend.Survey] lists all outputs of a method.
type StaleError struct {
	Outputs []StaleOutput
}

// maxListed is the largest number of outputs in an error message.
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
	fmt.Fprintf(&s, " export the program again with an ExecuTorch version that declares the written types,"+
		" or set their scales and zero points (qparams; etrun npu calibrate fits them to reference values): [%s]", &entries)
	return s.String()
}

// String describes the output and the mismatch.
func (o *StaleOutput) String() string {
	s := fmt.Sprintf("delegate %d output %d, sizes %s: declared %v, the NPU writes %v (expansion factor %d, element size %d)",
		o.Delegate, o.Output, tensor.FormatSizes(o.Sizes), o.Declared, o.Written, o.Declared.Size()/o.Written.Size(), o.Written.Size())
	if o.Err != nil {
		s += "; quantization unknown: " + o.Err.Error()
	}
	return s
}
