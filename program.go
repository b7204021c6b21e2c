package etrun

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/runtime/exec"
	"github.com/etrun-go/etrun/runtime/prepare"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/trace"
)

// Program is an open, verified file, with the constants and other data that its methods share.
type Program struct {
	spec   *pte.Program
	bundle *pte.Bundle
	config config
	pool   *cpu.Pool
	shared exec.Program // by the instances
	data   *dataMap
	files  []*file

	slots []exec.Slot // by method
	plain []exec.Slot // by method, without lowering; with LowerVerify only

	mu     sync.Mutex
	open   int // methods not yet closed, and loads that run
	closed bool
	freed  bool
	held   int64 // memory of the files, as reported to observers
}

// Open reads and verifies a .pte file, or the program inside a .bpte file. The file may be a pipe.
// The error is an *fs.PathError if the file cannot be read, else a *LoadError.
func Open(path string, options ...Option) (*Program, error) {
	return OpenSource(context.Background(), File(path), options...)
}

// Parse is Open for a byte slice, which is copied.
func Parse(data []byte, options ...Option) (*Program, error) {
	return OpenSource(context.Background(), Bytes("", data), options...)
}

// OpenSource is Open for any source. ctx can end the read, for example of a pipe that never
// delivers.
func OpenSource(ctx context.Context, src Source, options ...Option) (*Program, error) {
	c := newConfig(options)
	if c.invalid != nil {
		return nil, c.invalid
	}
	w := c.observers.Watch(ctx, "")
	f, err := src.read(ctx, c.reading(0, pte.FormatPTE, pte.FormatBPTE))
	if err != nil {
		return nil, w.Ended(trace.Open, src.name, 0, w.Stage(trace.StageRead, 0, err))
	}
	w.Stage(trace.StageRead, int64(len(f.data)), nil)
	return newProgram(ctx, f, c, w)
}

func newConfig(options []Option) config {
	go cpu.DefaultThreads() // it reads the limits of the control group
	c := config{backends: make(map[string]delegate.Backend), lowering: LowerAuto, observers: exec.Observers{Faults: faults{}}}
	for _, o := range options {
		o(&c)
	}
	c.invalid = c.check()
	c.state = c.unfilled()
	c.limits = c.limits.withDefaults(c.maxMemory)
	if c.operators == nil {
		c.operators = DefaultOperators()
	}
	if len(c.rows) > 0 {
		c.operators = c.operators.With(c.rows...)
	}
	if c.threads == 0 {
		c.threads = cpu.DefaultThreads()
	}
	return c
}

// newProgram takes ownership of f, even if it fails.
func newProgram(ctx context.Context, f *file, c config, w *exec.Watch) (*Program, error) {
	p := &Program{config: c, files: []*file{f}}
	if err := p.verify(ctx, f, w); err != nil {
		p.closeFiles()
		return nil, w.Ended(trace.Open, f.path, p.FileBytes(), err)
	}
	p.pool = cpu.NewPool(c.threads)
	p.makeSlots()
	p.cleanUp()
	p.reportMemory(w)
	if err := w.Ended(trace.Open, f.path, p.FileBytes(), nil); err != nil {
		p.Close()
		return nil, loadError(f.path, "", err, ErrFormat)
	}
	return p, nil
}

// cleanUp unmaps the files of a program that is unreachable, with its methods, before it was closed.
func (p *Program) cleanUp() {
	var maps []*cpu.Mapping
	for _, f := range p.files {
		maps = append(maps, f.pages...)
	}
	if len(maps) == 0 {
		return
	}
	runtime.AddCleanup(p, func(maps []*cpu.Mapping) {
		for _, m := range maps {
			m.Close()
		}
	}, maps)
}

// reportMemory reports what has changed of the memory of the files to observers.
func (p *Program) reportMemory(w *exec.Watch) {
	p.mu.Lock()
	now := int64(0)
	for _, f := range p.files {
		now += f.resident()
	}
	change := now - p.held
	p.held = now
	p.mu.Unlock()
	w.Memory(trace.MemoryProgram, change)
}

