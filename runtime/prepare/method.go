package prepare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/lower"
	"github.com/etrun-go/etrun/runtime/plan"
)

// TakeScratch returns the scratch of the next instance. The first takes the one that the delegates
// have prepared.
func (m *Method) TakeScratch() *delegate.Scratch {
	if s := m.scratch.Swap(nil); s != nil {
		return s
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

// ScratchBytes returns the working memory of an instance's units.
func (m *Method) ScratchBytes() int64 { return scratchBytes(m.Needs, math.MaxInt64-1) }

// FoldedBytes returns the size of the constants that were computed at load.
func (m *Method) FoldedBytes() int64 { return foldedBytes(m.Folded) + rewrittenBytes(m.Rewritten) }

// PlanFor returns the plan of an instance.
func (m *Method) PlanFor(o plan.Options) *plan.Memory {
	if o == m.Plan.Options {
		return m.Plan
	}
	return plan.Make(m.IR, m.Work, m.Conflicts, o)
}

// plan plans the memory of instances.
func (l *load) plan(c *compiled) (*Method, error) {
	m := &Method{IR: c.ir, Images: c.images, Needs: c.needs, Backends: c.backends, Conflicts: c.base.conflicts, Suspect: c.base.suspect,
		Folded: c.base.folded, Rewritten: c.base.rewrites, Released: c.base.released, Lowered: c.report, read: c.read}
	m.DescribeOnly = l.DescribeOnly && (len(m.Images) > 0 || m.FoldedBytes() >= lower.BlankBytes)
	if err := m.planWork(); err != nil {
		return nil, err
	}
	m.Plan = plan.Make(m.IR, m.Work, m.Conflicts, l.Plan)
	if m.IR.HasDynamicInputs() && m.checkLargest(m.Plan, l.Limits, l.Size) != nil {
		m.leaveWork()
		m.Plan = plan.Make(m.IR, m.Work, m.Conflicts, l.Plan)
	}
	return m, nil
}

// leaveWork leaves the working memory of images with arguments of varying sizes to their units, which plan it for the sizes of calls, and
// check the limits then.
func (m *Method) leaveWork() {
	for i := range m.IR.Steps {
		s := &m.IR.Steps[i]
		if s.Kind != ir.DelegateCall || !m.IR.IsDynamic(s.Args...) {
			continue
		}
		if _, ok := m.Images[s.Delegate].(lowering.Planned); ok {
			m.Work[s.Delegate], m.Needs[s.Delegate] = nil, Unplanned(m.Needs[s.Delegate])
		}
	}
}

// maxBlocks is the largest number of blocks of working memory in a plan: planning takes quadratic time.
const maxBlocks = pack.MaxItems / 4

// planWork passes the workspaces of images to the plan, as long as it can share bytes between all items.
func (m *Method) planWork() error {
	m.Work, m.Needs = make([]*lowering.Workspace, len(m.Images)), slices.Clone(m.Needs)
	blocks, most := 0, min(maxBlocks, pack.MaxItems-len(m.IR.Storages))
	for i, img := range m.Images {
		planned, ok := img.(lowering.Planned)
		if !ok {
			continue
		}
		w := planned.Workspace()
		if w == nil || blocks+len(w.Blocks) > most {
			continue
		}
		if err := checkWorkspace(w); err != nil {
			return fmt.Errorf("backend %q: workspace of an image: %w", m.Backends[i], err)
		}
		blocks += len(w.Blocks)
		m.Work[i] = w
		m.Needs[i] = Unplanned(m.Needs[i])
	}
	return nil
}

// checkWorkspace checks what a backend declares: wrong lives would make live values share bytes.
func checkWorkspace(w *lowering.Workspace) error {
	inside := func(s lowering.Span) bool { return s.First >= 0 && s.First <= s.Last && s.Last < w.Moments }
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

// Unplanned returns the needs of an image without what the plan has a memory for.
func Unplanned(n delegate.Needs) delegate.Needs {
	n.Scratch, n.Shared = n.Scratch-n.Shared, 0
	return n
}

// MemoryError reports memory above a limit, in bytes.
type MemoryError struct {
	Want, Limit int64
	Parts       []Part
	Available   bool // the limit is what the system has left
}

// Part is one component of a memory requirement.
type Part struct {
	Name  string
	Bytes int64
}

func (e *MemoryError) Error() string {
	var parts []string
	for _, p := range e.Parts {
		if p.Bytes > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", p.Name, p.Bytes))
		}
	}
	limit := "the limit is %d"
	if e.Available {
		limit = "%d are available"
	}
	return fmt.Sprintf("%d bytes needed (%s), "+limit, e.Want, strings.Join(parts, ", "), e.Limit)
}

// mostReserved is the largest plan of a method whose inputs vary in size that may exceed the limits: addresses are reserved for all of it.
const mostReserved = min(1<<36, math.MaxInt/4)

// CheckMemory refuses an instance that needs too much memory, before anything is allocated. file is the program's size. If the sizes of
// inputs vary, the limits are for the sizes of calls: room is the memory that they leave for values of varying sizes, and it is
// math.MaxInt64 if there is enough for the largest.
func (m *Method) CheckMemory(on *plan.Memory, limits Limits, file int64) (room int64, err error) {
	err = m.checkLargest(on, limits, file)
	if err == nil {
		return math.MaxInt64, nil
	}
	tooLarge := func(s ir.Storage) bool { return s.Bytes > mostReserved }
	if !cpu.Sparse || !m.IR.HasDynamicInputs() || slices.ContainsFunc(m.IR.Storages, tooLarge) || on.Bytes() > mostReserved {
		return 0, err
	}
	least := on.LeastBytes()
	room = limits.planned(on) - least - scratchBytes(m.Needs, limits.Planned)
	if limit := limits.Total; limit > 0 {
		room = min(room, limit-least-(m.MemoryNeeded(on, file).Want-on.Bytes()))
	}
	if room <= 0 {
		return 0, err
	}
	return room, nil
}

// planned is the limit of a plan with its state.
func (l Limits) planned(on *plan.Memory) int64 {
	if l.State == nil || on.StateBytes == 0 {
		return l.Planned
	}
	return l.Planned + min(on.StateBytes, l.State(), math.MaxInt64-l.Planned)
}

// checkLargest is CheckMemory for the largest sizes.
func (m *Method) checkLargest(on *plan.Memory, limits Limits, file int64) error {
	for i := range m.IR.Storages { // one by one first: their sum could overflow
		s := &m.IR.Storages[i]
		n := s.Bytes
		if s.Kind == ir.Constant {
			n = on.StartBytes(i)
		}
		if n > limits.Planned {
			return &MemoryError{Want: n, Limit: limits.Planned, Parts: []Part{{fmt.Sprintf("value %d", s.Values[0]), n}}}
		}
	}
	arenas, scratch := on.Bytes(), scratchBytes(m.Needs, limits.Planned)
	if most := limits.planned(on); arenas > most || scratch > most-arenas {
		return &MemoryError{Want: arenas + scratch, Limit: most,
			Parts: []Part{{"arenas", arenas - on.StateBytes}, {"state", on.StateBytes}, {"delegate scratch", scratch}}}
	}
	if limit := limits.Total; limit > 0 {
		if e := m.MemoryNeeded(on, file); e.Want > limit {
			e.Limit = limit
			return e
		}
	}
	return nil
}

// MemoryNeeded returns the memory of an instance by kind.
func (m *Method) MemoryNeeded(on *plan.Memory, file int64) *MemoryError {
	e := &MemoryError{Parts: []Part{{"file", file}, {"arenas", on.Bytes() - on.StateBytes}, {"state", on.StateBytes}}}
	scratch, weights := m.ScratchBytes(), int64(0)
	for i := range m.Needs {
		weights += m.Needs[i].PackedBytes
	}
	e.Parts = append(e.Parts, Part{"folded constants", m.FoldedBytes()}, Part{"packed weights", weights}, Part{"delegate scratch", scratch})
	for _, part := range e.Parts {
		e.Want += part.Bytes
	}
	return e
}
