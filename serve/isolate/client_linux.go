//go:build linux && (amd64 || arm64)

package isolate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sync"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/internal/sandbox"
	"github.com/etrun-go/etrun/serve"
)

// writeTime is how long a process may leave its messages unread.
const writeTime = 5 * time.Second

// client is one process and its pending calls.
type client struct {
	options *Options
	process *process
	link    *link
	hello   *hello
	memory  []byte
	attach  attach
	lanes   chan uint64 // the free ones
	ledger  *ledger
	layers  []sandbox.Layer
	dead    chan struct{} // closed when the process has ended and no call is pending

	mu    sync.Mutex
	calls map[uint64]chan *reply
	last  uint64
	err   error // why the process ended
	fault error // its protocol violation, or why it was killed
}

// connect starts a process and waits until its program is loaded, and all events of the load, such as its memory, are known. known is
// the hello of an earlier process, which must be equal, or nil.
func connect(ctx context.Context, o *Options, known *hello) (*client, error) {
	p, err := startProcess(o)
	if err != nil {
		return nil, err
	}
	c := &client{options: o, process: p, link: newLink(p.conn, toWorker, fromWorker, writeTime), lanes: make(chan uint64, o.Instances),
		dead: make(chan struct{}), calls: make(map[uint64]chan *reply)}
	stop := context.AfterFunc(ctx, func() { _ = p.cmd.Process.Kill() })
	if err = c.greet(known); err == nil {
		err = c.begin()
	}
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		c.discard(err)
		return nil, err
	}
	go c.listen()
	return c, nil
}

// begin handles the events of the load.
func (c *client) begin() error {
	if c.options.Loaded != nil {
		c.options.Loaded(c.hello.Digest)
	}
	c.ledger = newLedger(c.options, c.hello.Methods)
	for range c.hello.Events {
		m, err := c.link.read()
		if err != nil {
			return c.unready(err)
		}
		e, ok := m.(*event)
		if !ok {
			return fmt.Errorf("%w: %T among the events of the load", errProtocol, m)
		}
		if err := c.ledger.note(e); err != nil {
			return err
		}
	}
	return nil
}

// unready returns the error of a process whose messages ended before its model was loaded.
func (c *client) unready(err error) error {
	if errors.Is(err, errProtocol) {
		return err
	}
	c.process.kill()
	return fmt.Errorf("%w before its model was loaded: %s: %w", serve.ErrCrashed, c.process.ending(), err)
}

// discard ends a process before listen has started.
func (c *client) discard(why error) {
	c.process.kill()
	if c.ledger != nil {
		c.ledger.close(why)
	}
	_ = c.process.conn.Close()
	_ = c.process.memory.Close()
	if c.memory != nil {
		detach(c.memory)
	}
}

// greet reads the process's hello and sends its shared memory.
func (c *client) greet(known *hello) error {
	m, err := c.link.read()
	if err != nil {
		return c.unready(err)
	}
	h, ok := m.(*hello)
	switch {
	case !ok:
		return fmt.Errorf("%w: %T as the first message", errProtocol, m)
	case h.Fault.Class != 0:
		return h.Fault.err()
	case known != nil && (h.Digest != known.Digest || !reflect.DeepEqual(h.Methods, known.Methods)):
		return fmt.Errorf("%w: the program has changed", errProtocol)
	}
	c.hello, c.layers = h, append(c.process.layers, h.Layers...)
	in, out, err := laneOf(h.Methods, uint64(c.options.Unbounded))
	if err != nil {
		return err
	}
	c.attach = attach{uint64(c.options.Instances), in, out}
	for k := range c.attach.Lanes {
		c.lanes <- k
	}
	size := int64(c.attach.Lanes * (in + out)) // cannot overflow: both factors are bounded
	if limit := c.options.Shared; limit > 0 && size > limit {
		return fmt.Errorf("tensors of all calls take %d bytes of shared memory, the limit is %d: %w", size, limit, etrun.ErrMemory)
	}
	if c.memory, err = seal(c.process.memory, size); err != nil {
		return err
	}
	if err = c.link.write(&c.attach); err != nil {
		return c.unready(err)
	}
	return nil
}

