package etrun

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"sync/atomic"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/lower"
	"github.com/etrun-go/etrun/runtime/plan"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/trace"
)

// prepared is the data of a method that its instances share. It is immutable.
type prepared struct {
	ir        *ir.Method
	images    []delegate.Image      // of the file's delegates, then of regions
	needs     []delegate.Needs      // of the images, after compilation, without what the plan has a place for
	work      []*delegate.Workspace // of the images; nil for those that have only memory of their own
	backends  []string              // IDs of the images' backends
	plan      *plan.Memory          // for instances without bound memory
	conflicts []plan.Conflict       // of the file's plan, before any edit
	suspect   []string              // see checkStates
	folded    []lower.Folded
	rewritten []lower.Rewritten
	released  int64                             // bytes of constants whose memory was released
	lowered   *lower.Report                     // nil if lowering was off
	refusal   *atomic.Pointer[regionError]      // the first region that its delegate rejected in a run
	tuning    *tuning                           // with LowerTune only
	scratch   *atomic.Pointer[delegate.Scratch] // scratch that the images were compiled for, until an instance takes it
}

// regionError is why a delegate rejects a region at some sizes.
type regionError struct {
	origin ir.Origin
	err    error
}

// takeScratch returns the scratch of the next instance. The first takes the one that the delegates
// have prepared.
func (p *prepared) takeScratch() *delegate.Scratch {
	if p.scratch != nil {
		if s := p.scratch.Swap(nil); s != nil {
			return s
		}
	}
	return new(delegate.Scratch)
}

// scratchBytes returns the working memory of an instance's units, counting the shared part once.
// The result is at most limit+1, if there is a limit.
func scratchBytes(needs []delegate.Needs, limit int64) int64 {
	own, shared := int64(0), int64(0)
	for i := range needs {
		own += min(needs[i].Scratch-needs[i].Shared, limit-own+1) // sums must not overflow
		shared = max(shared, needs[i].Shared)
	}
	return own + min(shared, limit-own+1)
}

// foldedBytes returns the size of the constants that were computed at load.
func (p *prepared) foldedBytes() (n int64) {
	for i := range p.folded {
		n += p.folded[i].Bytes
	}
	return n + p.rewrittenBytes()
}

// rewrittenBytes returns the size of the constants that rewrites made.
func (p *prepared) rewrittenBytes() (n int64) {
	for i := range p.rewritten {
		n += p.rewritten[i].Bytes
	}
	return n
}

// planFor returns the plan of an instance.
func (p *prepared) planFor(o plan.Options) *plan.Memory {
	if o == p.plan.Options {
		return p.plan
	}
	return plan.Make(p.ir, p.work, p.conflicts, o)
}

// makePlan plans the memory of instances. The images are complete.
func (p *prepared) makePlan(o plan.Options) error {
	if err := p.planWork(); err != nil {
		return err
	}
	p.plan = plan.Make(p.ir, p.work, p.conflicts, o)
	return nil
}

// maxBlocks is the largest number of blocks of working memory in a plan: planning takes quadratic time.
const maxBlocks = plan.MaxItems / 4

// planWork passes the workspaces of images to the plan, as long as it can share bytes between all items.
func (p *prepared) planWork() error {
	p.work, p.needs = make([]*delegate.Workspace, len(p.images)), slices.Clone(p.needs)
	blocks, most := 0, min(maxBlocks, plan.MaxItems-len(p.ir.Storages))
	for i, img := range p.images {
		planned, ok := img.(delegate.Planned)
		if !ok {
			continue
		}
		w := planned.Workspace()
		if w == nil || blocks+len(w.Blocks) > most {
			continue
		}
		if err := checkWorkspace(w); err != nil {
			return fmt.Errorf("backend %q: workspace of an image: %w", p.backends[i], err)
		}
		blocks += len(w.Blocks)
		p.work[i] = w
		p.needs[i] = unplanned(p.needs[i])
	}
	return nil
}

