package lower

import "github.com/etrun-go/etrun/runtime/ir"

// maxBlock is the most steps that are looked at together: what is found about them may
// take its square in bits.
const maxBlock = 2048

// block is the steps from one up to another, which control enters at the first and leaves
// after the last only.
type block struct{ from, to int }

// blocks cuts a method at its jumps, at where they lead, and at what frees memory.
func blocks(m *ir.Method) (list []block) {
	targets := make([]bool, len(m.Steps)+1)
	for i := range m.Steps {
		if s := &m.Steps[i]; s.Kind == ir.JumpFalseCall {
			targets[s.Target] = true
		}
	}
	from := 0
	end := func(to int) {
		if to > from {
			list = append(list, block{from, to})
		}
		from = to
	}
	for i := range m.Steps {
		if targets[i] || i-from == maxBlock {
			end(i)
		}
		if k := m.Steps[i].Kind; k == ir.JumpFalseCall || k == ir.FreeCall {
			end(i)
			from = i + 1
		}
	}
	end(len(m.Steps))
	return list
}

// definition is a write of a storage in a block, with the steps of the block that read
// it: the storage in static single assignment.
type definition struct {
	step    int
	value   int
	readers []int
	last    bool // of its storage in the block
}

// outside stands for the definitions before a block.
const outside = -1

// flow is the dataflow of one block after the other. Its tables are made once for the method.
type flow struct {
	m        *ir.Method
	views    []bool        // by value: a step makes it a view
	accesses []ir.Accesses // by storage, of the whole method

	block
	defs    []definition
	reads   [][]int  // by step of the block: the definition that each of Step.Reads sees
	writes  [][]int  // the definition of each of Step.Writes, but for views
	after   [][]int  // the earlier steps that it must follow, each once; all by their place in the block
	refused []string // why no graph can have it, "" where one can

	current []mark  // by storage: the definition that holds
	entered []int   // by storage: the block, plus one, in which it is read as it was before the block
	viewed  []mark  // by value: the step that made it a view
	touched []touch // by resource
	number  int     // of the block
}

// mark is an index that holds in one block.
type mark struct{ block, index int }

// touch is who wrote and read a resource last.
type touch struct {
	block   int
	writer  int // outside: nobody in the block
	readers []int
}

func newFlow(m *ir.Method) *flow {
	return &flow{m: m, views: m.Views(), accesses: m.Accesses(),
		current: make([]mark, len(m.Storages)), entered: make([]int, len(m.Storages)), viewed: make([]mark, len(m.Values)),
		touched: make([]touch, len(m.Storages)+len(m.Values)+1)}
}

// enter finds the dataflow of a block.
func (f *flow) enter(b block) {
	f.number++
	n := b.to - b.from
	f.block, f.defs = b, f.defs[:0]
	f.reads, f.writes, f.after = make([][]int, n), make([][]int, n), make([][]int, n)
	f.refused = make([]string, n)
	for i := range n {
		f.after[i] = f.follow(i)
		f.define(i)
	}
	for i := range f.defs {
		d := &f.defs[i]
		d.last = f.current[f.m.Values[d.value].Storage].index == i
	}
}

// step is step i of the block.
func (f *flow) step(i int) *ir.Step { return &f.m.Steps[f.from+i] }

// define records which definitions step i sees, and makes its own.
func (f *flow) define(i int) {
	s := f.step(i)
	f.reads[i] = f.see(i, s.Reads)
	f.see(i, s.Updates)
	f.refused[i] = f.refusal(i)
	if s.IsView() {
		f.viewed[s.Writes[0]] = mark{f.number, i}
		return
	}
	for _, v := range s.Updates {
		f.add(i, v)
	}
	for _, v := range s.Writes {
		f.writes[i] = append(f.writes[i], f.add(i, v))
	}
}

func (f *flow) add(i, v int) int {
	f.defs = append(f.defs, definition{step: i, value: v})
	f.current[f.m.Values[v].Storage] = mark{f.number, len(f.defs) - 1}
	return len(f.defs) - 1
}

func (f *flow) see(i int, values []int) []int {
	seen := make([]int, len(values))
	for k, v := range values {
		storage := f.m.Values[v].Storage
		seen[k] = outside
		if c := f.current[storage]; c.block == f.number {
			seen[k] = c.index
			d := &f.defs[c.index]
			if n := len(d.readers); n == 0 || d.readers[n-1] != i {
				d.readers = append(d.readers, i)
			}
			continue
		}
		f.entered[storage] = f.number
	}
	return seen
}

// outlives reports a definition that a step outside the block, or the caller, may see.
func (f *flow) outlives(d *definition) bool {
	storage := f.m.Values[d.value].Storage
	if !d.last {
		return false
	}
	r := f.accesses[storage].Readers
	return f.m.Storages[storage].Output || f.m.Storages[storage].Kind != ir.Activation || f.entered[storage] == f.number ||
		len(r) > 0 && (r[0] < f.from || r[len(r)-1] >= f.to)
}

// follow lists the steps that step i must follow: those that wrote what it touches, and
// those that read what it writes.
func (f *flow) follow(i int) (after []int) {
	seen := make(map[int]bool)
	add := func(j int) {
		if j != outside && j != i && !seen[j] {
			seen[j] = true
			after = append(after, j)
		}
	}
	f.visit(f.step(i), func(resource int, write bool) {
		t := &f.touched[resource]
		if t.block != f.number {
			*t = touch{block: f.number, writer: outside, readers: t.readers[:0]}
		}
		add(t.writer)
		if !write {
			t.readers = append(t.readers, i)
			return
		}
		for _, r := range t.readers {
			add(r)
		}
		t.writer, t.readers = i, t.readers[:0]
	})
	return after
}

// visit names all that a step touches, what it reads first: bytes of storages; the sizes
// and place of views; slots that steps change; and, for what has other effects, the world.
func (f *flow) visit(s *ir.Step, touch func(resource int, write bool)) {
	storage := func(v int) int { return f.m.Values[v].Storage }
	slot := func(v int) int { return len(f.m.Storages) + v }
	for _, list := range [...][]int{s.Reads, s.Updates} {
		for _, v := range list {
			touch(storage(v), false)
			if f.views[v] {
				touch(slot(v), false)
			}
		}
	}
	f.visitSlots(s.Args, func(v int) { touch(slot(v), false) })
	for _, v := range s.Updates {
		touch(storage(v), true)
	}
	for _, v := range s.Writes {
		if !s.IsView() {
			touch(storage(v), true)
		}
		if f.views[v] {
			touch(slot(v), true)
		}
	}
	if s.Kind == ir.MoveCall || s.Kind == ir.KernelCall && s.Sig.Result != nil {
		if v := s.Args[len(s.Args)-1]; f.m.Values[v].Changes {
			touch(slot(v), true)
		}
	}
	if s.Kind == ir.DelegateCall || s.Kind == ir.KernelCall && !s.Op.Pure {
		touch(len(f.touched)-1, true)
	}
}

// visitSlots names the slots among values, and among the items of lists, that steps change.
func (f *flow) visitSlots(values []int, touch func(v int)) {
	for _, v := range values {
		if v < 0 {
			continue
		}
		if f.m.Values[v].Changes {
			touch(v)
		}
		f.visitSlots(f.m.Values[v].Items, touch)
	}
}
