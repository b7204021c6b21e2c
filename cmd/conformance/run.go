package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/compare"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// isRefusal reports whether err is an error of the runtime, not a wrong output.
func isRefusal(err error) bool {
	_, load := errors.AsType[*etrun.LoadError](err)
	_, run := errors.AsType[*etrun.InstructionError](err)
	_, input := errors.AsType[*etrun.InputError](err)
	return load || run || input
}

// run makes the calls of a case, in order, on one loaded program.
func (r runner) run(ctx context.Context, c *testCase) error {
	program, err := fs.ReadFile(c.files, c.program)
	if err != nil {
		return err
	}
	prog, err := etrun.Parse(program, etrun.WithDelegates(all.Backends()...), etrun.WithDataFiles(c.data...),
		etrun.WithDelegates(xnnpack.Backend{Engine: xnnpack.Engine(r.engine)}), etrun.WithLowering(r.lowering))
	if err != nil {
		return err
	}
	defer prog.Close()
	methods := make(map[string]*etrun.Method)
	var first *etrun.Method
	for i := range c.calls {
		k := &c.calls[i]
		m := methods[k.Method]
		if m == nil {
			var options []etrun.MethodOption
			if first != nil {
				options = append(options, etrun.WithStateOf(first))
			}
			if m, err = prog.Load(ctx, k.Method, options...); err != nil {
				return err
			}
			defer m.Close()
			methods[k.Method] = m
			if first == nil {
				first = m
			}
		}
		if err := c.call(ctx, m, k); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
	}
	return nil
}

func (c *testCase) call(ctx context.Context, m *etrun.Method, k *call) error {
	for i := range k.Inputs {
		v, err := c.value(&k.Inputs[i], k.Inputs[i].file())
		if err != nil {
			return fmt.Errorf("input %d: %w", i, err)
		}
		if err := m.SetValue(i, v); err != nil {
			return err
		}
	}
	if err := m.Execute(ctx); err != nil {
		return err
	}
	if k.Outputs != nil && len(k.Outputs) != m.NumOutputs() {
		return fmt.Errorf("%d outputs, want %d", m.NumOutputs(), len(k.Outputs))
	}
	for i := range k.Outputs {
		got, err := m.Output(i)
		if err != nil {
			return err
		}
		if err := c.compare(&got, &k.Outputs[i]); err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
	}
	return nil
}

func (v *value) file() string {
	if v.File != "" {
		return v.File
	}
	return v.Data
}

// value reads an input or an expected output; the elements of a tensor come from file.
func (c *testCase) value(v *value, file string) (tensor.Value, error) {
	switch x := v.Value.(type) {
	case float64:
		if v.Kind == "int" {
			return tensor.IntValue(int64(x)), nil
		}
		return tensor.DoubleValue(x), nil
	case bool:
		return tensor.BoolValue(x), nil
	case string:
		return tensor.StringValue(x), nil
	}
	if v.Kind != "" && v.Kind != "tensor" {
		return tensor.Value{}, nil
	}
	d, err := tensor.ParseDType(v.DType)
	if err != nil {
		return tensor.Value{}, err
	}
	if err := tensor.CheckShape(v.Shape, v.DimOrder); err != nil {
		return tensor.Value{}, err
	}
	b, err := fs.ReadFile(c.files, file)
	if err != nil {
		return tensor.Value{}, err
	}
	t := tensor.Make(d, v.Shape, v.DimOrder, tensor.Static)
	if len(b) != t.NBytes() {
		return tensor.Value{}, fmt.Errorf("%s: %d bytes, want %d for %v", file, len(b), t.NBytes(), t)
	}
	t.Bind(tensor.AlignedBytes(len(b)))
	copy(t.Data, b)
	return tensor.TensorValue(t), nil
}

// compare compares an output with the expected one, or with the alternative.
func (c *testCase) compare(got *tensor.Value, v *value) error {
	if v.Compare == "shape" {
		if got.Kind != tensor.KindTensor || got.Tensor.DType.String() != v.DType || !slices.Equal(got.Tensor.Sizes, v.Shape) {
			return fmt.Errorf("got %v, want %s%v", got.Tensor, v.DType, v.Shape)
		}
		return nil
	}
	tol := kernels.Tolerance{Rel: 1e-6} // scalars
	if v.ATol != nil && v.RTol != nil {
		tol = kernels.Tolerance{Abs: *v.ATol, Rel: *v.RTol}
	}
	want, err := c.value(v, v.file())
	if err != nil {
		return err
	}
	err = compare.Values(got, &want, tol)
	if err != nil && v.Reference != "" {
		if other, rerr := c.value(v, v.Reference); rerr == nil && compare.Values(got, &other, tol) == nil {
			return nil
		}
	}
	return err
}
