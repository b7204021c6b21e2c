// Package lower (no compatibility promise) holds the passes: functions from a method to
// one that computes the same, cheaper. They change methods by the edits of package ir
// only, and know operators by their rows, never by name.
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
	f := &folder{m: m, accesses: m.Accesses(), results: make(map[int][]byte)}
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
		if f.execute(k, i) {
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
	m        *ir.Method
	edit     *ir.Edit // nil until something was folded
	accesses []ir.Accesses
	results  map[int][]byte // by storage
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

// isKnown reports a constant, a number that no step writes, or a list of such.
func (f *folder) isKnown(v int) bool {
	if v < 0 {
		return true
	}
	value := &f.m.Values[v]
	if value.Kind == tensor.KindTensor {
		return value.Tensor.Const || f.results[value.Storage] != nil
	}
	for _, item := range value.Items {
		if !f.isKnown(item) {
			return false
		}
	}
	return !value.Changes
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

// execute makes the call of step i on values of its own; false is a call that the
// operator refuses.
func (f *folder) execute(k *kernels.Ctx, i int) bool {
	s := &f.m.Steps[i]
	values := make(map[int]*tensor.Value)
	args := make(kernels.Args, len(s.Args))
	for n, v := range s.Args {
		args[n] = f.value(values, v)
	}
	if s.Sig.Check(args) != nil {
		return false
	}
	call := kernels.NewCall(s.Op.Func, args, false)
	if call.Do(k) != nil {
		return false
	}
	if f.edit == nil {
		f.edit = f.m.Edit()
	}
	f.edit.Drop(i)
	for _, v := range s.Writes {
		storage := f.m.Values[v].Storage
		f.results[storage] = values[v].Tensor.Data
		f.edit.MakeConstant(storage, values[v].Tensor.Data)
	}
	return true
}

// none is what an absent item of an optional tensor list refers to.
var none tensor.Value

// value is a value as it is at load, one for each index.
func (f *folder) value(values map[int]*tensor.Value, v int) *tensor.Value {
	if v < 0 {
		return &none
	}
	if known := values[v]; known != nil {
		return known
	}
	s := &f.m.Values[v]
	value := s.Scalar()
	values[v] = &value
	switch s.Kind {
	case tensor.KindTensor:
		value.Tensor = f.tensor(s)
	case tensor.KindIntList, tensor.KindTensorList, tensor.KindOptionalTensorList:
		items := make([]*tensor.Value, len(s.Items))
		for i, item := range s.Items {
			items[i] = f.value(values, item)
		}
		value = tensor.NewList(s.Kind, items)
	}
	return &value
}

// tensor has the bytes of a constant or of an earlier result, or new ones for a result.
func (f *folder) tensor(s *ir.Value) *tensor.Tensor {
	t := tensor.Make(s.Tensor.DType, s.Tensor.Sizes, s.Tensor.DimOrder, tensor.Static)
	b := f.results[s.Storage]
	if s.Tensor.Const {
		b = f.m.Storages[s.Storage].Data
	}
	if b == nil {
		b = tensor.AlignedBytes(t.NBytes())
	}
	t.Bind(b)
	return t
}
