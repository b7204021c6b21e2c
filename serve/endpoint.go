package serve

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/trace"
	"github.com/etrun-go/etrun/serve/oip"
)

// endpoint is a served method.
type endpoint struct {
	version         *version
	method          string
	inputs, outputs []slot
	pool            Runner
	batches         *batches // nil if requests are not batched
	statistics      statistics
}

func newEndpoint(v *version, method string) (*endpoint, error) {
	meta, err := v.program.Meta(method)
	if err != nil {
		return nil, err
	}
	e := &endpoint{version: v, method: meta.Name}
	if e.inputs, err = slotsOf(meta.Inputs, "input"); err != nil {
		return nil, fmt.Errorf("method %q: %w", meta.Name, err)
	}
	if e.outputs, err = slotsOf(meta.Outputs, "output"); err != nil {
		return nil, fmt.Errorf("method %q: %w", meta.Name, err)
	}
	return e, nil
}

// prepare creates all instances, tests each of them, and checks whether rows may be batched.
func (e *endpoint) prepare(ctx context.Context) (err error) {
	c := &e.version.model.config
	e.pool, err = e.version.program.Pool(ctx, e.method, c.Instances)
	if err != nil || c.MaxBatch == 1 {
		return err
	}
	e.batches, err = newBatches(ctx, e)
	return err
}

// try runs the method on random inputs.
func (e *endpoint) try(ctx context.Context) error {
	list := make([]etrun.ValueMeta, len(e.inputs))
	for i := range list {
		list[i] = e.inputs[i].meta
	}
	return e.pool.Run(ctx, samples(list), nil, nil)
}

// maxBytes bounds the bytes and elements of the inputs; ok is false if they have no bound.
func (e *endpoint) maxBytes() (bytes, elements int64, ok bool) {
	for i := range e.inputs {
		meta := &e.inputs[i].meta
		if meta.Kind != tensor.KindTensor {
			bytes, elements = bytes+maxScalar, elements+maxScalar
			continue
		}
		n, fits := tensor.Product(meta.Sizes)
		if !fits || meta.Dynamism == tensor.DynamicUnbound {
			return 0, 0, false
		}
		bytes, elements = add(bytes, int64(n)*int64(meta.DType.Size())), add(elements, int64(n))
	}
	return bytes, elements, true
}

// maxScalar bounds the bytes of a number or string.
const maxScalar = 4096

// add returns a+b, or the largest integer.
func add(a, b int64) int64 {
	if sum, carry := bits.Add64(uint64(a), uint64(b), 0); carry == 0 && sum <= math.MaxInt64 {
		return int64(sum)
	}
	return math.MaxInt64
}

// call is an inference whose request was checked.
type call struct {
	endpoint *endpoint
	values   []tensor.Value // the inputs; their bytes belong to the request
	wanted   []wanted
	outputs  []oip.Tensor // valid after run
}

// wanted is an output that a request asks for.
type wanted struct {
	output  int
	binary  bool
	classes int // number of the largest elements that replace the output, 0 for the output itself
}

// newCall checks a request against the method.
func (e *endpoint) newCall(r *oip.Request) (*call, error) {
	c := &call{endpoint: e, values: make([]tensor.Value, len(e.inputs))}
	given := make([]bool, len(e.inputs))
	for i := range r.Inputs {
		t := &r.Inputs[i]
		at := find(e.inputs, t.Name)
		switch {
		case at < 0:
			return nil, requestError("no input %q; method %q has %s", t.Name, e.method, namesOf(e.inputs))
		case given[at]:
			return nil, requestError("input %q twice", t.Name)
		}
		v, err := e.inputs[at].value(t)
		if err != nil {
			return nil, err
		}
		c.values[at], given[at] = v, true
	}
	for i := range given {
		switch {
		case given[i]:
		case !e.inputs[i].optional():
			return nil, requestError("input %q is missing, want %s", e.inputs[i].name, e.inputs[i].want())
		default:
			c.values[i] = e.inputs[i].meta.Scalar
		}
	}
	return c, c.ask(r)
}

