package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/etrun-go/etrun/cmd/etrun/internal/input"
	"github.com/etrun-go/etrun/cmd/etrun/internal/npy"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// withArchive compares outputs with the arrays of --against. Outputs that no array can
// hold, such as text, are left out, and named.
func (p *compareCommand) withArchive(ctx context.Context, r *compareReport, s *session.Session) error {
	arrays, err := input.ReadArchive(ctx, input.Stdin(p.against), s.InputLimit())
	if err != nil {
		return err
	}
	named := make(map[string]*npy.Array)
	for _, a := range arrays {
		named[a.Name] = a
	}
	err = s.Once(ctx, func(k int, st *session.Step) error {
		outputs, err := st.Outputs()
		if err != nil {
			return err
		}
		wants := make([]*tensor.Value, len(outputs))
		for i, got := range outputs {
			name := output.ArrayName(k, i)
			if a := named[name]; a != nil {
				wants[i] = wanted(a, got)
				delete(named, name)
				continue
			}
			if got.Kind == tensor.KindTensor {
				return fmt.Errorf("%w: %s: no array %q", errDiffer, p.against, name)
			}
			p.note("warning: %s: no array %q: the output, %v, is not compared", p.against, name, got.Kind)
		}
		return p.add(r, k, st, wants)
	})
	if err == nil && len(named) > 0 {
		p.note("warning: %s: no output for %s: %.200q", p.against, count(len(named), "array", "arrays"), slices.Sorted(maps.Keys(named)))
	}
	return err
}

// wanted is an array as the value that an output is to be: a number where the output is
// one and the array has rank 0.
func wanted(a *npy.Array, got *tensor.Value) *tensor.Value {
	d := a.DType
	if got.Kind == tensor.KindTensor && a.Holds(got.Tensor.DType) {
		d = got.Tensor.DType
	}
	t := tensor.Make(d, a.Sizes, nil, tensor.Static)
	t.Bind(tensor.AlignedBytes(t.NBytes()))
	copy(t.Data, a.Data)
	v := tensor.TensorValue(t)
	if t.Rank() > 0 {
		return &v
	}
	switch {
	case got.Kind == tensor.KindInt && d == tensor.Int64:
		v = tensor.IntValue(tensor.Data[int64](t)[0])
	case got.Kind == tensor.KindBool && d == tensor.Bool:
		v = tensor.BoolValue(t.Data[0] != 0)
	case got.Kind == tensor.KindDouble && d == tensor.Float64:
		v = tensor.DoubleValue(tensor.Data[float64](t)[0])
	}
	return &v
}
