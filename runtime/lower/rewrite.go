package lower

import (
	"context"
	"slices"

	"github.com/etrun-go/etrun/kernels"
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
	ops  []string // operators that a pattern may end with
	// apply rewrites the pattern that ends with step i, whose arguments fit its operator's schema.
	// It returns false, and changes nothing, if there is no such pattern or it has a hazard.
	apply func(p *pass, i int) bool
}

// rewrites are tried at each step in this order.
var rewrites = []rewrite{
	{"identity", movements, dropIdentity},
	{"neutral", neutralOps(), dropNeutral},
	{"permutations", permuteOps(), joinPermutations},
	{"batch norm", []string{batchNormOp}, foldBatchNorm},
	{"silu", names(products), fuseSiLU},
	{"hardswish", names(quotients), fuseHardswish},
}

// byLastOp holds the rows by operator.
var byLastOp = func() map[string][]*rewrite {
	rows := make(map[string][]*rewrite)
	for i := range rewrites {
		for _, op := range rewrites[i].ops {
			rows[op] = append(rows[op], &rewrites[i])
		}
	}
	return rows
}()

// Bounds of the work. No exporter's method reaches them.
const (
	maxRounds  = 8
	maxOperand = 1 << 20 // arguments of all steps, with the items of lists
	maxResults = 4       // of a step inside a pattern
)

// Rewrite applies the canonical rewrites, which help every engine, until none applies: it removes
// dead steps and steps that only copy, folds batch norms into the constants of the preceding layer,
// and fuses chains that have an operator of their own. Results are bit-identical, except after a
// batch norm, where sums are rounded differently. A dead step is removed even if its operator would
// refuse it. ops holds the operators that chains are fused to; left bounds what is computed at
// load; ctx ends the work between two steps. It returns the dataflow of the result, too, nil if that
// was not computed.
func Rewrite(ctx context.Context, m *ir.Method, k *kernels.Ctx, ops *kernels.Set, left Budget) (*ir.Method, *ir.Flow, []Rewritten, error) {
	if m.Coarse || operands(m) > maxOperand {
		return m, nil, nil, nil
	}
	p := &pass{ops: ops, flow: new(ir.Flow), left: left, tried: newTrials()}
	p.evaluator = newEvaluator(m, k, p.tried.take)
	for range maxRounds {
		before := len(p.done)
		p.begin(m)
		if err := p.run(ctx); err != nil {
			return nil, nil, nil, err
		}
		if len(p.done) == before {
			return m, p.flow, p.done, nil
		}
		next, err := p.change().Apply()
		if err != nil {
			return nil, nil, nil, err
		}
		m = next
	}
	return m, nil, p.done, nil
}

// operands counts what all steps read and write.
func operands(m *ir.Method) (n int) {
	for i := range m.Steps {
		s := &m.Steps[i]
		n += len(s.Reads) + len(s.Writes) + len(s.Updates)
	}
	return n
}

// pass holds the rounds. The patterns of one round share no step.
type pass struct {
	*evaluator
	ops   *kernels.Set
	left  Budget
	tried *trials
	done  []Rewritten // in all rounds

	// Of the current round:
	flow    *ir.Flow
	writers [][]int  // by storage: the steps that write it
	shape   []shape  // by storage
	edit    *ir.Edit // nil until something changes
	taken   []bool   // by step: it belongs to a pattern
	joined  []bool   // by storage: it received values of another one
	gone    []bool   // by storage: another one received its values
}

// begin begins a round.
func (p *pass) begin(m *ir.Method) {
	p.m, p.edit = m, nil
	p.flow.Compute(m)
	p.writers, p.shape = m.Writers(), appendShapes(p.shape[:0], m)
	p.taken = make([]bool, len(m.Steps))
	p.joined, p.gone = make([]bool, len(m.Storages)), make([]bool, len(m.Storages))
}

// change returns the edit of the round.
func (p *pass) change() *ir.Edit {
	if p.edit == nil {
		p.edit = p.m.Edit()
	}
	return p.edit
}

func (p *pass) run(ctx context.Context) error {
	p.dropDead()
	for i := range p.m.Steps {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if s := &p.m.Steps[i]; s.Kind == ir.KernelCall && !p.taken[i] {
			p.rewrite(i, byLastOp[s.Op.Name()])
		}
	}
	return nil
}

// rewrite tries rows at step i.
func (p *pass) rewrite(i int, rows []*rewrite) {
	if len(rows) == 0 || !p.fits(i) {
		return
	}
	for _, row := range rows {
		first := len(p.done)
		if row.apply(p, i) {
			for n := range p.done[first:] {
				p.done[first+n].Rewrite = row.name
			}
			return
		}
	}
}

// take records that a rewrite removes or changes steps. bytes is the size of the constants made for
// the first.
func (p *pass) take(bytes int64, steps ...int) {
	for _, i := range steps {
		s := &p.m.Steps[i]
		p.taken[i] = true
		p.done = append(p.done, Rewritten{Name: p.m.StepName(s), Origin: s.Origin, Bytes: bytes})
		bytes = 0
	}
}

// drop removes steps.
func (p *pass) drop(steps ...int) {
	for _, i := range steps {
		p.change().Drop(i)
	}
	p.take(0, steps...)
}

// fits reports whether step i calls a pure operator with arguments that match its schema, and with
// numbers that no step changes.
func (p *pass) fits(i int) bool {
	s := &p.m.Steps[i]
	if s.Kind != ir.KernelCall || s.Own || !s.Op.Pure || s.Sig.Result != nil || len(s.Updates) > 0 || p.m.Changing(s.Args) {
		return false
	}
	for k := range s.Sig.Args {
		a, v := &s.Sig.Args[k], &p.m.Values[s.Args[k]]
		if !a.Kinds.Has(v.Kind) && !(a.Optional && v.Kind == tensor.None) {
			return false
		}
		for _, item := range v.Items() {
			if item >= 0 && !a.Items.Has(p.m.Values[item].Kind) {
				return false
			}
		}
	}
	return true
}

// is reports whether step i is a fitting call of the named operator with this many arguments before
// its outs.
func (p *pass) is(i int, name string, args int) bool {
	s := &p.m.Steps[i]
	return s.Kind == ir.KernelCall && !p.taken[i] && s.Op.Name() == name && len(s.Sig.Args) > args && s.Sig.Args[args].Out && p.fits(i)
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
