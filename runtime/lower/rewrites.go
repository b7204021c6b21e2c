package lower

import (
	"context"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/runtime/ir"
)

// rewrites are tried at each step in this order.
var rewrites = []rewrite{
	{name: "identity", moves: true, apply: dropIdentity, joins: true},
	{name: "overwritten", classes: []opclass.Class{opclass.IndexPut}, apply: dropOverwritten, joins: true},
	{name: "in place", classes: []opclass.Class{opclass.IndexPut}, apply: putInPlace, joins: true},
	{name: "neutral", classes: neutralClasses(), apply: dropNeutral, joins: true},
	{name: "permutations", classes: permuteClasses(), apply: joinPermutations},
	{name: "batch norm", classes: []opclass.Class{opclass.BatchNorm}, apply: foldBatchNorm},
	{name: "scale", classes: scalingClasses(), apply: foldScale},
	{name: "silu", classes: products, apply: fuseSiLU, renames: renamesAtLoad},
	{name: "hardswish", classes: quotients, apply: fuseHardswish, renames: renamesInNode},
	{name: "masked rows", classes: []opclass.Class{opclass.Where}, apply: fuseMaskedRows, renames: renamesAtLoad},
}

// Rewrite applies the canonical rewrites, which help every engine, until none applies: it removes
// dead steps and steps that only copy, folds batch norms, scales and shifts into the constants of the preceding layer,
// and fuses chains that have an operator of their own. Results are bit-identical, except after what is
// folded, where sums are rounded differently. A dead step is removed even if its operator would
// refuse it. ops holds the operators that chains are fused to; left bounds what is computed at
// load; with file, the rewrites are left out whose results a file cannot hold; ctx ends the work
// between two steps. It returns the dataflow of the result, too, nil if that was not computed.
func Rewrite(ctx context.Context, m *ir.Method, k *kernels.Ctx, ops *kernels.Set, left Budget, file *File,
) (*ir.Method, *ir.Flow, []Rewritten, error) {
	if m.Coarse || operands(m) > maxOperand {
		return m, nil, nil, nil
	}
	p := &pass{ops: ops, flow: new(ir.Flow), left: left, file: file, tried: newTrials()}
	p.evaluator = newEvaluator(m, k, p.tried.allocate)
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

func (p *pass) run(ctx context.Context) error {
	p.dropDead()
	for i := range p.m.Steps {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if s := &p.m.Steps[i]; s.Kind == ir.KernelCall && !p.changed[i] {
			p.rewrite(i)
		}
	}
	return nil
}

// rewrite tries the rewrites at step i.
func (p *pass) rewrite(i int) {
	for n := range rewrites {
		row := &rewrites[n]
		if !row.endsWith(p.m.Steps[i].Op) || !p.file.allows(row, &p.m.Steps[i]) {
			continue
		}
		if !p.fits(i) {
			return
		}
		first := len(p.done)
		if row.apply(p, i) {
			for n := range p.done[first:] {
				p.done[first+n].Rewrite = row.name
			}
			return
		}
	}
}

// operands counts what all steps read and write.
func operands(m *ir.Method) (n int) {
	for i := range m.Steps {
		s := &m.Steps[i]
		n += len(s.Reads) + len(s.Writes) + len(s.Updates)
	}
	return n
}
