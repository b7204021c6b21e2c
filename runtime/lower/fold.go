// Package lower (no compatibility promise) holds the passes: functions from a method to
// one that computes the same, cheaper. They change methods by the edits of package ir
// only. They know operators by their rows; the names of those that patterns are made of
// stand in the tables of the rewrites.
package lower

import (
	"context"
	"math"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// Budget bounds what folding may cost, with what is tried in vain.
type Budget struct {
	Bytes int64 // of results
	Work  int64 // elements read and written, or products of sums
}

// Folded is a step that was executed at load.
type Folded struct {
	Name   string // of the operator
	Origin ir.Origin
	Bytes  int64 // of its results
}

// Fold executes the steps whose operators are pure and whose arguments are constants,
// and makes their results constants. The exporter leaves many of them on weights, above
// all the transposition before every addmm; done once, they cost nothing at run time,
// and what reads the result may keep it in a form of its own. A step whose results are
// much larger than its constants stays: it would trade time for memory. One that its
// operator refuses stays too, and fails when it is executed. k is the operators'
// context; ctx ends the work between two steps.
func Fold(ctx context.Context, m *ir.Method, k *kernels.Ctx, left Budget) (*ir.Method, []Folded, error) {
	if m.Coarse {
		return m, nil, nil
	}
	f := &folder{evaluator: newEvaluator(m, k, tensor.AlignedBytes), accesses: m.Accesses()}
	var done []Folded
	for i := range m.Steps {
		s := &m.Steps[i]
		if !f.isFoldable(s) {
			continue
		}
		cost := f.cost(s)
		if cost.Bytes > left.Bytes || cost.Work > left.Work {
			continue
		}
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		left.Bytes, left.Work = left.Bytes-cost.Bytes, left.Work-cost.Work
		if f.fold(i) {
			done = append(done, Folded{Name: m.StepName(s), Origin: s.Origin, Bytes: cost.Bytes})
		}
	}
	if len(done) == 0 {
		return m, nil, nil
	}
	m, err := f.edit.Apply()
	return m, done, err
}

// folder is the state of one pass.
type folder struct {
	*evaluator
	edit     *ir.Edit // nil until something was folded
	accesses []ir.Accesses
}

// isFoldable reports a call of a pure operator on what is known, with outs that nothing
// else writes.
func (f *folder) isFoldable(s *ir.Step) bool {
	if s.Kind != ir.KernelCall || !s.Op.Pure || s.Sig.Result != nil || len(s.Updates) > 0 || len(s.Writes) == 0 {
		return false
	}
	for i := range s.Sig.Args {
		if !s.Sig.Args[i].Out && !f.isKnown(s.Args[i]) {
			return false
		}
	}
	for _, v := range s.Writes {
		if !f.isFree(v) {
			return false
		}
	}
	return true
}

// isFree reports an out that can become a constant: all that share its bytes are of
// fixed sizes and fit into them.
func (f *folder) isFree(v int) bool {
	storage := f.m.Values[v].Storage
	s := &f.m.Storages[storage]
	if s.Kind != ir.Activation || s.Bytes == 0 || f.m.Values[v].Tensor.NBytes() != s.Bytes || len(f.accesses[storage].Writers) != 1 {
		return false
	}
	for _, member := range s.Values {
		if f.m.Values[member].Tensor.Dynamism != tensor.Static {
			return false
		}
	}
	return true
}

// maxTensor is the size of tensors above which no budget goes, in bytes: sums of as
// many as a method has do not overflow.
const maxTensor = 1 << 40

// smallResult is the size of results that are kept whatever they are made of, in bytes.
const smallResult = 1 << 12

// cost estimates what a call takes; results too large for what they are made of cost
// more than any budget has.
func (f *folder) cost(s *ir.Step) Budget {
	in, inBytes, largest := f.sum(s.Reads)
	out, outBytes, _ := f.sum(s.Writes)
	if outBytes > max(2*inBytes, smallResult) || max(inBytes, outBytes) > maxTensor {
		return Budget{Bytes: math.MaxInt64}
	}
	work := in + out
	if s.Op.Family >= kernels.Sum { // an element may be a sum of as many products as the largest operand has elements
		if largest > math.MaxInt64/max(out, 1) {
			return Budget{Work: math.MaxInt64}
		}
		work = max(work, largest*out)
	}
	return Budget{Bytes: outBytes, Work: work}
}

// sum adds up the elements and bytes of tensors, and finds the most elements of one.
func (f *folder) sum(values []int) (elements, bytes, largest int64) {
	for _, v := range values {
		t := f.m.Values[v].Tensor
		b := min(t.NBytes(), maxTensor+1)
		n := b / int64(t.DType.Size())
		elements, bytes, largest = elements+n, bytes+b, max(largest, n)
	}
	return elements, bytes, largest
}

// fold makes the results of step i constants; false is a call that the operator refuses.
func (f *folder) fold(i int) bool {
	if !f.execute(i) {
		return false
	}
	if f.edit == nil {
		f.edit = f.m.Edit()
	}
	f.edit.Drop(i)
	for _, v := range f.m.Steps[i].Writes {
		storage := f.m.Values[v].Storage
		f.edit.MakeConstant(storage, f.bytes[storage])
	}
	return true
}
