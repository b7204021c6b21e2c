package lower

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// evaluator executes steps at load, on its own values.
type evaluator struct {
	m        *ir.Method
	k        *kernels.Ctx
	bytes    map[int][]byte     // by storage: known bytes, in addition to constants
	allocate func(n int) []byte // allocates results
}

func newEvaluator(m *ir.Method, k *kernels.Ctx, take func(int) []byte) *evaluator {
	return &evaluator{m: m, k: k, bytes: make(map[int][]byte), allocate: take}
}

// isKnown reports whether v is a tensor with known bytes, a number that no step writes, or a list
// of these.
func (e *evaluator) isKnown(v int) bool {
	if v < 0 {
		return true
	}
	value := &e.m.Values[v]
	if value.Kind == tensor.KindTensor {
		return value.Tensor.Const || e.bytes[value.Storage] != nil
	}
	for _, item := range value.Items() {
		if !e.isKnown(item) {
			return false
		}
	}
	return !value.Changes
}

// execute runs step i, whose arguments are all known, and records its results as known. It returns
// false if the operator fails.
func (e *evaluator) execute(i int) bool {
	s := &e.m.Steps[i]
	values := make(map[int]*tensor.Value)
	args := make(kernels.Args, len(s.Args))
	for n, v := range s.Args {
		args[n] = e.value(values, v)
	}
	if s.Sig.Check(args) != nil {
		return false
	}
	call := kernels.NewCall(s.Op.Func, args, false)
	if call.Do(e.k) != nil {
		return false
	}
	for _, v := range s.Writes {
		e.bytes[e.m.Values[v].Storage] = values[v].Tensor.Data
	}
	return true
}

// none is what an absent item of an optional tensor list refers to.
var none tensor.Value

// value returns a value in its state at load, one for each index.
func (e *evaluator) value(values map[int]*tensor.Value, v int) *tensor.Value {
	if v < 0 {
		return &none
	}
	if known := values[v]; known != nil {
		return known
	}
	s := &e.m.Values[v]
	value := s.Scalar()
	values[v] = &value
	switch s.Kind {
	case tensor.KindTensor:
		value.Tensor = e.tensor(s)
	case tensor.KindIntList, tensor.KindTensorList, tensor.KindOptionalTensorList:
		items := make([]*tensor.Value, len(s.Items()))
		for i, item := range s.Items() {
			items[i] = e.value(values, item)
		}
		value = tensor.NewList(s.Kind, items)
	}
	return &value
}

// tensor returns a tensor with its known bytes, or new ones for a result.
func (e *evaluator) tensor(s *ir.Value) *tensor.Tensor {
	t := tensor.Make(s.Tensor.DType, s.Tensor.Sizes, s.Tensor.DimOrder, tensor.Static)
	b := e.bytes[s.Storage]
	if s.Tensor.Const {
		b = e.m.Storages[s.Storage].Data
	}
	if b == nil {
		b = e.allocate(t.NBytes())
	}
	t.Bind(b)
	return t
}