// ask finds the outputs that the request asks for.
func (c *call) ask(r *oip.Request) error {
	all, err := r.Parameters.Bool("binary_data_output")
	if err != nil {
		return err
	}
	slots := c.endpoint.outputs
	if len(r.Outputs) == 0 {
		for i := range slots {
			c.wanted = append(c.wanted, wanted{output: i, binary: all})
		}
		return nil
	}
	for _, o := range r.Outputs {
		w := wanted{output: find(slots, o.Name), binary: all}
		if w.output < 0 {
			return requestError("no output %q; method %q has %s", o.Name, c.endpoint.method, namesOf(slots))
		}
		if slices.ContainsFunc(c.wanted, func(x wanted) bool { return x.output == w.output }) {
			return requestError("output %q twice", o.Name)
		}
		if o.Parameters["binary_data"] != nil {
			if w.binary, err = o.Parameters.Bool("binary_data"); err != nil {
				return err
			}
		}
		if w.classes, err = classesOf(&o); err != nil {
			return err
		}
		if o.Parameters["shared_memory_region"] != nil {
			return requestError("output %q: shared_memory_region, want binary_data, classification or no parameter", o.Name)
		}
		c.wanted = append(c.wanted, w)
	}
	return nil
}

// binary asks for the bytes of all outputs.
func (c *call) binary() {
	for k := range c.wanted {
		c.wanted[k].binary = true
	}
}

// maxClasses bounds the classes of a request.
const maxClasses = 10_000

// classesOf returns how many of the largest elements of an output are wanted, 0 for the output itself.
func classesOf(o *oip.Output) (int, error) {
	n, ok, err := o.Parameters.Int("classification")
	if err == nil && ok && (n < 1 || n > maxClasses) {
		err = requestError("output %q: classification %d, want 1 to %d", o.Name, n, maxClasses)
	}
	return int(n), err
}

// run waits for a turn and executes the call.
func (c *call) run(ctx context.Context) error {
	e := c.endpoint
	if e.batches != nil && c.rows() > 0 {
		return e.batches.run(ctx, c)
	}
	end, err := c.queued(ctx)
	if err != nil {
		return err
	}
	defer end()
	return c.serve(ctx, e.pool, 1)
}

// queued waits for a turn of one call.
func (c *call) queued(ctx context.Context) (end func(), err error) {
	begun := time.Now()
	if end, err = c.endpoint.queued(ctx); err == nil {
		c.endpoint.statistics.queue.add(1, time.Since(begun))
	}
	return end, err
}

// queued waits for a turn in the model's queue.
func (e *endpoint) queued(ctx context.Context) (end func(), err error) {
	m, begun := e.version.model, trace.Now()
	end, err = m.queue.acquire(ctx)
	m.waited(ctx, e.method, begun, err)
	return end, err
}

// execute runs the call. It fails if the deadline passed meanwhile: the answer would be too late.
func (c *call) execute(ctx context.Context, r Runner) error {
	c.outputs = make([]oip.Tensor, len(c.wanted))
	indexes := make([]int, len(c.wanted))
	for k, w := range c.wanted {
		indexes[k], c.outputs[k].Binary = w.output, w.binary
	}
	err := r.Run(ctx, c.values, indexes, func(k int, v *tensor.Value) {
		c.endpoint.outputs[indexes[k]].fill(&c.outputs[k], v, c.endpoint.version.alloc)
	})
	if err != nil {
		return err
	}
	return context.Cause(ctx)
}

// serve executes the call of some requests, and counts that.
func (c *call) serve(ctx context.Context, r Runner, requests int) error {
	begun := time.Now()
	err := c.execute(ctx, r)
	if err == nil {
		c.endpoint.statistics.infer.add(requests, time.Since(begun))
		c.endpoint.statistics.runs.Add(1)
	}
	return err
}
