//go:build linux && (amd64 || arm64)

package isolate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/internal/sandbox"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/serve"
)

// Program is a program in a separate process, which is replaced when it ends.
type Program struct {
	options Options
	hello   *hello
	layers  []sandbox.Layer
	ctx     context.Context // canceled by Close
	cancel  context.CancelFunc
	closed  chan struct{} // closed when the last process has ended

	mu      sync.Mutex
	current *client       // nil while there is none
	change  chan struct{} // closed when current changes
	down    error
}

var _ serve.Program = (*Program)(nil)

// Open starts a process and waits until its program is loaded.
func Open(ctx context.Context, o Options) (*Program, error) {
	o.Instances = max(o.Instances, 1)
	o.Unbounded = cmp.Or(o.Unbounded, 64<<20)
	o.Start, o.Grace = cmp.Or(o.Start, 5*time.Minute), cmp.Or(o.Grace, 10*time.Second)
	o.BackOff.Min, o.BackOff.Max = cmp.Or(o.BackOff.Min, 10*time.Millisecond), cmp.Or(o.BackOff.Max, 30*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	p := &Program{options: o, closed: make(chan struct{}), change: make(chan struct{})}
	if o.Instances > maxLanes {
		closeAll(o.Files)
		return nil, fmt.Errorf("%d instances, isolated models have at most %d: %w", o.Instances, maxLanes, etrun.ErrMemory)
	}
	c, err := connect(ctx, &p.options, nil)
	if err != nil {
		closeAll(o.Files)
		return nil, err
	}
	p.hello, p.layers, p.current = c.hello, c.layers, c
	p.ctx, p.cancel = context.WithCancel(context.Background())
	go p.supervise(c)
	return p, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // the file was only read
	}
}

// Digest returns the digest of the program's bytes.
func (p *Program) Digest() string { return p.hello.Digest }

// Layers returns how the process is confined.
func (p *Program) Layers() []sandbox.Layer { return p.layers }

// PID returns the process's id, 0 while there is none.
func (p *Program) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil {
		return 0
	}
	return p.current.process.cmd.Process.Pid
}

// supervise replaces processes that end, until Close.
func (p *Program) supervise(c *client) {
	defer close(p.closed)
	wait := p.options.BackOff.Min
	for begun := time.Now(); ; begun = time.Now() {
		select {
		case <-c.dead:
		case <-p.ctx.Done():
			c.kill(etrun.ErrClosed)
			<-c.dead
			return
		}
		if time.Since(begun) > 10*wait {
			wait = p.options.BackOff.Min
		}
		p.ended(c.err, wait)
		if c, wait = p.restart(wait); c == nil {
			return
		}
		p.set(c, nil)
		p.options.Log.Info("model process restarted", "pid", c.process.cmd.Process.Pid)
	}
}

// ended reports a process that ended.
func (p *Program) ended(err error, wait time.Duration) {
	p.set(nil, err)
	p.options.Log.Error("model process ended", "error", err, "restart", wait)
	if p.options.Ended != nil {
		p.options.Ended(err)
	}
}

// restart starts processes until one has loaded its program, and returns nil after Close. next is
// the delay if that process ends soon.
func (p *Program) restart(wait time.Duration) (c *client, next time.Duration) {
	for {
		select {
		case <-time.After(wait):
		case <-p.ctx.Done():
			return nil, 0
		}
		wait = min(2*wait, p.options.BackOff.Max)
		ctx, cancel := context.WithTimeoutCause(p.ctx, p.options.Start, fmt.Errorf("%w: not loaded within %v", serve.ErrCrashed, p.options.Start))
		c, err := connect(ctx, &p.options, p.hello)
		cancel()
		if err == nil {
			return c, wait
		}
		if p.ctx.Err() == nil {
			p.ended(err, wait)
		}
	}
}

// set replaces the process.
func (p *Program) set(c *client, down error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current, p.down = c, down
	close(p.change)
	p.change = make(chan struct{})
}