// checkWorkspace checks what a backend declares: wrong lives would make live values share bytes.
func checkWorkspace(w *delegate.Workspace) error {
	inside := func(s delegate.Span) bool { return s.First >= 0 && s.First <= s.Last && s.Last < w.Moments }
	for i, s := range w.Args {
		if !inside(s) {
			return fmt.Errorf("argument %d is used from moment %d to %d of %d", i, s.First, s.Last, w.Moments)
		}
	}
	for i, b := range w.Blocks {
		if !inside(b.Span) || b.Bytes < 0 {
			return fmt.Errorf("block %d has %d bytes, used from moment %d to %d of %d", i, b.Bytes, b.First, b.Last, w.Moments)
		}
	}
	if w.Moments < 1 {
		return fmt.Errorf("%d moments, want at least 1", w.Moments)
	}
	return nil
}

// unplanned returns the needs of an image without what the plan has a place for.
func unplanned(n delegate.Needs) delegate.Needs {
	n.Scratch, n.Shared = n.Scratch-n.Shared, 0
	return n
}

// checkMemory refuses an instance whose plan is too large, before anything is allocated. file is
// the program's size.
func (p *prepared) checkMemory(on *plan.Memory, c *config, file int64) error {
	limits := &c.limits
	for i := range p.ir.Storages { // one by one first: their sum could overflow
		s := &p.ir.Storages[i]
		n := s.Bytes
		if s.Kind == ir.Constant {
			n = on.StartBytes(i)
		}
		if n > limits.PlannedBytes {
			return &MemoryError{Want: n, Limit: limits.PlannedBytes, Parts: []MemoryPart{{fmt.Sprintf("value %d", s.Values[0]), n}}}
		}
	}
	arenas, scratch := on.Bytes(), scratchBytes(p.needs, limits.PlannedBytes)
	if arenas > limits.PlannedBytes || scratch > limits.PlannedBytes-arenas {
		return &MemoryError{Want: arenas + scratch, Limit: limits.PlannedBytes,
			Parts: []MemoryPart{{"arenas", arenas - on.StateBytes}, {"state", on.StateBytes}, {"delegate scratch", scratch}}}
	}
	if limit := c.maxMemory; limit > 0 {
		if e := p.memoryNeeded(on, file); e.Want > limit {
			e.Limit = limit
			return e
		}
	}
	return nil
}

// memoryNeeded returns the memory of an instance by kind.
func (p *prepared) memoryNeeded(on *plan.Memory, file int64) *MemoryError {
	e := &MemoryError{Parts: []MemoryPart{{"file", file}, {"arenas", on.Bytes() - on.StateBytes}, {"state", on.StateBytes}}}
	scratch, weights := scratchBytes(p.needs, math.MaxInt64-1), int64(0)
	for i := range p.needs {
		weights += p.needs[i].PackedBytes
	}
	e.Parts = append(e.Parts, MemoryPart{"folded constants", p.foldedBytes()}, MemoryPart{"packed weights", weights}, MemoryPart{"delegate scratch", scratch})
	for _, part := range e.Parts {
		e.Want += part.Bytes
	}
	return e
}

// preparation prepares the data that the instances of a method share. One goroutine uses it at a
// time.
type preparation struct {
	file       *pte.Program
	spec       *pte.Method
	config     *config
	data       *dataMap
	pool       *cpu.Pool
	size       int64             // of the program
	fileBytes  int64             // of all files
	scratch    *delegate.Scratch // of the first instance
	discard    func([]byte) bool // see delegate.Payload
	mayDiscard func([]byte) bool // whether discard would
	lost       error             // a delegate failed after its weights were released
	digest     []byte            // SHA-256 of the program's bytes, with LowerTune only
	images     []delegate.Image  // compiled so far, in order
	needs      []delegate.Needs  // of these
	held       map[string]int64  // memory reported to observers, by kind
	opened     []*openedPayload  // by delegate; nil for those that are compiled
	base       *prepared         // the method before lowering to backends, which later attempts reuse
	flow       *ir.Flow          // of that method, until it is lowered or discarded
	unread                       // constants to be released

	measured regionImage // the latest measured image, until it is decided whether it is used; may have no image
}

// Bounds of the work of folding, and of rewriting, in elements: a fraction of a second.
const (
	foldWork        = 1 << 24
	foldWorkPerByte = 16 // of the program
)

