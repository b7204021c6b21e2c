package ir

import "slices"

// Flow is the reaching definitions of the method's bytes. A storage may be written many times: a
// definition is its content after one write, and a use is a step that reads a definition as one of
// the storage's values, which are its views. Definitions do not reach from one block to the next:
// the content of a storage at the start of a block is a definition of that block. Numbers in slots
// that steps write ([Value.Changes]) are not tracked, nor are the sizes that a view takes from its
// operand.
type Flow struct {
	Blocks []Block
	Defs   []Def
	Steps  []StepFlow // by step
	flowMemory
}

// flowMemory is memory that a flow uses again for the next method.
type flowMemory struct {
	last    []int  // by storage: its last definition in the block so far, plus one
	exposed []bool // by storage: some block reads its content at the start of the block
	uses    []Use  // the first uses of definitions
	ids     []int  // the lists of steps
}

// Block is straight-line code: control enters at From only and leaves after the last step only,
// which may be a jump.
type Block struct{ From, To int }

// Def is one content of a storage.
type Def struct {
	Storage int
	Block   int
	Step    int   // the step that writes it, Entry for the content at the start of the block
	Value   int   // the value that the step writes, None at entry
	Whole   bool  // the previous content is fully replaced; a freed storage has none
	Uses    []Use // in the block, in the order of steps; a step that updates the bytes uses them too
	Next    int   // the next definition of the same storage in the block, or None
	Live    bool  // other blocks, the caller or the next run may read it
}

// Use is a step that reads a definition as the given value.
type Use struct{ Step, Value int }

// StepFlow holds the definitions that a step reads and makes.
type StepFlow struct {
	Block int
	Reads []int // definitions read by Step.Reads and then Step.Updates
	Makes []int // definitions made by Step.Writes and then Step.Updates; None for the result of a view, which writes nothing
}

// Values for a missing step or definition.
const (
	Entry = -1
	None  = -1
)

// Flow computes the definitions. Its time and memory are linear in the steps and their effects.
func (m *Method) Flow() *Flow {
	f := new(Flow)
	f.Compute(m)
	return f
}

// Compute replaces the flow by that of another method, and uses its memory again.
func (f *Flow) Compute(m *Method) {
	reads, writes := m.reads(), m.writes()
	f.Blocks, f.Steps = f.Blocks[:0], zeroed(f.Steps, len(m.Steps))
	f.last, f.exposed = zeroed(f.last, len(m.Storages)), zeroed(f.exposed, len(m.Storages))
	f.uses, f.ids = zeroed(f.uses, reads), zeroed(f.ids, reads+writes)
	c := &flower{Flow: f, m: m, uses: f.uses, ids: f.ids}
	f.Defs = slices.Grow(f.Defs[:0], writes+c.entries())
	c.findBlocks()
	for b := range f.Blocks {
		first := len(f.Defs)
		for i := f.Blocks[b].From; i < f.Blocks[b].To; i++ {
			c.step(b, i)
		}
		for d := first; d < len(f.Defs); d++ {
			f.last[f.Defs[d].Storage] = 0
		}
	}
	c.setLive()
}

// zeroed returns n zeros, in the memory of list if that is large enough.
func zeroed[T any](list []T, n int) []T {
	list = slices.Grow(list[:0], n)[:n]
	clear(list)
	return list
}

// reads counts what all steps read.
func (m *Method) reads() (n int) {
	for i := range m.Steps {
		n += len(m.Steps[i].Reads) + len(m.Steps[i].Updates)
	}
	return n
}

// entries estimates the number of definitions that no step makes: one per first read.
func (f *flower) entries() (n int) {
	for i := range f.m.Storages {
		if s := &f.m.Storages[i]; s.Kind != Activation && s.First <= s.Last {
			n++
		}
	}
	return n
}

// setLive marks the last definition of each storage in a block that may be read elsewhere.
func (f *flower) setLive() {
	for d := range f.Defs {
		def := &f.Defs[d]
		s := &f.m.Storages[def.Storage]
		def.Live = def.Next == None && (s.Output || s.Kind != Activation || f.exposed[def.Storage])
	}
}

// flower computes a flow.
type flower struct {
	*Flow
	m    *Method
	uses []Use // those that are left
	ids  []int // those that are left
}

// list returns an empty list of up to n definitions.
func (f *flower) list(n int) []int {
	list := f.ids[:0:n]
	f.ids = f.ids[n:]
	return list
}

// findBlocks starts a block at each jump target and after each jump.
func (f *flower) findBlocks() {
	begins, from := f.m.blockStarts(), 0
	for i := 1; i < len(begins); i++ {
		if begins[i] {
			f.Blocks = append(f.Blocks, Block{from, i})
			from = i
		}
	}
}

// step records what step i reads, and then what it writes.
func (f *flower) step(block, i int) {
	s, flow := &f.m.Steps[i], &f.Steps[i]
	flow.Block = block
	flow.Reads, flow.Makes = f.list(len(s.Reads)+len(s.Updates)), f.list(len(s.Writes)+len(s.Updates))
	for _, list := range [...][]int{s.Reads, s.Updates} {
		for _, v := range list {
			flow.Reads = append(flow.Reads, f.use(i, v))
		}
	}
	for _, v := range s.Writes {
		if s.IsView() {
			flow.Makes = append(flow.Makes, None)
			continue
		}
		flow.Makes = append(flow.Makes, f.define(i, v, true))
	}
	for _, v := range s.Updates {
		flow.Makes = append(flow.Makes, f.define(i, v, false))
	}
	if f.m.Frees(s) {
		f.define(i, s.Args[0], true)
	}
}

// use records that step i reads value v, and returns the definition.
func (f *flower) use(i, v int) int {
	storage := f.m.Values[v].Storage
	d := f.last[storage] - 1
	if d < 0 {
		d = f.add(i, storage, Def{Step: Entry, Value: None, Whole: true})
		f.exposed[storage] = true
	}
	def := &f.Defs[d]
	if def.Uses == nil {
		def.Uses, f.uses = f.uses[:0:1], f.uses[1:]
	}
	def.Uses = append(def.Uses, Use{i, v})
	return d
}

// define records that step i writes value v.
func (f *flower) define(i, v int, whole bool) int {
	return f.add(i, f.m.Values[v].Storage, Def{Step: i, Value: v, Whole: whole})
}

// add appends a definition that step i reads or makes.
func (f *flower) add(i, storage int, d Def) int {
	n := len(f.Defs)
	d.Storage, d.Block, d.Next = storage, f.Steps[i].Block, None
	if before := f.last[storage] - 1; before >= 0 {
		f.Defs[before].Next = n
	}
	f.last[storage] = n + 1
	f.Defs = append(f.Defs, d)
	return n
}
