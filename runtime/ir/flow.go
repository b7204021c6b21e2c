package ir

// Flow says which definition of bytes each step reads. A storage may be written many
// times: a definition is what one write left in it, and a use is a step that reads a
// definition as one of the storage's values, which are its views. Definitions do not
// reach from one block to the next: what a storage holds where a block begins is a
// definition of that block. Numbers in slots that steps write ([Value.Changes]) are not
// followed, and neither are the sizes that a view takes from its operand.
type Flow struct {
	Blocks []Block
	Defs   []Def
	Steps  []StepFlow // by step
}

// Block is a straight run of steps: control enters at From only and leaves after the last
// one only, which may be a jump.
type Block struct{ From, To int }

// Def is one content of a storage.
type Def struct {
	Storage int
	Block   int
	Step    int   // that writes it, Entry where it was there when the block began
	Value   int   // that the step writes, None at entry
	Whole   bool  // nothing of what was there before is left; a storage that was freed holds nothing
	Uses    []Use // in the block, in the order of steps; a step that updates the bytes uses them too
	Next    int   // the definition that follows it in the same storage and block, or None
	Live    bool  // other blocks, the caller or the next execute may read it
}

// Use is a step that reads a definition as the given value.
type Use struct{ Step, Value int }

// StepFlow is the definitions that a step reads and leaves.
type StepFlow struct {
	Block int
	Reads []int // what Step.Reads and then Step.Updates read
	Makes []int // what Step.Writes and then Step.Updates leave; None for the result of a view, which writes nothing
}

// What stands for a step or a definition that is not there.
const (
	Entry = -1
	None  = -1
)

// Flow finds the definitions. Its time and memory are linear in the steps and their
// effects.
func (m *Method) Flow() *Flow {
	f := &flower{Flow: &Flow{Steps: make([]StepFlow, len(m.Steps))}, m: m,
		last: make([]int, len(m.Storages)), exposed: make([]bool, len(m.Storages))}
	f.Defs = make([]Def, 0, f.definitions())
	f.findBlocks()
	for b := range f.Blocks {
		first := len(f.Defs)
		for i := f.Blocks[b].From; i < f.Blocks[b].To; i++ {
			f.step(b, i)
		}
		for d := first; d < len(f.Defs); d++ {
			f.last[f.Defs[d].Storage] = 0
		}
	}
	f.setLive()
	return f.Flow
}

// definitions is about how many there are: of each write, and of what is read first.
func (f *flower) definitions() (n int) {
	for i := range f.m.Steps {
		n += len(f.m.Steps[i].Writes) + len(f.m.Steps[i].Updates)
	}
	for i := range f.m.Storages {
		if s := &f.m.Storages[i]; s.Kind != Activation && s.First <= s.Last {
			n++
		}
	}
	return n
}

// setLive marks the last definition of each storage in a block where somebody may read it.
func (f *flower) setLive() {
	for d := range f.Defs {
		def := &f.Defs[d]
		s := &f.m.Storages[def.Storage]
		def.Live = def.Next == None && (s.Output || s.Kind != Activation || f.exposed[def.Storage])
	}
}

// flower finds a flow.
type flower struct {
	*Flow
	m       *Method
	last    []int  // by storage: its last definition in the block so far, plus one
	exposed []bool // by storage: some block reads what was there when it began
}

// findBlocks begins a block at each step that a jump leads to or that follows one.
func (f *flower) findBlocks() {
	n := len(f.m.Steps)
	begins := make([]bool, n+1)
	begins[0], begins[n] = true, true
	for i := range f.m.Steps {
		if s := &f.m.Steps[i]; s.IsJump() {
			begins[i+1], begins[s.Target] = true, true
		}
	}
	from := 0
	for i := 1; i <= n; i++ {
		if begins[i] {
			f.Blocks = append(f.Blocks, Block{from, i})
			from = i
		}
	}
}

// step notes what step i reads, and then what it leaves.
func (f *flower) step(block, i int) {
	s, flow := &f.m.Steps[i], &f.Steps[i]
	flow.Block = block
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
	if s.Kind == FreeCall {
		for _, v := range f.m.tensors(nil, s.Args...) {
			f.define(i, v, true)
		}
	}
}

// use notes that step i reads value v, of the definition that it returns.
func (f *flower) use(i, v int) int {
	storage := f.m.Values[v].Storage
	d := f.last[storage] - 1
	if d < 0 {
		d = f.add(i, storage, Def{Step: Entry, Value: None, Whole: true})
		f.exposed[storage] = true
	}
	f.Defs[d].Uses = append(f.Defs[d].Uses, Use{i, v})
	return d
}

// define notes that step i writes value v.
func (f *flower) define(i, v int, whole bool) int {
	return f.add(i, f.m.Values[v].Storage, Def{Step: i, Value: v, Whole: whole})
}

// add appends a definition that step i meets or makes.
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