// run takes all steps. It stops between two of them if ctx is canceled.
func (p *preparation) run(ctx context.Context) (done *prepared, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			done, err = nil, &PanicError{Value: fault, Stack: debug.Stack()}
		}
	}()
	w := p.config.watch(ctx, p.spec.Name)
	if p.base == nil {
		base, err := p.describe(ctx, w)
		if err != nil {
			return nil, err
		}
		p.base = base
		p.release(w, base)
	}
	done = p.base.copy()
	defer func() { p.flow = nil }()
	if p.config.lowering.lowers() {
		err = p.regions(ctx, w, done)
	} else {
		err = p.compileOpened(ctx, w, done.ir)
	}
	if err != nil {
		return nil, err
	}
	if done.plan == nil {
		if err := done.makePlan(p.config.planning()); err != nil {
			return nil, err
		}
	}
	if err := w.stage(trace.StagePlan, done.plan.Bytes(), nil); err != nil {
		return nil, err
	}
	done.scratch.Store(p.scratch)
	p.release(w, done)
	return done, nil
}

// describe links the method, compiles its delegates, and runs the passes that need no backend.
func (p *preparation) describe(ctx context.Context, w *watch) (done *prepared, err error) {
	links, err := p.link()
	if err := w.stage(trace.StageFind, 0, err); err != nil {
		return nil, err
	}
	if err := p.compile(ctx, w, links); err != nil {
		return nil, err
	}
	count := len(p.spec.Delegates)
	backends := make([]string, count)
	for i := range backends {
		links.Delegates = append(links.Delegates, ir.Delegate{Inputs: p.needs[i].Inputs})
		backends[i] = p.spec.Delegates[i].ID
	}
	m, err := ir.Build(p.spec, links)
	if err := w.stage(trace.StageBuild, 0, p.placed(err)); err != nil {
		return nil, err
	}
	suspect, err := p.checkStates(m)
	if err != nil {
		return nil, err
	}
	done = &prepared{suspect: suspect, images: p.images[:count:count], needs: p.needs[:count:count], backends: backends,
		conflicts: plan.CheckFile(m)}
	if len(done.conflicts) > 0 && p.config.strict {
		return nil, plan.ConflictError(m, done.conflicts[0])
	}
	return done, p.rewrite(ctx, w, m, done)
}

// copy returns a copy for an attempt.
func (p *prepared) copy() *prepared {
	c := *p
	c.scratch, c.refusal = new(atomic.Pointer[delegate.Scratch]), new(atomic.Pointer[regionError])
	return &c
}

// rewrite folds constants and applies the rewrites to the method of the file.
func (p *preparation) rewrite(ctx context.Context, w *watch, m *ir.Method, done *prepared) (err error) {
	k, budget := kernels.NewCtx(p.pool), lower.Budget{Bytes: p.size, Work: foldWork + foldWorkPerByte*p.size}
	done.ir, done.folded, err = lower.Fold(ctx, m, k, budget)
	if err := w.stage(trace.StageFold, done.foldedBytes(), p.placed(err)); err != nil {
		return err
	}
	tellFolded(w, m, done.ir, done.folded)
	if p.config.lowering.rewrites() {
		if p.config.maxMemory > 0 { // then constants that take more memory than they save are not folded
			budget.Bytes = 0
		}
		done.ir, p.flow, done.rewritten, err = lower.Rewrite(ctx, done.ir, k, p.config.operators, budget)
		if err := w.stage(trace.StageRewrite, done.rewrittenBytes(), p.placed(err)); err != nil {
			return err
		}
	}
	p.hold(w, trace.MemoryFolded, done.foldedBytes())
	return nil
}

// hold reports memory that instances share.
func (p *preparation) hold(w *watch, kind string, bytes int64) {
	if w == nil {
		return
	}
	if p.held == nil {
		p.held = make(map[string]int64)
	}
	p.held[kind] += bytes
	w.memory(kind, bytes)
}

// placed adds to an error at a step its place in the method.
func (p *preparation) placed(err error) error {
	e, ok := errors.AsType[*ir.StepError](err)
	if !ok {
		return err
	}
	return &InstructionError{Class: classOf(e.Err, ErrFormat), Method: p.spec.Name,
		Chain: e.Origin.Chain, Index: e.Origin.Index, Op: e.Name, Err: e.Err}
}

// close frees the images.
func (p *preparation) close() error {
	var first error
	for _, img := range p.images {
		if err := img.Close(); err != nil && first == nil {
			first = err
		}
	}
	p.images = nil
	p.scratch.Close()
	w := p.config.watch(context.Background(), p.spec.Name)
	for kind, bytes := range p.held {
		w.memory(kind, -bytes)
	}
	return first
}
