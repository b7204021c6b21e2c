package serve

import (
	"context"
	"fmt"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/serve/oip"
)

// Tolerance of the rows of a batch: kernels may sum in a different order for different sizes.
const (
	batchAbs = 1e-5
	batchRel = 1e-4
)

// newBatches returns the batches of a method. Its inputs and outputs must support any number of
// rows up to the limit, and its rows must be independent: it runs two rows together and separately
// and compares the results.
func newBatches(ctx context.Context, e *endpoint) (*batches, error) {
	maxRows := e.version.model.config.MaxBatch
	for _, list := range [][]slot{e.inputs, e.outputs} {
		for i := range list {
			meta := &list[i].meta
			bound := meta.Dynamism == tensor.DynamicBound && len(meta.Sizes) > 0 && meta.Sizes[0] >= maxRows
			if meta.Kind != tensor.KindTensor || !bound && meta.Dynamism != tensor.DynamicUnbound || len(meta.Sizes) == 0 {
				return nil, fmt.Errorf("method %q: a batch of %d, but %s is %s", e.method, maxRows, list[i].name, list[i].want())
			}
		}
	}
	l := &batches{endpoint: e, maxRows: maxRows, delay: e.version.model.config.BatchDelay}
	return l, l.probe(ctx, e.pool)
}

func (l *batches) probe(ctx context.Context, r Runner) error {
	members := []*member{l.sample(1), l.sample(2)}
	joined := &call{endpoint: l.endpoint, wanted: members[0].call.wanted}
	for i := range l.endpoint.inputs {
		joined.values = append(joined.values, joinInput(members, i))
	}
	if err := joined.execute(ctx, r); err != nil {
		return fmt.Errorf("method %q with two rows: %w", l.endpoint.method, err)
	}
	if err := joined.split(members); err != nil {
		return fmt.Errorf("method %q cannot be batched: %w", l.endpoint.method, err)
	}
	for row, member := range members {
		together := member.call.outputs
		if err := member.call.execute(ctx, r); err != nil {
			return fmt.Errorf("method %q with one row: %w", l.endpoint.method, err)
		}
		for i := range together {
			if at := differ(&together[i], &member.call.outputs[i]); at >= 0 {
				return fmt.Errorf("method %q cannot be batched: row %d of output %q depends on the other row (element %d)",
					l.endpoint.method, row, together[i].Name, at)
			}
		}
	}
	return nil
}

// sample returns a call of one row, with different elements for each seed.
func (l *batches) sample(seed uint64) *member {
	c := &call{endpoint: l.endpoint}
	for i := range l.endpoint.inputs {
		meta := l.endpoint.inputs[i].meta
		sizes := append([]int{1}, meta.Sizes[1:]...)
		t := tensor.New(meta.DType, sizes...)
		randomize(t, seed*1000+uint64(i))
		c.values = append(c.values, tensor.TensorValue(t))
	}
	for i := range l.endpoint.outputs {
		c.wanted = append(c.wanted, wanted{output: i})
	}
	return &member{call: c, rows: 1}
}

// differ returns the first element that differs beyond the tolerance, -1 if none does.
func differ(a, b *oip.Tensor) int {
	if len(a.Data) != len(b.Data) {
		return 0
	}
	d, _ := a.Datatype.DType()
	for i := 0; i < len(a.Data); i += d.Size() {
		x, _ := tensor.Get[float64](a.Data[i:], d)
		y, _ := tensor.Get[float64](b.Data[i:], d)
		distance := max(x-y, y-x)
		if x != y && (!d.IsFloat() || !(distance <= batchAbs+batchRel*max(y, -y))) && !(x != x && y != y) {
			return i / d.Size()
		}
	}
	return -1
}
