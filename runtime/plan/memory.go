// Package plan (no compatibility promise) places storages in one arena so that those alive at the
// same time do not overlap, and checks other plans.
package plan

import (
	"fmt"
	"slices"
	"sort"

	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Memory is the placement of a method's storages, and the alternatives that were considered. It is
// immutable.
type Memory struct {
	Arrangement // the one in use
	Method      *ir.Method
	Options     Options
	Moments     []int       // per step: its first moment; and behind the last step
	Items       []pack.Item // per storage, then per block of working memory, alive in moments; zero for those outside the arenas
	File        Arrangement // the file's plan, without state; incomplete if storages have no place in it
	Own         Arrangement // planned by this package
	LowerBound  int64       // most bytes alive at once: no plan of the arenas is smaller, whatever its alignment
	Conflicts   []Conflict  // found by CheckFile: the file's plan is not used
	StateBytes  int64       // state, outside the arenas
	HeapBytes   int64       // initial bytes of unbounded tensors, and of views of constants
	Callers     []bool      // per storage: the caller provides its bytes

	work   []*lowering.Workspace // per delegate; nil for some, and behind the end
	starts []int                 // per entry of work: its first item; and behind the last one
}

// Arrangement is a placement of the storages in arenas.
type Arrangement struct {
	Source string  // "file", or "own" and the order of packing
	Places []Place // per item; meaningless outside the arenas
	Placed []bool  // per item: it has a place
	Arenas []int64 // sizes
	Whole  bool    // every storage that needs a place has one, without conflicts
}

// Size returns the bytes of all arenas.
func (a *Arrangement) Size() (n int64) {
	for _, size := range a.Arenas {
		n += size
	}
	return n
}

// Bytes returns the total memory that the plan needs.
func (p *Memory) Bytes() int64 { return p.StateBytes + p.HeapBytes + p.Size() }

// LeastBytes returns the memory that every call needs, whatever the sizes of its inputs: that of state, of values outside of the arenas,
// and of the places of values that have one size.
func (p *Memory) LeastBytes() int64 {
	n := p.StateBytes + p.HeapBytes
	for i := range p.Method.Storages {
		if s := &p.Method.Storages[i]; s.Output && p.Method.IsDynamic(s.Values...) { // may be in the heap
			n += s.Bytes
		}
	}
	return n + p.union(func(i int) int64 {
		if i < len(p.Method.Storages) && p.Method.IsDynamic(p.Method.Storages[i].Values...) {
			return 0
		}
		return p.Items[i].Bytes
	})
}

// TouchedBytes estimates how much of the arenas a call touches for which values of varying sizes, and blocks of working memory, have a part
// of their largest sizes. Those that share bytes at these sizes may lie one behind the other at smaller ones.
func (p *Memory) TouchedBytes(part float64) int64 {
	return p.union(func(i int) int64 {
		if i < len(p.Method.Storages) && !p.Method.IsDynamic(p.Method.Storages[i].Values...) {
			return p.Items[i].Bytes
		}
		return int64(part * float64(p.Items[i].Bytes))
	})
}

// union returns the size of the places together, of which the items use so many bytes.
func (p *Memory) union(bytes func(i int) int64) (n int64) {
	var used []int
	for i := range p.Items {
		if p.Items[i].Bytes > 0 {
			used = append(used, i)
		}
	}
	sort.Slice(used, func(i, k int) bool {
		a, b := p.Places[used[i]], p.Places[used[k]]
		return a.Arena < b.Arena || a.Arena == b.Arena && a.Offset < b.Offset
	})
	end := Place{}
	for _, i := range used {
		at := p.Places[i]
		if at.Arena != end.Arena {
			end = Place{Arena: at.Arena}
		}
		if upTo := at.Offset + bytes(i); upTo > end.Offset {
			n += upTo - max(at.Offset, end.Offset)
			end.Offset = upTo
		}
	}
	return n
}

// Mode chooses whose memory plan a method uses.
type Mode uint8

// Modes.
const (
	Auto  Mode = iota // the smaller safe plan of the file's and our own
	File              // the file's, unless it is unsafe
	Own               // our own
	Naive             // one place per storage, nothing reused
)

// Options configures Make.
type Options struct {
	Mode         Mode
	Preserve     bool // inputs live to the end
	BoundInputs  bool // the caller provides the bytes of inputs
	BoundOutputs bool // and of outputs that are activations
	Aliases      bool // a move makes the target an alias of the source's bytes, as in ExecuTorch's runtime; here it copies them
}

// Make chooses a plan for the method's storages and for the workspaces of its delegates; work may be
// shorter than their list. conflicts are those of the file's plan before any edit.
func Make(m *ir.Method, work []*lowering.Workspace, conflicts []Conflict, o Options) *Memory {
	n := len(m.Storages)
	p := &Memory{Method: m, Options: o, Conflicts: conflicts, Items: make([]pack.Item, n), Callers: make([]bool, n), work: work}
	p.setMoments()
	inArena := p.sort()
	if o.Aliases {
		p.keepMoved()
	}
	p.narrow()
	blocks := p.addBlocks()
	p.Own = p.arrange(slices.Concat(inArena, blocks))
	p.File, _ = p.readFile(inArena)
	p.addArena(&p.File, blocks)
	p.File.Whole = p.File.Whole && len(conflicts) == 0
	p.Arrangement = p.Own
	if p.File.Whole && (o.Mode == File || o.Mode == Auto && p.File.Size() <= p.Own.Size()) {
		p.Arrangement = p.File
	}
	return p
}

// CheckFile finds storages that are live at the same time and overlap in the file's plan. m must be
// the unedited method: edits may change lifetimes.
func CheckFile(m *ir.Method) []Conflict {
	n := len(m.Storages)
	p := &Memory{Method: m, Items: make([]pack.Item, n), Callers: make([]bool, n)}
	p.setMoments()
	_, conflicts := p.readFile(p.sort())
	return conflicts
}

// ConflictError returns a conflict that [CheckFile] found as an error of the file.
func ConflictError(m *ir.Method, c Conflict) error {
	return fmt.Errorf("memory plan of the file: values %v and %v share bytes %d–%d of arena %d while both are alive at step %d: %w",
		m.Storages[c.A].Values, m.Storages[c.B].Values, c.Lo, c.Hi, c.Arena, c.Step, pte.ErrFormat)
}

// sort fills Items with the storages that need a place in an arena, lists them, and counts the
// bytes of the others.
func (p *Memory) sort() (inArena []int) {
	end := p.Moments[len(p.Method.Steps)]
	for i := range p.Method.Storages {
		s := &p.Method.Storages[i]
		switch {
		case p.Options.BoundInputs && s.Kind == ir.Input, p.Options.BoundOutputs && s.Kind == ir.Activation && s.Output:
			p.Callers[i] = true
		case s.Kind == ir.State:
			p.StateBytes += s.Bytes
		case s.Kind == ir.Heap || s.Kind == ir.Constant:
			p.HeapBytes += p.StartBytes(i)
		case s.Kind == ir.Activation || s.Kind == ir.Input:
			it := pack.Item{Bytes: s.Bytes, First: p.begins(s.First), Last: p.ends(s.Last)}
			if s.Last < s.First { // never used: any place outside the others' lives is valid
				it.First, it.Last = end, end
			}
			if p.Options.Preserve && s.Kind == ir.Input {
				it.Last = end
			}
			p.Items[i] = it
			inArena = append(inArena, i)
		}
	}
	return inArena
}

// StartBytes returns the initial bytes that the members of an unbounded storage share until they
// grow, or that views of a constant share before any instruction makes them.
func (p *Memory) StartBytes(storage int) (n int64) {
	for _, v := range p.Method.Storages[storage].Values {
		if t := p.Method.Values[v].Tensor; !t.Const {
			n = max(n, t.NBytes())
		}
	}
	return n
}

// arrange packs the storages into one arena.
func (p *Memory) arrange(inArena []int) Arrangement {
	items := make([]pack.Item, len(inArena))
	for n, i := range inArena {
		items[n] = p.Items[i]
	}
	l := pack.Naive(items)
	if p.Options.Mode != Naive && len(items) <= pack.MaxItems { // more than that are not verified, and share nothing
		l = pack.Pack(items)
	}
	p.LowerBound = l.Bound
	a := p.arrangement("own (" + l.Order + ")")
	for n, i := range inArena {
		a.Places[i], a.Placed[i] = Place{Offset: l.Offsets[n]}, true
	}
	a.Arenas, a.Whole = []int64{l.Size}, true
	return a
}

func (p *Memory) arrangement(source string) Arrangement {
	n := len(p.Items)
	return Arrangement{Source: source, Places: make([]Place, n), Placed: make([]bool, n)}
}

// readFile reads the file's plan and checks it against the lifetimes.
func (p *Memory) readFile(inArena []int) (Arrangement, []Conflict) {
	a := p.arrangement("file")
	a.Arenas, a.Whole = p.Method.Arenas, true
	n := len(inArena)
	items, places, index := make([]pack.Item, 0, n), make([]Place, 0, n), make([]int, 0, n)
	for _, i := range inArena {
		s := &p.Method.Storages[i]
		if !s.Planned || a.Arenas[s.Arena]-s.Offset < s.Bytes || s.Offset%int64(p.Method.Alignment(s)) != 0 {
			a.Whole = a.Whole && s.Bytes == 0
			continue
		}
		a.Places[i], a.Placed[i] = Place{Arena: s.Arena, Offset: s.Offset}, true
		item := p.Items[i]
		if s.Kind == ir.Activation && s.Last < s.First {
			item.Bytes = 0 // never used: it may lie on any other
		}
		items, places, index = append(items, item), append(places, a.Places[i]), append(index, i)
	}
	if len(items) > pack.MaxItems {
		a.Whole = false
		return a, nil
	}
	conflicts := verify(items, places)
	for n := range conflicts {
		c := &conflicts[n]
		c.A, c.B = index[c.A], index[c.B]
	}
	a.Whole = a.Whole && len(conflicts) == 0
	return a, conflicts
}

// MarkShared marks the inputs whose bytes in the arenas are shared with other storages. Plans of
// more than MaxItems storages share nothing.
func (p *Memory) MarkShared(marks []bool) {
	var placed []int // storages, then blocks
	for i, it := range p.Items {
		if it.Bytes > 0 {
			placed = append(placed, i)
		}
	}
	if len(placed) > pack.MaxItems {
		return
	}
	for _, i := range placed {
		if i >= len(marks) {
			return
		}
		if p.Method.Storages[i].Kind != ir.Input || marks[i] {
			continue
		}
		at, end := p.Places[i], p.Places[i].Offset+p.Items[i].Bytes
		marks[i] = slices.ContainsFunc(placed, func(k int) bool {
			o := p.Places[k]
			return k != i && o.Arena == at.Arena && o.Offset < end && at.Offset < o.Offset+p.Items[k].Bytes
		})
	}
}
