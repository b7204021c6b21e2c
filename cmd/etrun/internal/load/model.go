package load

import (
	"fmt"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/serve/oip"
)

// Model is a model's metadata in the Open Inference Protocol.
type Model struct {
	Name     string       `json:"name"`
	Versions []string     `json:"versions"`
	Platform string       `json:"platform"`
	Inputs   []TensorFact `json:"inputs"`
	Outputs  []TensorFact `json:"outputs"`

	path    string
	version string
}

// TensorFact describes an input or output. Sizes of -1 vary, up to those of MaxShape if there is one.
type TensorFact struct {
	Name     string       `json:"name"`
	Datatype oip.Datatype `json:"datatype"`
	Shape    []int64      `json:"shape"`
	MaxShape []int64      `json:"max_shape"`
	Optional bool         `json:"optional"`
}

// maxRank bounds the dimensions of inputs.
const maxRank = 64

// Slots returns the inputs as a program declares them. Sizes that vary are the largest ones, or 1 if the server does not state
// them. Inputs that have a default value are left out.
func (m *Model) Slots() (slots []etrun.ValueMeta, err error) {
	for i := range m.Inputs {
		f := &m.Inputs[i]
		if f.Optional {
			continue
		}
		slot := etrun.ValueMeta{Kind: tensor.KindTensor, Name: f.Name, Dynamism: tensor.DynamicBound}
		if f.Datatype == oip.Bytes {
			slot.Kind = tensor.KindString
			slots = append(slots, slot)
			continue
		}
		ok := false
		if slot.DType, ok = f.Datatype.DType(); !ok {
			return nil, fmt.Errorf("input %q: unknown datatype %q", f.Name, f.Datatype)
		}
		if slot.Sizes, err = f.sizes(); err != nil {
			return nil, err
		}
		slots = append(slots, slot)
	}
	return slots, nil
}

// sizes returns the sizes of a tensor, and an error if its elements cannot be counted.
func (f *TensorFact) sizes() ([]int, error) {
	if len(f.Shape) > maxRank {
		return nil, fmt.Errorf("input %q: %d dimensions, want at most %d", f.Name, len(f.Shape), maxRank)
	}
	sizes, n := make([]int, len(f.Shape)), int64(1)
	for i, size := range f.Shape {
		if size == -1 {
			size = 1
			if len(f.MaxShape) == len(f.Shape) {
				size = f.MaxShape[i]
			}
		}
		if size < 0 || size > maxAnswer || n*max(size, 1) > maxAnswer {
			return nil, fmt.Errorf("input %q: shape %v, want at most %d elements", f.Name, f.Shape, maxAnswer)
		}
		sizes[i], n = int(size), n*max(size, 1)
	}
	return sizes, nil
}
