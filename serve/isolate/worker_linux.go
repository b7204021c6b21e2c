//go:build linux && (amd64 || arm64)

package isolate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/etrun-go/etrun/internal/sandbox"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/trace"
	"github.com/etrun-go/etrun/serve"
)

// Descriptors of the process.
const (
	socketFile = 3
	memoryFile = 4
)

// worker is the process's side of the protocol. It ends at the first violation.
type worker struct {
	job     *Job
	link    *link
	program serve.Program
	methods []string
	pools   []serve.Runner
	memory  []byte
	attach  attach

	mu        sync.Mutex
	instances map[uint64]serve.Instance
	calls     map[uint64]context.CancelFunc
	early     []*event // before hello
	greeted   bool
}

// Work is the main function of a process that Open started: it opens the program, drops privileges
// that it no longer needs, and serves calls. It returns when the socket is closed. Signals that
// usually terminate processes are ignored: the other side decides.
func Work(j *Job) error {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	conn, err := net.FileConn(os.NewFile(socketFile, "socket"))
	if err != nil {
		return err
	}
	defer conn.Close()
	w := &worker{job: j, link: newLink(conn, fromWorker, toWorker, 0), instances: make(map[uint64]serve.Instance),
		calls: make(map[uint64]context.CancelFunc)}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	h, err := w.load(ctx)
	if err != nil {
		h = &hello{Fault: faultOf(errors.New(w.rename(err.Error())))}
		h.Fault.Class = faultOf(err).Class
	}
	if greeted := w.greet(h); err != nil || greeted != nil {
		return greeted // the other side has the reason
	}
	return w.serve(ctx)
}

// rename replaces paths in a text by the names of the files.
func (w *worker) rename(text string) string {
	for path, name := range w.job.Names {
		text = strings.ReplaceAll(text, path, name)
	}
	return text
}

// load opens the program behind the system call filter.
func (w *worker) load(ctx context.Context) (*hello, error) {
	if err := limitMemory(w.job.Memory); err != nil {
		return nil, fmt.Errorf("memory limit of %d bytes: %w", w.job.Memory, err)
	}
	sandbox.Filter(sandbox.Load) // the filter of Serve reports the same missing layers
	p, digest, err := w.job.Open(ctx, trace.Func{Kinds: trace.Executes | trace.Delegates | trace.Loads | trace.Memories, Do: w.observe})
	if err != nil {
		return nil, err
	}
	w.program, w.methods = p, w.job.Methods
	if len(w.methods) == 0 {
		w.methods = p.MethodNames()
	}
	h := &hello{Digest: digest}
	for _, name := range w.methods {
		meta, err := p.Meta(name)
		if err != nil {
			return nil, err
		}
		pool, err := p.Pool(ctx, name, w.job.Instances)
		if err != nil {
			return nil, fmt.Errorf("self-test: %w", err)
		}
		w.pools, h.Methods = append(w.pools, pool), append(h.Methods, *meta)
	}
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // no process of this user may inspect it
	h.Layers = []sandbox.Layer{sandbox.Filter(sandbox.Serve)}
	return h, nil
}

// limitMemory bounds the process's allocations.
func limitMemory(n int64) error {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) // if even this is refused, core dumps are a minor concern
	if n == 0 {
		return nil
	}
	debug.SetMemoryLimit(n - n/8)
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: uint64(n), Max: uint64(n)})
}

// observe sends an event.
func (w *worker) observe(e *trace.Event) {
	m := &event{Kind: e.Kind, Name: clip(e.Name), Method: clip(e.Method), Backend: clip(e.Backend), Took: e.Duration(), Bytes: e.Bytes}
	if e.Err != nil {
		m.Reason = clip(e.Reason)
	}
	if e.Kind != trace.Stage && e.Kind != trace.Memory {
		m.Name = "" // a path, or redundant
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.greeted {
		_ = w.link.write(m) // if the other side is gone, the process ends
	} else {
		w.early = append(w.early, m)
	}
}

// greet sends hello, and the events before it.
func (w *worker) greet(h *hello) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	h.Events = uint64(len(w.early))
	err := w.link.write(h)
	for _, m := range w.early {
		err = errors.Join(err, w.link.write(m))
	}
	w.greeted, w.early = true, nil
	return err
}

// serve handles messages until the socket is closed.
func (w *worker) serve(ctx context.Context) error {
	m, err := w.link.read()
	if err != nil {
		return withoutEOF(err)
	}
	first, ok := m.(*attach)
	if !ok || first.Lanes == 0 || first.Lanes > maxLanes || first.In > maxLane || first.Out > maxLane {
		return fmt.Errorf("%w: %T as the first message", errProtocol, m)
	}
	w.attach = *first
	if w.memory, err = attachMemory(os.NewFile(memoryFile, "memory"), int64(first.Lanes*(first.In+first.Out))); err != nil {
		return err
	}
	for {
		m, err := w.link.read()
		if err != nil {
			return withoutEOF(err)
		}
		if err := w.do(ctx, m); err != nil {
			return err
		}
	}
}

