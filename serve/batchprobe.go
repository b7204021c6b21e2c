package serve

import (
	"context"
	"fmt"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// newBatches returns the batches of a method. Its inputs and outputs must support any number of rows up to the limit, and its rows
// must be independent: that is checked of a run of two rows, as it is of every run of several requests.
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
	r, ok := e.pool.(RowRunner)
	if !ok {
		return nil, fmt.Errorf("method %q: a batch of %d: the program runs no rows of several requests", e.method, maxRows)
	}
	l := &batches{endpoint: e, pool: rowsOfSeveral{r}, maxRows: maxRows, delay: e.version.model.config.BatchDelay}
	if err := l.sample().execute(ctx, l.pool); err != nil {
		return nil, fmt.Errorf("a batch of %d: %w", maxRows, err)
	}
	return l, nil
}

// rowsOfSeveral runs the rows of several requests.
type rowsOfSeveral struct{ RowRunner }

func (t rowsOfSeveral) Run(ctx context.Context, inputs []tensor.Value, outputs []int, take func(k int, v *tensor.Value)) error {
	return t.RunRows(ctx, inputs, outputs, take)
}

// sample returns a call of two rows.
func (l *batches) sample() *call {
	c := &call{endpoint: l.endpoint}
	for i := range l.endpoint.inputs {
		meta := l.endpoint.inputs[i].meta
		t := tensor.New(meta.DType, append([]int{2}, meta.Sizes[1:]...)...)
		randomize(t, uint64(i))
		c.values = append(c.values, tensor.TensorValue(t))
	}
	return c.askAll()
}

// askAll makes a call return all outputs.
func (c *call) askAll() *call {
	for i := range c.endpoint.outputs {
		c.wanted = append(c.wanted, wanted{output: i})
	}
	return c
}