// path returns the path of the program's file, empty for bytes in memory.
func (p *Program) path() string {
	if len(p.files) == 0 {
		return ""
	}
	return p.files[0].path
}

// makeSlots creates an empty slot for each method.
func (p *Program) makeSlots() {
	c := &p.config
	p.shared = exec.Program{Observers: &c.observers, Pool: p.pool, Limits: c.memoryLimits(), Size: p.spec.Size, Steps: c.limits.Instructions,
		Seed: c.seed, Planning: c.planning(), Available: c.available, Retain: p.retain, Release: p.release}
	p.slots = p.slotsOf(c)
	if c.lowering == LowerVerify {
		plain := *c
		plain.lowering, plain.observers = LowerOff, exec.Observers{Faults: faults{}}
		p.plain = p.slotsOf(&plain)
	}
}

func (p *Program) slotsOf(c *config) []exec.Slot {
	slots, options := make([]exec.Slot, len(p.spec.Methods)), c.preparing()
	var claims *prepare.Claims
	if p.config.lowering != LowerVerify && !c.keepConstants { // neither is a method prepared twice, nor does the caller read constants
		claims = &prepare.Claims{File: p.spec, Backends: c.backends, Data: func(key string) []byte { return p.data.entries[key].Data }}
	}
	if c.available != nil {
		options.Available = p.left
	}
	for i := range slots {
		slots[i].Init(&prepare.Source{Options: options, File: p.spec, Method: &p.spec.Methods[i], Data: p.data, Pool: p.pool,
			Size: p.spec.Size, FileBytes: p.FileBytes(), Claims: claims}, &c.observers)
	}
	return slots
}

// left returns the memory that the system has left, with that of files that were read, which packing releases; see WithAvailableMemory.
func (p *Program) left() int64 {
	left := p.config.available()
	for _, f := range p.files {
		if f.own && left > 0 {
			left += f.resident()
		}
	}
	return left
}

// verify parses the file and reads the external data.
func (p *Program) verify(ctx context.Context, f *file, w *exec.Watch) error {
	err := w.Stage(trace.StageParse, int64(len(f.data)), p.parse(f))
	if err != nil {
		return loadError(f.path, "", err, ErrFormat)
	}
	p.data, err = p.openData(ctx)
	if err = w.Stage(trace.StageData, p.FileBytes()-int64(len(f.data)), err); err != nil {
		return openError(err)
	}
	return nil
}

func (p *Program) parse(f *file) (err error) {
	data := f.data
	if pte.Sniff(data) == pte.FormatBPTE {
		if p.bundle, err = pte.ParseBundle(data, p.config.limits.format()); err != nil {
			return err
		}
		data = f.allocate(len(p.bundle.Program)) // tensors in it need aligned bytes
		copy(data, p.bundle.Program)
	}
	p.spec, err = pte.Parse(data, p.config.limits.format())
	return err
}

// Spec returns the parsed program, which must not be changed. Weights that a backend has packed, or
// that were folded into others, may read as zeros after a method was loaded, unless the program was
// opened with [WithConstants].
func (p *Program) Spec() *pte.Program { return p.spec }

// Bundle returns the test cases of a .bpte file, nil for a .pte file.
func (p *Program) Bundle() *pte.Bundle { return p.bundle }

// Named returns named data of the program and of its .ptd files. It implements delegate.NamedData.
// The bytes are valid until Close, subject to the remark at [Program.Spec]; then ok is false.
func (p *Program) Named(key string) (data []byte, ok bool) {
	if !p.keep() {
		return nil, false
	}
	defer p.release()
	return p.data.Named(key)
}

// NamedKeys returns the sorted keys of the named data of the program and of its .ptd files.
func (p *Program) NamedKeys() []string { return slices.Sorted(maps.Keys(p.data.entries)) }

// MethodNames returns the names of the methods in file order.
func (p *Program) MethodNames() []string {
	names := make([]string, len(p.spec.Methods))
	for i := range p.spec.Methods {
		names[i] = p.spec.Methods[i].Name
	}
	return names
}

