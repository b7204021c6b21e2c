package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/ethosu"
	"github.com/etrun-go/etrun/hal/ethosu/fvp"
	"github.com/etrun-go/etrun/hal/ethosu/isa"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Callee runs a call: a method of this process, or a program on a model.
type Callee interface {
	Name() string
	SetValue(i int, v tensor.Value) error
	Execute(ctx context.Context) error
	NumOutputs() int
	Output(i int) (tensor.Value, error)
	Reset() error
	Close() error
}

// onModel is a whole program on one of Arm's models, in an executor_runner that the user
// built.
type onModel struct {
	runner  *fvp.Runner
	meta    *etrun.MethodMeta
	inputs  [][]byte
	outputs []tensor.Value
	sizes   []int
}

// maxProgramOnModel limits the size of a program, which a board holds in its memory.
const maxProgramOnModel = 1 << 30

// compiledFor returns the NPU that a program was compiled for.
func compiledFor(p *etrun.Program) (isa.Config, error) {
	for i := range p.Spec().Methods {
		for _, d := range p.Spec().Methods[i].Delegates {
			if d.ID == ethosu.ID {
				return ethosu.CompiledFor(d.Data, p)
			}
		}
	}
	return isa.Config{}, Usage("no delegate for %s: the model to start is unknown", ethosu.ID)
}

// modelError adds the class that determines the exit code.
func modelError(err error) error {
	class := etrun.ErrDevice
	if errors.Is(err, fvp.ErrMissing) || errors.Is(err, fvp.ErrUnsupported) {
		class = etrun.ErrMissing
	}
	return fmt.Errorf("%w: %w", class, err)
}

func (m *onModel) Name() string { return "forward" }

// SetValue sets an input; its bytes are not copied.
func (m *onModel) SetValue(i int, v tensor.Value) error {
	if i >= len(m.inputs) {
		return fmt.Errorf("%w: input %d: the program has %d", etrun.ErrInput, i, len(m.inputs))
	}
	want := &m.meta.Inputs[i]
	if v.Kind != tensor.KindTensor || v.Tensor.DType != want.DType || !slices.Equal(v.Tensor.Sizes, want.Sizes) {
		got := v.Kind.String()
		if v.Kind == tensor.KindTensor {
			got = v.Tensor.String()
		}
		return fmt.Errorf("%w: input %d: %s, want %v%v", etrun.ErrInput, i, got, want.DType, want.Sizes)
	}
	m.inputs[i] = v.Tensor.Data
	return nil
}

// Execute runs the program on the model.
func (m *onModel) Execute(ctx context.Context) error {
	out, err := m.runner.Run(ctx, m.inputs, m.sizes)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && errors.Is(err, cause) {
			return cause
		}
		return modelError(err)
	}
	for i, b := range out {
		copy(m.outputs[i].Tensor.Data, b)
	}
	return nil
}

func (m *onModel) NumOutputs() int                    { return len(m.outputs) }
func (m *onModel) Output(i int) (tensor.Value, error) { return m.outputs[i], nil }

// Reset does nothing: the runner loads the program for every inference.
func (m *onModel) Reset() error { return nil }

func (m *onModel) Close() error { return m.runner.Close() }