// listen handles messages until the process ends.
func (c *client) listen() {
	for {
		m, err := c.link.read()
		if err == nil {
			err = c.handle(m)
		}
		if err != nil {
			c.end(err)
			return
		}
	}
}

// handle handles a message. An error is a protocol violation.
func (c *client) handle(m message) error {
	switch m := m.(type) {
	case *reply:
		c.mu.Lock()
		defer c.mu.Unlock()
		waiting := c.calls[m.ID]
		if waiting == nil {
			return fmt.Errorf("%w: an answer to no call", errProtocol)
		}
		delete(c.calls, m.ID)
		waiting <- m
		return nil
	case *event:
		return c.ledger.note(m)
	}
	return fmt.Errorf("%w: %T", errProtocol, m)
}

// end handles the end of the process: each pending call fails.
func (c *client) end(err error) {
	c.process.kill()
	c.failCalls(err)
	c.ledger.close(c.err)
	_ = c.process.conn.Close()
	_ = c.process.memory.Close()
	close(c.dead)
	for range c.attach.Lanes { // each is returned
		<-c.lanes
	}
	detach(c.memory)
}

// failCalls records why the process has ended, and ends the waits for answers.
func (c *client) failCalls(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	why := c.process.ending()
	if errors.Is(err, errProtocol) && c.fault == nil {
		c.fault = err
	}
	if c.fault != nil {
		why = c.fault.Error()
	}
	c.err = fmt.Errorf("%w: %s", serve.ErrCrashed, why)
	for id, waiting := range c.calls {
		delete(c.calls, id)
		close(waiting)
	}
}

// kill ends the process and records why.
func (c *client) kill(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fault == nil {
		c.fault = why
	}
	_ = c.process.cmd.Process.Kill() // listen handles the end
}

// errUnsent means that the process did not receive the call.
var errUnsent = errors.New("the model's process has ended")

// call sends a message with a new id and waits for the answer. When ctx ends, the call is canceled,
// and the process has some time to end it.
func (c *client) call(ctx context.Context, build func(id uint64) message) (*reply, error) {
	waiting := make(chan *reply, 1)
	id, err := c.addCall(waiting)
	if err != nil {
		return nil, err
	}
	if err := c.send(build(id)); err != nil {
		c.dropCall(id)
		return nil, err
	}
	select {
	case answer := <-waiting:
		return c.answered(answer)
	case <-ctx.Done():
	}
	_ = c.send(&cancel{id}) // if this fails the process has ended, and the call with it
	timer := time.AfterFunc(c.options.Grace, func() {
		c.kill(fmt.Errorf("a call did not return within %v of its cancellation", c.options.Grace))
	})
	defer timer.Stop()
	answer, err := c.answered(<-waiting)
	if err == nil || !errors.Is(err, serve.ErrCrashed) {
		err = context.Cause(ctx)
	}
	return answer, err
}

// addCall returns the id of a call that waits for its answer.
func (c *client) addCall(waiting chan *reply) (id uint64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, errUnsent
	}
	c.last++
	c.calls[c.last] = waiting
	return c.last, nil
}

// send sends a whole message, or ends the process.
func (c *client) send(m message) error {
	err := c.link.write(m)
	if err == nil || errors.Is(err, errTooLong) {
		return err
	}
	if os.IsTimeout(err) { // otherwise the end of the process has its own reason
		c.kill(fmt.Errorf("the process did not read its messages within %v", writeTime))
	}
	_ = c.process.cmd.Process.Kill()
	return errUnsent
}

// dropCall removes a call that was not sent.
func (c *client) dropCall(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, id)
}

// answered returns the answer, or why there is none.
func (c *client) answered(answer *reply) (*reply, error) {
	if answer == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		return nil, c.err
	}
	return answer, answer.Fault.err()
}

// method returns the index of a method.
func (c *hello) method(name string) (int, error) {
	for i := range c.Methods {
		if c.Methods[i].Name == name || name == "" && c.Methods[i].Name == "forward" {
			return i, nil
		}
	}
	return 0, fmt.Errorf("no method %q: %w", name, etrun.ErrInput)
}