// withoutEOF returns nil if the socket was closed.
func withoutEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return nil
	}
	return err
}

// do starts what a message requests.
func (w *worker) do(ctx context.Context, m message) error {
	switch m := m.(type) {
	case *run:
		return w.start(ctx, m.ID, m.Timeout, func(ctx context.Context) *reply { return w.run(ctx, m) })
	case *begin:
		return w.start(ctx, m.ID, 0, func(ctx context.Context) *reply { return w.begin(ctx, m) })
	case *reset:
		return w.start(ctx, m.ID, 0, func(context.Context) *reply { return w.reset(m) })
	case *drop:
		w.drop(m)
	case *cancel:
		w.cancel(m)
	default:
		return fmt.Errorf("%w: %T", errProtocol, m)
	}
	return nil
}

// start makes a call in its own goroutine, and answers it.
func (w *worker) start(ctx context.Context, id uint64, timeout int64, call func(context.Context) *reply) error {
	ctx, cancel := context.WithCancel(ctx)
	if timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(timeout))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls[id] != nil {
		cancel()
		return fmt.Errorf("%w: call %d twice", errProtocol, id)
	}
	w.calls[id] = cancel
	go func() {
		answer := call(ctx)
		cancel()
		w.forget(id)
		answer.ID = id
		answer.Fault.Text = w.rename(answer.Fault.Text)
		if err := w.link.write(answer); errors.Is(err, errTooLong) {
			_ = w.link.write(&reply{ID: id, Fault: faultOf(err)})
		}
	}()
	return nil
}

// forget removes a call that has ended.
func (w *worker) forget(id uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.calls, id)
}

func (w *worker) cancel(m *cancel) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if stop := w.calls[m.ID]; stop != nil {
		stop()
	}
}

func failed(err error) *reply { return &reply{Fault: faultOf(err)} }

// run executes a method on a lane.
func (w *worker) run(ctx context.Context, m *run) *reply {
	r, err := w.runner(m)
	if err != nil {
		return failed(err)
	}
	start := m.Lane * (w.attach.In + w.attach.Out)
	in := &area{bytes: w.memory[start : start+w.attach.In]}
	out := &area{bytes: w.memory[start+w.attach.In : start+w.attach.In+w.attach.Out]}
	inputs, err := in.values(m.Inputs)
	if err != nil {
		return failed(err)
	}
	answer := &reply{Values: make([]value, len(m.Outputs))}
	var full error
	run := r.Run
	if rows, ok := r.(serve.RowRunner); ok && m.Rows {
		run = rows.RunRows
	} else if m.Rows {
		return failed(fmt.Errorf("%w: rows of several requests for instance %d", errProtocol, m.Instance))
	}
	err = run(ctx, inputs, m.Outputs, func(k int, v *tensor.Value) {
		answer.Values[k] = valueOf(v)
		answer.Values[k].Sizes = slices.Clone(answer.Values[k].Sizes) // the next call changes those of the instance
		if v.Kind == tensor.KindTensor && full == nil {
			answer.Values[k].Offset, full = out.put(v.Tensor)
		}
	})
	if err = errors.Join(err, full); err != nil {
		return failed(err)
	}
	return answer
}

// runner returns the pool or instance of a run.
func (w *worker) runner(m *run) (serve.Runner, error) {
	if m.Lane >= w.attach.Lanes || m.Method >= uint64(len(w.pools)) {
		return nil, fmt.Errorf("%w: lane %d, method %d", errProtocol, m.Lane, m.Method)
	}
	if m.Instance == 0 {
		return w.pools[m.Method], nil
	}
	return w.instance(m.Instance)
}

func (w *worker) instance(id uint64) (serve.Instance, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.instances[id]
	if i == nil {
		return nil, fmt.Errorf("%w: no instance %d", errProtocol, id)
	}
	return i, nil
}

// begin creates an instance.
func (w *worker) begin(ctx context.Context, m *begin) *reply {
	var sharing serve.Instance
	var err error
	if m.Sharing != 0 {
		sharing, err = w.instance(m.Sharing)
	}
	if err == nil && m.Method >= uint64(len(w.methods)) {
		err = fmt.Errorf("%w: method %d", errProtocol, m.Method)
	}
	if err != nil {
		return failed(err)
	}
	i, err := w.program.Instance(ctx, w.methods[m.Method], sharing)
	if err != nil {
		return failed(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.instances[m.Instance] = i
	return &reply{Bytes: i.Bytes()}
}

func (w *worker) reset(m *reset) *reply {
	i, err := w.instance(m.Instance)
	if err == nil {
		err = i.Reset()
	}
	return failed(err)
}

// remove returns an instance that is no longer used, nil if there is none.
func (w *worker) remove(id uint64) serve.Instance {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.instances[id]
	delete(w.instances, id)
	return i
}

// drop ends an instance.
func (w *worker) drop(m *drop) {
	if i := w.remove(m.Instance); i != nil {
		_ = i.Close() // frees memory only
	}
}
