// Package lower (no compatibility promise) holds the passes: functions from a method to a cheaper
// one that computes the same. They change methods only through the edits of package ir. They
// identify operators by their table rows, and name only those that they insert.
package lower

import (
	"context"
	"math"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// Budget bounds the cost of folding, failed attempts included.
type Budget struct {
	Bytes int64 // of results
	Work  int64 // elements read and written, or products of sums
	Blank bool  // the method is only described: elements of weights are not computed
}

// Folded is a step that was executed at load.
type Folded struct {
	Name   string // of the operator
	Origin ir.Origin
	Bytes  int64 // of its results
}

// Fold executes the steps whose operators are pure and whose arguments are constants, and turns
// their results into constants. The exporter leaves many of them on weights, above all the
// transposition before every addmm; done once, they cost nothing at run time, and the reader of the
// result may store it in its own format. A step whose results are much larger than its constants
// stays: folding it would trade memory for time. A step whose operator fails stays too, and fails
// at run time. k is the operators' context; ctx ends the work between two steps.
func Fold(ctx context.Context, m *ir.Method, k *kernels.Ctx, left Budget) (*ir.Method, []Folded, error) {
	if m.Coarse {
		return m, nil, nil
	}
	f := &folder{evaluator: newEvaluator(m, k, tensor.AlignedBytes), writers: m.Writers(), folded: make([]bool, len(m.Steps)), blank: make(map[int]int)}
	if left.Blank {
		f.prober = newProber(m)
	}
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
			if cost.Bytes > smallResult {
				cpu.Forget() // the next reader has the result
			}
		}
	}
	if len(done) == 0 {
		return m, nil, nil
	}
	f.fillRead()
	m, err := f.edit.Apply()
	return m, done, err
}

// folder is the state of one pass.
type folder struct {
	*evaluator
	edit    *ir.Edit // nil until something was folded
	writers [][]int  // by storage: the steps that write it
	folded  []bool   // by step

	prober *pass       // nil if nothing may be blank
	blank  map[int]int // by storage: the step whose result was not computed yet
}

// isFoldable reports whether s calls a pure operator on known arguments, with outs that no other
// step writes.
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

// isFree reports whether an out can become a constant: all values that share its bytes have fixed
// sizes and fit into them.
func (f *folder) isFree(v int) bool {
	storage := f.m.Values[v].Storage
	s := &f.m.Storages[storage]
	if s.Kind != ir.Activation || s.Bytes == 0 || f.m.Values[v].Tensor.NBytes() != s.Bytes || len(f.writers[storage]) != 1 {
		return false
	}
	for _, member := range s.Values {
		if f.m.Values[member].Tensor.Dynamism != tensor.Static {
			return false
		}
	}
	return true
}

// maxTensor is a tensor size in bytes beyond every budget. A sum over all tensors of a method does
// not overflow.
const maxTensor = 1 << 40

// smallResult is the size in bytes up to which results are always folded.
const smallResult = 1 << 14

// cost estimates a call. Results that are too large for their arguments cost more than any budget.
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

// sum returns the total elements and bytes of tensors, and the elements of the largest.
func (f *folder) sum(values []int) (elements, bytes, largest int64) {
	for _, v := range values {
		t := f.m.Values[v].Tensor
		b := min(t.NBytes(), maxTensor+1)
		n := b / int64(t.DType.Size())
		elements, bytes, largest = elements+n, bytes+b, max(largest, n)
	}
	return elements, bytes, largest
}

// fold turns the results of step i into constants. It returns false if the operator fails.
func (f *folder) fold(i int) bool {
	if f.mayBeBlank(i) {
		f.leaveBlank(i)
	} else if f.fill(f.m.Steps[i].Reads); !f.execute(i) {
		return false
	}
	f.folded[i] = true
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
