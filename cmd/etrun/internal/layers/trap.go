package layers

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/trace"
)

// Trap is an observer that stops a run at the first place that produces NaN or infinity
// from finite inputs.
type Trap struct {
	Stop  func(error) // called once, with a *NaNError
	Found *NaNError   // argument of that call
	tracker
	inputs []Operand // inputs of the current instruction or node
	outer  []Operand // inputs of the instruction around a node
}

// Operand is a value that a place has read. The figures ignore NaNs.
type Operand struct {
	Slot int           `json:"slot"`
	Name string        `json:"name,omitempty"` // name of a parameter or buffer
	Type string        `json:"type"`
	Min  output.Number `json:"min"`
	Max  output.Number `json:"max"`
	Mean output.Number `json:"mean"`
	nans int
}

// NaNError is NaN or infinity that a place produced from finite inputs.
type NaNError struct {
	Place
	Output int       `json:"output"`
	Type   string    `json:"type"`
	NaNs   int       `json:"nans"`
	Infs   int       `json:"infinities"`
	First  []int     `json:"first"` // logical index
	Inputs []Operand `json:"inputs"`
}

func (e *NaNError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: output %d %s has %d NaN and %d infinite elements, the first at %v; its inputs have none:",
		&e.Place, e.Output, e.Type, e.NaNs, e.Infs, e.First)
	for i := range e.Inputs {
		b.WriteString("\n  " + e.Inputs[i].String())
	}
	return b.String()
}

// String formats the operand in one line.
func (o *Operand) String() string {
	s := fmt.Sprintf("value %d", o.Slot)
	if o.Name != "" {
		s += fmt.Sprintf(" (%.100q)", o.Name)
	}
	return fmt.Sprintf("%s %s: min %s, max %s, mean %s", s, o.Type, o.Min, o.Max, o.Mean)
}

// Wants selects values and the beginnings of calls.
func (t *Trap) Wants() trace.Kinds { return trace.Values | 1<<trace.Begin }

// Observe checks values until it has found something.
func (t *Trap) Observe(e *trace.Event) {
	switch {
	case e.Kind == trace.Begin:
		t.begin()
	case t.Found != nil:
	case e.Kind == trace.Read && e.Index < 0:
		t.outer = read(e)
		t.inputs = t.outer
	case e.Kind == trace.Read:
		t.inputs = read(e)
	default:
		t.check(e)
		t.inputs = t.outer // inputs of the instruction, after its nodes
	}
}

// read summarizes the operands of a place; numbers count as tensors with one element.
func read(e *trace.Event) (list []Operand) {
	for i := range e.Values {
		v := &e.Values[i]
		x := output.AsTensor(v.Value)
		if x == nil {
			continue
		}
		s := new(output.Scores).Summarize(x)
		if s == nil {
			continue
		}
		list = append(list, Operand{v.Index, v.Name, x.String(), s.Min, s.Max, s.Mean, s.NaNs})
	}
	return list
}

// isFinite reports whether an operand has no NaN and no infinity.
func (o *Operand) isFinite() bool {
	return isFinite(o.nans, o.Min, o.Max)
}

func isFinite(nans int, least, most output.Number) bool {
	return nans == 0 && !math.IsInf(float64(least), 0) && !math.IsInf(float64(most), 0)
}

// check finds elements that are not finite. Values computed at load have no recorded inputs.
func (t *Trap) check(e *trace.Event) {
	if e.Run == 0 || e.Chain < 0 || slices.ContainsFunc(t.inputs, func(o Operand) bool { return !o.isFinite() }) {
		return
	}
	for k := range e.Values {
		x := output.AsTensor(e.Values[k].Value)
		if x == nil || !x.DType.IsFloat() {
			continue
		}
		s := new(output.Scores).Summarize(x)
		if s == nil || isFinite(s.NaNs, s.Min, s.Max) {
			continue
		}
		w := t.written(e, k)
		t.Found = &NaNError{Place: w.Place, Output: k, Type: x.String(), NaNs: s.NaNs, Inputs: t.inputs}
		t.Found.count(x)
		t.Stop(t.Found)
		return
	}
}

// count counts infinite elements, and finds the first element that is not finite.
func (e *NaNError) count(t *tensor.Tensor) {
	index := make([]int, t.Rank())
	element, load := make([]float64, 1), tensor.Loader[float64](t.DType)
	for range t.Numel() {
		at := 0
		for d, i := range index {
			at += i * t.Strides[d]
		}
		load(element, t.Data[at*t.DType.Size():])
		if x := element[0]; x-x != 0 {
			if e.First == nil {
				e.First = append([]int{}, index...)
			}
			if !math.IsNaN(x) {
				e.Infs++
			}
		}
		for d := len(index) - 1; d >= 0; d-- {
			if index[d]++; index[d] < t.Sizes[d] {
				break
			}
			index[d] = 0
		}
	}
}
