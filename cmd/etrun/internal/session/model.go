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
	"github.com/etrun-go/etrun/internal/openfile"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
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

// openOnModel does not start the model: the first call does.
func (s *Session) openOnModel(ctx context.Context, meta *etrun.MethodMeta) (*onModel, error) {
	if meta.Name != "forward" {
		return nil, Usage("--fvp-elf runs the method forward, not %q", meta.Name)
	}
	m := &onModel{meta: meta, inputs: make([][]byte, len(meta.Inputs))}
	for _, list := range [][]etrun.ValueMeta{meta.Inputs, meta.Outputs} {
		for i := range list {
			if list[i].Kind != tensor.KindTensor {
				return nil, Usage("--fvp-elf supports only tensors; %q has a value of kind %v", meta.Name, list[i].Kind)
			}
		}
	}
	for _, o := range meta.Outputs {
		t := o.NewTensor()
		m.outputs = append(m.outputs, tensor.TensorValue(t))
		m.sizes = append(m.sizes, t.NBytes())
	}
	c, err := compiledFor(s.Program)
	if err != nil {
		return nil, err
	}
	program, err := openfile.ReadFile(ctx, s.Path, openfile.Rules{Limit: maxProgramOnModel, Start: pte.StartBytes,
		Check: func(start []byte) error { return pte.CheckStart(start, pte.FormatPTE) }})
	if err != nil {
		return nil, err
	}
	model, err := fvp.Find(s.options.fvp, c.Family)
	if err != nil {
		return nil, modelError(err)
	}
	if m.runner, err = fvp.NewRunner(model, s.options.ELF, program, len(m.inputs), fvp.RunnerOptions{Config: c}); err != nil {
		return nil, modelError(err)
	}
	return m, nil
}

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