// Down returns why there is no process, nil if there is one.
func (p *Program) Down() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.down
}

// client waits for a loaded process that has not ended.
func (p *Program) client(ctx context.Context) (*client, error) {
	for {
		c, change := p.now()
		if c != nil && !c.ended() {
			return c, nil
		}
		select {
		case <-change:
		case <-p.ctx.Done():
			return nil, etrun.ErrClosed
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// now returns the current process, nil if there is none, and a channel that is closed by the next change.
func (p *Program) now() (*client, chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current, p.change
}

func (c *client) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err != nil
}

// Close ends the process and waits.
func (p *Program) Close() error {
	p.cancel()
	<-p.closed
	closeAll(p.options.Files)
	return nil
}

// MethodNames returns the methods that the process serves.
func (p *Program) MethodNames() (names []string) {
	for i := range p.hello.Methods {
		names = append(names, p.hello.Methods[i].Name)
	}
	return names
}

// Meta describes the inputs and outputs of a method.
func (p *Program) Meta(name string) (*etrun.MethodMeta, error) {
	i, err := p.hello.method(name)
	if err != nil {
		return nil, err
	}
	return &p.hello.Methods[i], nil
}

// closedError returns etrun.ErrClosed for errors that are due to Close.
func (p *Program) closedError(err error) error {
	if p.ctx.Err() != nil && (errors.Is(err, errUnsent) || errors.Is(err, serve.ErrCrashed)) {
		return fmt.Errorf("%w: %w", etrun.ErrClosed, err)
	}
	return err
}

// Pool returns the pool of the process, which has tested it.
func (p *Program) Pool(_ context.Context, method string, _ int) (serve.Runner, error) {
	if p.ctx.Err() != nil {
		return nil, etrun.ErrClosed
	}
	i, err := p.hello.method(method)
	if err != nil {
		return nil, err
	}
	return &pool{program: p, method: i}, nil
}

// pool executes a method in the current process.
type pool struct {
	program *Program
	method  int
	closed  atomic.Bool
}

func (r *pool) Close() error {
	r.closed.Store(true)
	return nil
}

// Run executes the method in the process. A call that a process did not receive before it ended is
// sent to the next one.
func (r *pool) Run(ctx context.Context, inputs []tensor.Value, outputs []int, take func(k int, v *tensor.Value)) error {
	return r.run(ctx, run{Outputs: outputs}, inputs, take)
}

// RunRows is Run for the rows of several requests.
func (r *pool) RunRows(ctx context.Context, inputs []tensor.Value, outputs []int, take func(k int, v *tensor.Value)) error {
	return r.run(ctx, run{Outputs: outputs, Rows: true}, inputs, take)
}

func (r *pool) run(ctx context.Context, m run, inputs []tensor.Value, take func(k int, v *tensor.Value)) error {
	m.Method = uint64(r.method)
	for {
		if r.closed.Load() {
			return etrun.ErrClosed
		}
		c, err := r.program.client(ctx)
		if err != nil {
			return err
		}
		again := m
		err = c.run(ctx, &again, inputs, take)
		if !errors.Is(err, errUnsent) {
			return r.program.closedError(err)
		}
		c.settle(ctx)
	}
}

// settle waits until the end of the process is recorded.
func (c *client) settle(ctx context.Context) {
	select {
	case <-c.dead:
	case <-ctx.Done():
	}
}

// run makes a call on a lane.
func (c *client) run(ctx context.Context, m *run, inputs []tensor.Value, take func(k int, v *tensor.Value)) (err error) {
	select {
	case m.Lane = <-c.lanes:
	case <-c.dead:
		return errUnsent
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { c.lanes <- m.Lane }()
	start := m.Lane * (c.attach.In + c.attach.Out)
	in := &area{bytes: c.memory[start : start+c.attach.In]}
	out := &area{bytes: c.memory[start+c.attach.In : start+c.attach.In+c.attach.Out]}
	if m.Inputs, err = putAll(in, inputs); err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok {
		m.Timeout = max(int64(time.Until(deadline)), 1)
	}
	answer, err := c.call(ctx, func(id uint64) message {
		m.ID = id
		return m
	})
	if err != nil {
		return err
	}
	return c.deliver(m, answer, out, take)
}

// deliver checks outputs and passes them to take. The process may still write them: take must copy
// them exactly once.
func (c *client) deliver(m *run, answer *reply, out *area, take func(k int, v *tensor.Value)) error {
	metas := c.hello.Methods[m.Method].Outputs
	good := len(answer.Values) == len(m.Outputs)
	for k := 0; good && k < len(answer.Values); k++ {
		good = fits(&answer.Values[k], &metas[m.Outputs[k]])
	}
	values, err := out.values(answer.Values)
	if !good || err != nil {
		c.kill(fmt.Errorf("%w: outputs of the wrong kind, size or offset", errProtocol))
		return fmt.Errorf("%w: %w: outputs", serve.ErrCrashed, errProtocol)
	}
	for k := range values {
		take(k, &values[k])
	}
	return nil
}

// instance belongs to one process and ends with it.
type instance struct {
	program *Program
	client  *client
	method  int
	id      uint64
	bytes   int64
	closed  atomic.Bool
}

// Instance creates an instance in the current process.
func (p *Program) Instance(ctx context.Context, method string, sharing serve.Instance) (serve.Instance, error) {
	index, err := p.hello.method(method)
	if err == nil && p.ctx.Err() != nil {
		err = etrun.ErrClosed
	}
	if err != nil {
		return nil, err
	}
	m := &begin{Method: uint64(index)}
	var c *client
	if sharing != nil {
		other := sharing.(*instance)
		if other.closed.Load() {
			return nil, etrun.ErrClosed
		}
		c, m.Sharing = other.client, other.id
	} else if c, err = p.client(ctx); err != nil {
		return nil, err
	}
	answer, err := c.call(ctx, func(id uint64) message {
		m.ID, m.Instance = id, id
		return m
	})
	if errors.Is(err, errUnsent) && sharing == nil {
		c.settle(ctx)
		return p.Instance(ctx, method, nil)
	}
	if err != nil {
		return nil, lost(p.closedError(err))
	}
	if answer.Bytes < 0 || answer.Bytes > maxMemory {
		err := fmt.Errorf("%w: an instance of %d bytes", errProtocol, answer.Bytes)
		c.kill(err)
		return nil, fmt.Errorf("%w: %w", serve.ErrCrashed, err)
	}
	return &instance{program: p, client: c, method: index, id: m.ID, bytes: answer.Bytes}, nil
}

// lost returns the error of a call to an instance whose process has ended.
func lost(err error) error {
	if errors.Is(err, errUnsent) && !errors.Is(err, etrun.ErrClosed) {
		return fmt.Errorf("%w: %w", serve.ErrEnded, err)
	}
	return err
}

func (i *instance) Bytes() int64 { return i.bytes }

// Run executes the instance's method.
func (i *instance) Run(ctx context.Context, inputs []tensor.Value, outputs []int, take func(k int, v *tensor.Value)) error {
	if i.closed.Load() {
		return etrun.ErrClosed
	}
	err := i.client.run(ctx, &run{Method: uint64(i.method), Instance: i.id, Outputs: outputs}, inputs, take)
	return lost(i.program.closedError(err))
}

// Reset restores the instance's initial state.
func (i *instance) Reset() error {
	if i.closed.Load() {
		return etrun.ErrClosed
	}
	_, err := i.client.call(context.Background(), func(id uint64) message { return &reset{id, i.id} })
	return lost(i.program.closedError(err))
}

// Close ends the instance.
func (i *instance) Close() error {
	if i.closed.Swap(true) {
		return nil
	}
	_ = i.client.send(&drop{i.id}) // a process that has ended has no instances
	return nil
}
