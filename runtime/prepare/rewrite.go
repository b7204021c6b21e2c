package prepare

import (
	"context"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/lower"
	"github.com/etrun-go/etrun/runtime/plan"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/trace"
)

// built is a method as a dataflow.
type built struct {
	ir        *ir.Method
	suspect   []string        // see checkStates
	conflicts []plan.Conflict // of the file's plan
}

// checkPlan finds the conflicts of the file's memory plan, and refuses them if plans are strict.
func (l *load) checkPlan(b *built) error {
	b.conflicts = plan.CheckFile(b.ir)
	if len(b.conflicts) > 0 && l.Strict {
		return plan.ConflictError(b.ir, b.conflicts[0])
	}
	return nil
}

// rewritten is a method whose constants are computed and whose chains of calls are rewritten, for any backends.
type rewritten struct {
	*built
	ir       *ir.Method
	flow     *ir.Flow // of ir, nil if it is not known; the first run that lowers regions uses it up
	folded   []lower.Folded
	rewrites []lower.Rewritten
	released int64 // bytes of constants whose memory was released
	// contradiction is why the method is neither rewritten nor lowered, "" if it is.
	contradiction string
}

// Bounds of the work of folding, and of rewriting, in elements: a fraction of a second.
const (
	foldWork        = 1 << 24
	foldWorkPerByte = 16 // of the program
)

// rewrite folds constants and applies the rewrites to the method of the file.
func (l *load) rewrite(ctx context.Context, b *built) (*rewritten, error) {
	k, budget := kernels.NewCtx(l.Pool), lower.Budget{Bytes: l.spare(0), Work: foldWork + foldWorkPerByte*l.Size}
	budget.Blank = l.DescribeOnly && !lower.Quantizes(b.ir)
	r := &rewritten{built: b}
	var err error
	r.ir, r.folded, err = lower.Fold(ctx, b.ir, k, budget)
	if err := l.report.Stage(trace.StageFold, foldedBytes(r.folded), err); err != nil {
		return nil, err
	}
	l.report.Folded(b.ir, r.ir, r.folded)
	if l.Rewrite || l.Lower {
		if r.contradiction, err = lower.Contradiction(ctx, r.ir); err != nil {
			return nil, l.report.Stage(trace.StageRewrite, 0, err)
		}
	}
	if l.Rewrite && r.contradiction == "" {
		budget.Bytes = l.spare(foldedBytes(r.folded))
		if l.Limits.Total > 0 { // then constants that take more memory than they save are not folded
			budget.Bytes = 0
		}
		r.ir, r.flow, r.rewrites, err = lower.Rewrite(ctx, r.ir, k, l.Options.Operators, budget, l.InFile)
		if err := l.report.Stage(trace.StageRewrite, rewrittenBytes(r.rewrites), err); err != nil {
			return nil, err
		}
	}
	if l.HalfState {
		if err := l.halveState(r); err != nil {
			return nil, l.report.Stage(trace.StageRewrite, 0, err)
		}
	}
	l.hold(trace.MemoryFolded, foldedBytes(r.folded)+rewrittenBytes(r.rewrites))
	l.constants.start(r.ir)
	r.released = l.release(r.ir, readByImages{})
	return r, nil
}

// halveState makes state of float32 float16. In a program without such state that would have no effect.
func (l *load) halveState(r *rewritten) (err error) {
	was := r.ir
	if r.ir, err = was.HalveState(); err != nil || r.ir != was {
		r.flow = nil
		return err
	}
	isState := func(s ir.Storage) bool { return s.Kind == ir.State }
	if !slices.ContainsFunc(r.ir.Storages, isState) && (len(r.ir.Inputs) == 0 || l.mayHalve()) {
		return nil // other methods have it
	}
	return fmt.Errorf("it has no state of float32, which could be float16: %w", pte.ErrUnsupported)
}

// mayHalve reports whether a method of the file calls an operator with state that may be float16.
func (l *load) mayHalve() bool {
	for i := range l.File.Methods {
		for _, o := range l.File.Methods[i].Operators {
			if op, _, known, err := l.Options.Operators.Lookup(o.FullName()); known && err == nil && len(op.Halves) > 0 {
				return true
			}
		}
	}
	return false
}

// foldedBytes returns the size of the constants that folding made.
func foldedBytes(list []lower.Folded) (n int64) {
	for i := range list {
		n += list[i].Bytes
	}
	return n
}

// rewrittenBytes returns the size of the constants that rewrites made.
func rewrittenBytes(list []lower.Rewritten) (n int64) {
	for i := range list {
		n += list[i].Bytes
	}
	return n
}
