package etrun

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/trace"
)

// Program is an open file: its verified description, its constants and what its
// methods share.
type Program struct {
	spec   *pte.Program
	bundle *pte.Bundle
	config config
	pool   *cpu.Pool
	data   *dataMap
	files  []*file

	slots []slot // by method
	plain []slot // by method, nothing lowered; with LowerVerify only
	reads claims
	sum   []byte // SHA-256 of the program's bytes, with LowerTune only

	mu     sync.Mutex
	open   int // methods not yet closed, and loads that run
	closed bool
	freed  bool
}

// Open reads a .pte file, or the program inside a .bpte file, and verifies it whole. The
// file may be a pipe. A file that cannot be read is an *fs.PathError, every other error a *LoadError.
func Open(path string, options ...Option) (*Program, error) {
	return OpenSource(context.Background(), File(path), options...)
}

// Parse is Open on bytes in memory, which are copied: they may change afterwards.
func Parse(data []byte, options ...Option) (*Program, error) {
	return OpenSource(context.Background(), Bytes("", data), options...)
}

// OpenSource is Open on any source. ctx ends the reading: a pipe may let its reader wait
// for ever.
func OpenSource(ctx context.Context, src Source, options ...Option) (*Program, error) {
	c := newConfig(options)
	w := c.watch(ctx, "")
	f, err := src.read(ctx, c.reading(0, pte.FormatPTE, pte.FormatBPTE))
	if err != nil {
		return nil, w.whole(trace.Open, src.name, 0, w.stage(trace.StageRead, 0, err))
	}
	w.stage(trace.StageRead, int64(len(f.data)), nil)
	return newProgram(ctx, f, c, w)
}

func newConfig(options []Option) config {
	c := config{backends: make(map[string]delegate.Backend), lowering: LowerRewrite, minProfit: MinProfit}
	for _, o := range options {
		o(&c)
	}
	c.limits = c.limits.withDefaults()
	if c.operators == nil {
		c.operators = DefaultOperators()
	}
	if len(c.rows) > 0 {
		c.operators = c.operators.With(c.rows...)
	}
	if c.threads <= 0 {
		c.threads = cpu.DefaultThreads()
	}
	return c
}

// newProgram takes over f, also where it fails.
func newProgram(ctx context.Context, f *file, c config, w *watch) (*Program, error) {
	p := &Program{config: c, files: []*file{f}}
	if err := p.verify(ctx, f, w); err != nil {
		p.closeFiles()
		return nil, w.whole(trace.Open, f.path, p.fileBytes(), err)
	}
	if c.lowering == LowerTune { // delegates may give bytes back later
		sum := sha256.Sum256(f.data)
		p.sum = sum[:]
	}
	p.pool = cpu.NewPool(c.threads)
	p.makeSlots()
	w.memory(trace.MemoryProgram, p.fileBytes())
	if err := w.whole(trace.Open, f.path, p.fileBytes(), nil); err != nil {
		p.Close()
		return nil, loadError(f.path, "", err, ErrFormat)
	}
	return p, nil
}

// path is the program's file, empty for bytes in memory.
func (p *Program) path() string {
	if len(p.files) == 0 {
		return ""
	}
	return p.files[0].path
}

// giveBack returns the memory of bytes that a delegate has packed, unless another slot
// compiles it, too.
func (p *Program) giveBack(data []byte) bool {
	return p.config.lowering != LowerVerify && p.reads.release(p.spec, p.data, p.config.backends, data)
}

// makeSlots makes a slot of each method, still empty.
func (p *Program) makeSlots() {
	p.slots = p.slotsOf(&p.config)
	if p.config.lowering == LowerVerify {
		plain := p.config
		plain.lowering, plain.watchers, plain.wants = LowerOff, nil, 0
		p.plain = p.slotsOf(&plain)
	}
}

func (p *Program) slotsOf(c *config) []slot {
	slots := make([]slot, len(p.spec.Methods))
	for i := range slots {
		slots[i].preparation = preparation{digest: p.sum, spec: &p.spec.Methods[i], config: c, data: p.data, pool: p.pool,
			size: p.spec.Size, fileBytes: p.fileBytes(), giveBack: p.giveBack}
	}
	return slots
}

// verify reads what the file describes, and the data that it needs.
func (p *Program) verify(ctx context.Context, f *file, w *watch) error {
	err := w.stage(trace.StageParse, int64(len(f.data)), p.parse(f.data))
	if err != nil {
		return loadError(f.path, "", err, ErrFormat)
	}
	p.data, err = p.openData(ctx)
	if err = w.stage(trace.StageData, p.fileBytes()-int64(len(f.data)), err); err != nil {
		return openError(err)
	}
	return nil
}

func (p *Program) parse(data []byte) (err error) {
	if pte.Sniff(data) == pte.FormatBPTE {
		if p.bundle, err = pte.ParseBundle(data, p.config.limits.format()); err != nil {
			return err
		}
		data = tensor.AlignedBytes(len(p.bundle.Program)) // its own place: tensors in it want aligned bytes
		copy(data, p.bundle.Program)
	}
	p.spec, err = pte.Parse(data, p.config.limits.format())
	return err
}

// Spec is the program's description. It must not be changed. Bytes of weights that a
// backend has packed may read as zeros once a method was loaded.
func (p *Program) Spec() *pte.Program { return p.spec }

// Bundle is the test cases that came with a .bpte file, nil for a .pte file.
func (p *Program) Bundle() *pte.Bundle { return p.bundle }

// Named finds named data of the program and of its data files. It implements
// delegate.NamedData; the bytes stay valid until Close, and as [Program.Spec] says.
func (p *Program) Named(key string) ([]byte, bool) { return p.data.Named(key) }

// NamedKeys lists the keys of named data of the program and of its data files, sorted.
func (p *Program) NamedKeys() []string { return slices.Sorted(maps.Keys(p.data.entries)) }

// MethodNames lists the methods in the order of the file.
func (p *Program) MethodNames() []string {
	names := make([]string, len(p.spec.Methods))
	for i := range p.spec.Methods {
		names[i] = p.spec.Methods[i].Name
	}
	return names
}

// Threads is the size of the thread budget.
func (p *Program) Threads() int { return p.pool.Size() }

// methodIndex finds a method; the empty name means "forward".
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

// Close ends the program: no method loads from now on, and what the methods shared
// is freed when the last of them is closed. Closing twice is fine.
func (p *Program) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return p.freeLocked()
}

// acquire counts a new method, retain a further user of what is open already; release
// gives either back.
func (p *Program) acquire() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return &LoadError{Class: ErrClosed, Err: fmt.Errorf("program: %w", ErrClosed)}
	}
	p.open++
	return nil
}

func (p *Program) retain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open++
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
	for _, slots := range [...][]slot{p.slots, p.plain} {
		for i := range slots {
			if err := slots[i].preparation.close(); err != nil && first == nil {
				first = err
			}
		}
	}
	p.pool.Close()
	p.config.watch(context.Background(), "").memory(trace.MemoryProgram, -p.fileBytes())
	p.closeFiles()
	return first
}

func (p *Program) closeFiles() {
	for _, f := range p.files {
		f.close()
	}
}