// Threads returns the number of threads that the methods share.
func (p *Program) Threads() int { return p.pool.Size() }

// methodIndex returns the index of a method; the empty name means "forward".
func (p *Program) methodIndex(name string) (int, error) {
	names := p.MethodNames()
	want := name
	if want == "" {
		want = "forward"
	}
	if i := slices.Index(names, want); i >= 0 {
		return i, nil
	}
	return 0, &LoadError{Class: ErrInput, File: p.path(), Err: fmt.Errorf("no method %q; the program has %.200q", want, names)}
}

// Close closes the program: further loads fail, and shared memory is freed when the last method is
// closed. Closing twice is allowed.
func (p *Program) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return p.freeLocked()
}

// acquire counts a new method, retain a further user of an open program; release undoes either.
func (p *Program) acquire() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return p.closedError()
	}
	p.open++
	return nil
}

func (p *Program) isOpen() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.closed
}

func (p *Program) closedError() error {
	return &LoadError{Class: ErrClosed, Err: fmt.Errorf("program: %w", ErrClosed)}
}

func (p *Program) retain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open++
}

// keep counts a user of the program's images and files, unless they are freed. Release undoes it.
func (p *Program) keep() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.freed {
		return false
	}
	p.open++
	return true
}

func (p *Program) release() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
	return p.freeLocked()
}

func (p *Program) freeLocked() error {
	if !p.closed || p.open > 0 || p.freed {
		return nil
	}
	p.freed = true
	var first error
	for _, slots := range [...][]exec.Slot{p.slots, p.plain} {
		for i := range slots {
			if err := slots[i].Close(); err != nil && first == nil {
				first = err
			}
		}
	}
	p.pool.Close()
	p.config.observers.Watch(context.Background(), "").Memory(trace.MemoryProgram, -p.held)
	p.closeFiles()
	return first
}

func (p *Program) closeFiles() {
	for _, f := range p.files {
		f.close()
	}
}

// Load loads a method. The first load prepares what all instances of the method share: it resolves
// operators, backends and external data, compiles delegates, folds constants and plans memory.
// Concurrent loads wait for that preparation, each no longer than its ctx allows; it continues as
// long as one of them waits. The empty name means "forward". Errors are *LoadError; a MissingError
// lists everything that is not available.
func (p *Program) Load(ctx context.Context, name string, options ...MethodOption) (*Method, error) {
	i, err := p.methodIndex(name)
	if err != nil {
		return nil, p.config.observers.Watch(ctx, "").Ended(trace.Load, name, 0, err)
	}
	name = p.spec.Methods[i].Name
	w := p.config.observers.Watch(ctx, name)
	if err := p.acquire(); err != nil {
		return nil, w.Ended(trace.Load, name, 0, err)
	}
	m, err := p.load(ctx, w, i, options)
	if err != nil {
		p.release()
		return nil, w.Ended(trace.Load, name, 0, loadError(p.path(), name, err, ErrFormat))
	}
	if err := w.Ended(trace.Load, name, m.in.Bytes(), nil); err != nil {
		m.Close()
		return nil, loadError(p.path(), name, err, ErrFormat)
	}
	return m, nil
}

func (p *Program) load(ctx context.Context, w *exec.Watch, index int, options []MethodOption) (*Method, error) {
	if err := p.spec.Methods[index].Err; err != nil {
		return nil, err
	}
	m := &Method{program: p, index: index}
	for _, o := range options {
		o(m)
	}
	if m.shares != nil {
		if m.shares.program != p {
			return nil, fmt.Errorf("WithStateOf: the method belongs to another program: %w", ErrInput)
		}
		m.options.StateOf = m.shares.in
	}
	if p.plain != nil {
		m.options.Plain = func(ctx context.Context) (*prepare.Method, error) { return p.plain[index].Get(ctx, &p.shared) }
	}
	var err error
	if m.shared, err = p.slots[index].Get(ctx, &p.shared); err != nil {
		return nil, err
	}
	p.reportMemory(w)
	m.in, err = exec.New(ctx, w, &p.shared, m.shared, m.options)
	return m, err
}
