package serve

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/serve/oip"
)

// batches combines calls of a method into runs of several rows: the first dimension of all inputs
// and outputs.
type batches struct {
	endpoint *endpoint
	pool     Runner // of the rows of several requests
	maxRows  int    // largest number of rows of a batch
	delay    time.Duration

	mu   sync.Mutex
	open []*batch // those that accept more calls
}

// batch is a set of calls that are executed together.
type batch struct {
	owner  *batches
	rows   int
	full   chan struct{} // closed when no more rows fit
	ctx    context.Context
	cancel context.CancelFunc // called when no caller waits any more

	members []*member
	present int // waiting members
}

// member is a call in a batch.
type member struct {
	call     *call
	rows     int
	canceled bool
	done     chan struct{}
	err      error
}

// rows returns the size of the first dimension of all inputs, 0 if the call cannot be batched.
func (c *call) rows() (n int) {
	for i := range c.values {
		t := c.values[i].Tensor
		if c.values[i].Kind != tensor.KindTensor || t.Rank() == 0 || i > 0 && t.Sizes[0] != n {
			return 0
		}
		n = t.Sizes[0]
	}
	return n
}

// fits reports whether two calls differ only in their rows.
func (c *call) fits(other *call) bool {
	for i := range c.values {
		if !slices.Equal(c.values[i].Tensor.Sizes[1:], other.values[i].Tensor.Sizes[1:]) {
			return false
		}
	}
	return true
}

// run adds a call to a batch and waits for its outputs.
func (l *batches) run(ctx context.Context, c *call) error {
	m := &member{call: c, rows: c.rows(), done: make(chan struct{})}
	b := l.join(m)
	select {
	case <-m.done:
		if m.err == nil {
			return context.Cause(ctx)
		}
		return m.err
	case <-ctx.Done():
		b.drop(m)
		return context.Cause(ctx)
	}
}

// join finds or starts the batch of a call.
func (l *batches) join(m *member) *batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.open, func(b *batch) bool { return b.rows+m.rows <= l.maxRows && b.members[0].call.fits(m.call) })
	if i < 0 {
		b := &batch{owner: l, full: make(chan struct{})}
		b.ctx, b.cancel = context.WithCancel(context.Background())
		l.open, i = append(l.open, b), len(l.open)
		l.endpoint.version.users.Add(1) // the batch may outlive its requests
		go b.run()
	}
	b := l.open[i]
	b.members = append(b.members, m)
	b.rows += m.rows
	b.present++
	if b.rows >= l.maxRows {
		l.open = slices.Delete(l.open, i, i+1)
		close(b.full)
	}
	return b
}

// drop removes a call whose client no longer waits.
func (b *batch) drop(m *member) {
	b.owner.mu.Lock()
	defer b.owner.mu.Unlock()
	m.canceled = true
	if b.present--; b.present == 0 {
		b.end()
		b.cancel()
	}
}

// end closes the batch to more calls. b.owner.mu is locked.
func (b *batch) end() {
	if i := slices.Index(b.owner.open, b); i >= 0 {
		b.owner.open = slices.Delete(b.owner.open, i, i+1)
	}
}

// run waits for more calls, then for a turn, during which more may join, and executes them.
func (b *batch) run() {
	defer b.owner.endpoint.version.release()
	defer b.cancel()
	begun := time.Now()
	if b.owner.delay > 0 {
		timer := time.NewTimer(b.owner.delay)
		select {
		case <-timer.C:
		case <-b.full:
		case <-b.ctx.Done():
		}
		timer.Stop()
	}
	endTurn, err := b.owner.endpoint.queued(b.ctx)
	members := b.close()
	if err == nil {
		b.owner.endpoint.statistics.queue.add(len(members), time.Since(begun))
		b.execute(members)
		endTurn()
	}
	for _, m := range members {
		m.err = cmp.Or(err, m.err)
		close(m.done)
	}
}

// close ends the batch and returns the calls that still have a caller.
func (b *batch) close() (members []*member) {
	b.owner.mu.Lock()
	defer b.owner.mu.Unlock()
	b.end()
	for _, m := range b.members {
		if !m.canceled {
			members = append(members, m)
		}
	}
	return members
}

// execute runs the calls together, or each by itself if that fails: because rows are not independent at these sizes, or because
// of the contents of one.
func (b *batch) execute(members []*member) {
	if len(members) > 1 && b.join(members) == nil {
		return
	}
	for _, m := range members {
		m.err = m.call.serve(b.ctx, b.owner.endpoint.pool, 1)
	}
}

func (b *batch) join(members []*member) error {
	joined := &call{endpoint: b.owner.endpoint}
	for i := range joined.endpoint.inputs {
		joined.values = append(joined.values, joinInput(members, i))
	}
	if err := joined.askAll().serve(b.ctx, b.owner.pool, len(members)); err != nil {
		return err
	}
	return joined.split(members)
}

// joinInput concatenates input i of all members.
func joinInput(members []*member, i int) tensor.Value {
	first := members[0].call.values[i].Tensor
	sizes := slices.Clone(first.Sizes)
	sizes[0] = 0
	for _, m := range members {
		sizes[0] += m.rows
	}
	t := tensor.Make(first.DType, sizes, nil, tensor.Static)
	t.Bind(members[0].call.endpoint.version.alloc(t.NBytes()))
	at := 0
	for _, m := range members {
		at += copy(t.Data[at:], m.call.values[i].Tensor.Data)
	}
	return tensor.TensorValue(t)
}

var errRows = errors.New("the number of rows of an output differs from that of the inputs")

// split copies to each member its rows of the outputs.
func (c *call) split(members []*member) error {
	total := 0
	for _, m := range members {
		total += m.rows
	}
	for i := range c.outputs {
		if shape := c.outputs[i].Shape; len(shape) == 0 || shape[0] != total {
			return fmt.Errorf("output %q: %w", c.outputs[i].Name, errRows)
		}
	}
	first := 0
	for _, m := range members {
		m.call.outputs = make([]oip.Tensor, len(m.call.wanted))
		for k, w := range m.call.wanted {
			m.call.outputs[k] = rowsOf(&c.outputs[w.output], first, m.rows)
			m.call.outputs[k].Binary = w.binary
		}
		first += m.rows
	}
	return nil
}

// rowsOf copies rows of a tensor.
func rowsOf(t *oip.Tensor, first, n int) oip.Tensor {
	part := *t
	row := len(t.Data) / max(t.Shape[0], 1)
	part.Shape = slices.Clone(t.Shape)
	part.Shape[0] = n
	part.Data = bytes.Clone(t.Data[first*row : (first+n)*row])
	return part
}
