// Package exectest (no compatibility promise) loads methods without files, generates random ones, and finds accesses to memory that is not
// in use, for tests of what prepares and runs methods.
package exectest

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/exec"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/prepare"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Program is a method of a file, or without one.
type Program struct {
	slot exec.Slot
	exec exec.Program
	file *pte.Program
	spec *pte.Method
}

// New returns a program whose method is prepared by the first load, with the named data of the file, which may be nil. Folding may
// compute budget bytes. Without AsWritten, state that nothing writes is an error.
func New(file *pte.Program, spec *pte.Method, budget int64, o prepare.Options) *Program {
	if file == nil {
		file = &pte.Program{Methods: []pte.Method{*spec}}
	}
	o.Known, o.Limits.Planned = o.Operators, cmp.Or(o.Limits.Planned, 1<<30)
	p := &Program{file: file, spec: spec}
	p.exec = exec.Program{Observers: &exec.Observers{Faults: faults{}}, Pool: cpu.NewPool(1), Limits: o.Limits, Steps: 10_000_000,
		Planning: o.Plan, Retain: func() {}, Release: func() error { return nil }}
	p.slot.Init(&prepare.Source{Options: o, File: file, Method: spec, Pool: p.exec.Pool, Data: p, Size: budget}, p.exec.Observers)
	return p
}

// Named returns named data of the file.
func (p *Program) Named(key string) ([]byte, bool) {
	b, ok := p.file.Named[key]
	return b, ok
}

// TensorData returns nothing: there are no other files.
func (*Program) TensorData(*pte.Tensor) (b []byte, ok bool, err error) { return nil, false, nil }

// Prepare prepares the method, once.
func (p *Program) Prepare(ctx context.Context) (*prepare.Method, error) {
	return p.slot.Get(ctx, &p.exec)
}

// Load makes an instance.
func (p *Program) Load(ctx context.Context, o exec.Options) (*Method, error) {
	prepared, err := p.Prepare(ctx)
	if err != nil {
		return nil, err
	}
	return p.instance(ctx, prepared, o)
}

func (p *Program) instance(ctx context.Context, prepared *prepare.Method, o exec.Options) (*Method, error) {
	m, err := exec.New(ctx, nil, &p.exec, prepared, o)
	return &Method{Instance: m, Prepared: prepared, Spec: p.spec, of: p}, err
}

// Method is a loaded method.
type Method struct {
	*exec.Instance
	Prepared *prepare.Method
	Spec     *pte.Method
	of       *Program
	guard    *Guard
}

// Poison overwrites dead bytes of the method in all runs that follow, which fail if a step writes them.
func (m *Method) Poison(poison byte) {
	m.guard = NewGuard(m.Plan(), poison)
	if err := m.Observe(m.guard); err != nil {
		panic(err)
	}
}

// Execute runs the method.
func (m *Method) Execute(ctx context.Context) error {
	if m.guard == nil {
		return m.Instance.Execute(ctx)
	}
	return errors.Join(m.Instance.Execute(m.guard), m.guard.Fault)
}

// Listing describes the steps and storages of the method.
func (m *Method) Listing() string { return Listing(m.Plan()) }

// Load makes an instance of a method without a file.
func Load(spec *pte.Method, budget int64, o prepare.Options) (*Method, error) {
	return New(nil, spec, budget, o).Load(context.Background(), exec.Options{})
}

// With makes an instance of the method as it was prepared in another way.
func (m *Method) With(prepared *prepare.Method) (*Method, error) {
	m.of.exec.Planning = prepared.Plan.Options
	return m.of.instance(context.Background(), prepared, exec.Options{})
}

// SetWords sets the inputs, vectors of words and bools, for a run.
func (m *Method) SetWords(run int) error {
	for i := range m.NumInputs() {
		x := m.Input(i)
		FillWords(x, i, run)
		if err := m.SetInput(i, x); err != nil {
			return err
		}
	}
	return nil
}

// FillWords sets the elements of input i for a run.
func FillWords(x *tensor.Tensor, i, run int) {
	if x.DType == tensor.Bool {
		x.Data[0] = byte(run >> i & 1)
		return
	}
	for k := range x.Numel() {
		binary.LittleEndian.PutUint64(x.Data[8*k:], uint64(run+10*i+100*k))
	}
}

// Input returns a zeroed tensor of the declared type and sizes of input i.
func (m *Method) Input(i int) *tensor.Tensor {
	d := m.Spec.Values[m.Spec.Inputs[i]].Tensor
	x := tensor.Make(d.DType, d.Sizes, d.DimOrder, tensor.Static)
	x.Bind(tensor.AlignedBytes(x.NBytes()))
	return x
}

// Tensor returns an output that must exist and be a tensor.
func (m *Method) Tensor(i int) *tensor.Tensor {
	v, err := m.Output(i)
	if err != nil {
		panic(err)
	}
	return v.Tensor
}

// faults makes errors that wrap their causes.
type faults struct{}

func (faults) Input(method string, i int, got, want string) error {
	return fmt.Errorf("input %d: got %s, want %s", i, got, want)
}

func (faults) Output(method string, i int, reason string) error {
	return fmt.Errorf("output %d: %s", i, reason)
}

func (faults) Batch(_, reason string) error    { return errors.New(reason) }
func (faults) Argument(reason string) error    { return errors.New(reason) }
func (faults) Use(_ string, closed bool) error { return fmt.Errorf("in use, or closed: %v", closed) }
func (faults) Endless(steps int64) error       { return fmt.Errorf("more than %d steps", steps) }
func (faults) Prepare(_ string, e error) error { return e }
func (faults) Reason(err error) string         { return err.Error() }

func (faults) Step(_ string, at ir.Origin, name string, _ bool, err error) error {
	if _, ok := errors.AsType[*ir.StepError](err); ok {
		return err
	}
	return &ir.StepError{Origin: at, Name: name, Err: err}
}

func (faults) Panic(value any, _ bool) error { return fmt.Errorf("panic: %v", value) }
