package lower

import (
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// Rewritten is a step that a rewrite removed or changed.
type Rewritten struct {
	Rewrite string // its name in the table
	Name    string // of the step's operator
	Origin  ir.Origin
	Bytes   int64 // of constants that were computed for it
}

// rewrite is a row of the table.
type rewrite struct {
	name string
	// A pattern ends with a call of one of the classes, or of an operator that moves elements.
	classes []opclass.Class
	moves   bool
	// apply rewrites the pattern that ends with step i, whose arguments fit its operator's schema.
	// It returns false, and changes nothing, if there is no such pattern or it has a hazard.
	apply   func(p *pass, i int) bool
	joins   bool    // values of different sizes share their bytes
	renames renames // another operator takes the place of several
}

// renames is whether a rewrite calls an operator that the program may not call.
type renames uint8

const (
	renamesNothing renames = iota
	renamesAtLoad          // payloads of files have no node for it
	renamesInNode          // they have one
)

// File describes rewrites whose result will be written to a file.
type File struct {
	// Leave reports whether the chain that ends with a call is left, as its result would remain outside of payloads: a call of an
	// operator that the program does not call, or a view that no step makes. nil for none.
	Leave func(ir.Origin) bool
}

// allows reports whether a file can have the result of a row at a step.
func (f *File) allows(row *rewrite, s *ir.Step) bool {
	if f == nil || !row.joins && row.renames == renamesNothing {
		return true
	}
	return row.renames != renamesAtLoad && (f.Leave == nil || !f.Leave(s.Origin))
}

// Bounds of the work. No exporter's method reaches them.
const (
	maxRounds  = 8
	maxOperand = 1 << 20 // arguments of all steps, with the items of lists
	maxResults = 4       // of a step inside a pattern
)

// pass holds the rounds. The patterns of one round share no step.
type pass struct {
	*evaluator
	ops   *kernels.Set
	left  Budget
	file  *File
	tried *trials
	done  []Rewritten // in all rounds

	// Of the current round:
	flow    *ir.Flow
	writers [][]int  // by storage: the steps that write it
	shape   []shape  // by storage
	edit    *ir.Edit // nil until something changes
	changed []bool   // by step: it belongs to a pattern
	joined  []bool   // by storage: it received values of another one
	merged  []bool   // by storage: another one received its values
}

// begin begins a round.
func (p *pass) begin(m *ir.Method) {
	p.m, p.edit = m, nil
	p.flow.Compute(m)
	p.writers, p.shape = m.Writers(), appendShapes(p.shape[:0], m)
	p.changed = make([]bool, len(m.Steps))
	p.joined, p.merged = make([]bool, len(m.Storages)), make([]bool, len(m.Storages))
}

// change returns the edit of the round.
func (p *pass) change() *ir.Edit {
	if p.edit == nil {
		p.edit = p.m.Edit()
	}
	return p.edit
}

// record records that a rewrite removes or changes steps. bytes is the size of the constants made for
// the first.
func (p *pass) record(bytes int64, steps ...int) {
	for _, i := range steps {
		s := &p.m.Steps[i]
		p.changed[i] = true
		p.done = append(p.done, Rewritten{Name: p.m.StepName(s), Origin: s.Origin, Bytes: bytes})
		bytes = 0
	}
}

// drop removes steps.
func (p *pass) drop(steps ...int) {
	for _, i := range steps {
		p.change().Drop(i)
	}
	p.record(0, steps...)
}

// fits reports whether step i calls a pure operator with arguments that match its schema, and with
// numbers that no step changes.
func (p *pass) fits(i int) bool {
	s := &p.m.Steps[i]
	return s.Kind == ir.KernelCall && !s.Own && s.Op.Pure && s.Sig.Result == nil && len(s.Updates) == 0 && !p.m.Changing(s.Args) &&
		fits(p.m, s)
}

// endsWith reports whether a pattern of the rewrite may end with a call of the operator.
func (r *rewrite) endsWith(op *kernels.Op) bool {
	return r.moves && op.Moves || slices.Contains(r.classes, op.Class)
}

// isClass reports whether step i is a fitting call of an operator of one of the classes.
func (p *pass) isClass(i int, classes ...opclass.Class) bool {
	s := &p.m.Steps[i]
	return s.Kind == ir.KernelCall && !p.changed[i] && slices.Contains(classes, s.Op.Class) && p.fits(i)
}

// firstOut returns the index of the first out of a call of an operator with a class: these have outs.
func firstOut(s *ir.Step) int {
	return slices.IndexFunc(s.Sig.Args, func(a kernels.Arg) bool { return a.Out })
}

// definition returns what step i reads as value v, a tensor among its arguments.
func (p *pass) definition(i, v int) int {
	return p.flow.Steps[i].Reads[slices.Index(p.m.Steps[i].Reads, v)]
}

// producer returns the step that makes value v for step i as its only reader.
func (p *pass) producer(i, v int) (step int, ok bool) {
	if p.m.Values[v].Tensor.Const {
		return 0, false
	}
	d := &p.flow.Defs[p.definition(i, v)]
	if d.Step == ir.Entry || d.Live {
		return 0, false
	}
	if writes := p.m.Steps[d.Step].Writes; len(writes) > maxResults || !slices.Contains(writes, v) {
		return 0, false
	}
	for _, u := range d.Uses {
		if u.Step != i {
			return 0, false
		}
	}
	return d.Step, true
}

// number returns a number, or the value of a constant with one element and no dimensions.
func (p *pass) number(v int) (float64, bool) {
	value := &p.m.Values[v]
	switch value.Kind {
	case tensor.KindInt, tensor.KindDouble:
		scalar := value.Scalar()
		return kernels.Args{&scalar}.Float(0), true
	case tensor.KindTensor:
		if t := value.Tensor; t.Const && len(t.Sizes) == 0 && t.DType == tensor.Float32 {
			return float64(p.floats(v)[0]), true
		}
	}
	return 0, false
}

// floats returns the elements of a float32 constant.
func (p *pass) floats(v int) []float32 {
	t := p.m.Values[v].Tensor
	return tensor.View[float32](p.m.Storages[p.m.Values[v].Storage].Data)[:t.NBytes()/4]
}

// alike reports whether two tensors have the same type, sizes and order, or the same declared ones
// if they vary.
func (p *pass) alike(a, b int) bool {
	x, y := p.m.Values[a].Tensor, p.m.Values[b].Tensor
	return x.DType == y.DType && x.Dynamism == y.Dynamism && slices.Equal(x.Sizes, y.Sizes) && slices.Equal(x.DimOrder, y.DimOrder)
}

// call replaces step i by a call of the named operator, and reports whether that exists.
func (p *pass) call(i int, name string, args ...int) bool {
	op, sig, ok, err := p.ops.Lookup(name)
	if !ok || err != nil || !op.Pure || sig.CheckCount(len(args)) != nil {
		return false
	}
	p.change().Drop(i)
	p.change().Insert(i, ir.Step{Kind: ir.KernelCall, Op: op, Sig: sig, Args: args, Origin: p.m.Steps[i].Origin})
	return true
}

// shape is what the values of a storage have in common.
type shape struct {
	static    bool // their sizes are fixed
	alignment int  // of the largest element
}

// appendShapes appends those of all storages.
func appendShapes(list []shape, m *ir.Method) []shape {
	list = slices.Grow(list, len(m.Storages))
	for i := range m.Storages {
		s := &m.Storages[i]
		x := shape{static: true, alignment: m.Alignment(s)}
		for _, v := range s.Values {
			x.static = x.static && m.Values[v].Tensor.Dynamism == tensor.Static
		}
		list = append(list, x)
	}
	return list
}

// trials caches the outcome of chains over all rounds, and holds the memory that trials reuse.
type trials struct {
	same  map[string]bool         // outcome by chain
	key   []byte                  // of the last chain
	bytes map[tensor.DType][]byte // elements in ascending order
	spare [][]byte                // for results
	used  int                     // of spare, in this trial
}

func newTrials() *trials {
	return &trials{same: make(map[string]bool), bytes: make(map[tensor.DType][]byte)}
}

// allocate returns n zeroed bytes, valid until the next trial.
func (t *trials) allocate(n int) []byte {
	if t.used == len(t.spare) {
		t.spare = append(t.spare, nil)
	}
	b := &t.spare[t.used]
	if t.used++; len(*b) < n {
		*b = tensor.AlignedBytes(n)
	} else {
		clear((*b)[:n])
	}
	return (*b)[:n]
}
