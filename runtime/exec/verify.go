package exec

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/prepare"
)

// compareWith makes each run compare its outputs with those of the same method without lowering, which has its own inputs and state.
func (m *Instance) compareWith(ctx context.Context, plain *prepare.Method) error {
	r := newInstance(m.program, plain)
	if m.shares != nil {
		r.shares = m.shares.reference
	}
	m.reference = r
	return r.build(ctx, nil)
}

// copyInputs copies the inputs of a run to the reference.
func (m *Instance) copyInputs() error {
	for i := range m.inputs {
		if err := m.reference.SetValue(i, *m.inputs[i].value); err != nil {
			return err
		}
	}
	return nil
}

// verify runs the reference and computes the distances.
func (m *Instance) verify(ctx context.Context) error {
	m.distances = m.distances[:0]
	if err := m.reference.execute(ctx); err != nil {
		return fmt.Errorf("without lowering: %w", err)
	}
	for i, v := range m.ir.Outputs {
		got, want := &m.values[v], &m.reference.values[m.reference.ir.Outputs[i]]
		m.distances = append(m.distances, distance(i, got, want))
	}
	return nil
}

// Distances returns the differences of the outputs of the last run, nil without Options.Plain or during a run.
func (m *Instance) Distances() []Distance {
	if m.reference == nil || m.begin() != nil {
		return nil
	}
	defer m.end()
	return slices.Clone(m.distances)
}

// distance compares two values of an output. Values of different kinds, types or sizes are
// infinitely far apart.
func distance(output int, got, want *tensor.Value) Distance {
	d := Distance{Output: output, Index: -1}
	far := Distance{Output: output, Absolute: math.Inf(1), Relative: math.Inf(1)}
	if got.Kind != want.Kind {
		return far
	}
	if got.Kind != tensor.KindTensor {
		if got.Bool != want.Bool || got.Str != want.Str {
			return far
		}
		d.add(0, got.Double+float64(got.Int), want.Double+float64(want.Int))
		return d
	}
	x, y := got.Tensor, want.Tensor
	if x.DType != y.DType || !slices.Equal(x.Sizes, y.Sizes) || !slices.Equal(x.DimOrder, y.DimOrder) {
		return far
	}
	for i, size := 0, x.DType.Size(); i < x.Numel(); i++ {
		a, ok := tensor.Get[float64](x.Data[i*size:], x.DType)
		b, _ := tensor.Get[float64](y.Data[i*size:], y.DType)
		if !ok { // complex
			if !slices.Equal(x.Data[i*size:(i+1)*size], y.Data[i*size:(i+1)*size]) {
				return far
			}
			continue
		}
		d.add(i, a, b)
	}
	return d
}

// add includes element i.
func (d *Distance) add(i int, got, want float64) {
	if got == want || math.IsNaN(got) && math.IsNaN(want) {
		return
	}
	a := math.Abs(got - want)
	if math.IsNaN(a) {
		a = math.Inf(1)
	}
	if a > d.Absolute {
		d.Index, d.Absolute, d.Relative = i, a, a/math.Abs(want)
	}
}
