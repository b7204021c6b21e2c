package ir

import (
	"errors"
	"fmt"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

var errWritesConstant = errors.New("it would write a constant")

// check refuses steps that no method may have. Errors are *StepError, except that of an input.
func (m *Method) check() error {
	for i, v := range m.Inputs {
		if s := m.Values[v].Storage; s >= 0 && m.Storages[s].Kind.IsConstant() {
			return fmt.Errorf("input %d (value %d) is a constant: %w", i, v, pte.ErrFormat)
		}
	}
	marks := make([]mark, len(m.Storages))
	for i := range m.Steps {
		if err := m.checkStep(&m.Steps[i], marks); err != nil {
			return m.stepError(&m.Steps[i], err)
		}
	}
	return m.checkFreed()
}

// checkStep checks a step's effects on storages: constants are not written, the outs of an operator
// are not also read, and slots keep their declared kind.
func (m *Method) checkStep(s *Step, marks []mark) error {
	for _, v := range s.Writes {
		kind := m.Storages[m.Values[v].Storage].Kind
		if kind.IsConstant() && !s.IsView() || kind == Constant && m.Values[v].Tensor.Const {
			return fmt.Errorf("value %d: %w", v, errWritesConstant)
		}
	}
	for _, v := range s.Updates {
		if m.Storages[m.Values[v].Storage].Kind.IsConstant() {
			return fmt.Errorf("value %d: %w", v, errWritesConstant)
		}
	}
	switch s.Kind {
	case KernelCall:
		if err := m.checkResult(s); err != nil || s.IsView() {
			return err
		}
		return m.checkOverlap(s, marks)
	case MoveCall:
		return m.checkMove(s)
	}
	return nil
}

// mark is the last value of a storage that a step accessed.
type mark struct {
	step  *Step
	value int
}

// checkOverlap refuses an out argument that shares bytes with another argument.
func (m *Method) checkOverlap(s *Step, marks []mark) error {
	for _, list := range [...][]int{s.Reads, s.Updates} {
		for _, v := range list {
			marks[m.Values[v].Storage] = mark{s, v}
		}
	}
	for _, v := range s.Writes {
		storage := m.Values[v].Storage
		if k := &marks[storage]; k.step == s && m.Storages[storage].Bytes > 0 {
			return fmt.Errorf("out value %d shares its bytes with argument value %d", v, k.value)
		}
		marks[storage] = mark{s, v}
	}
	return nil
}

// checkMove refuses moves after which a slot would name an undeclared tensor: lifetimes and
// permission to write follow from the declared values.
func (m *Method) checkMove(s *Step) error {
	from, to := &m.Values[s.Args[0]], &m.Values[s.Args[1]]
	if !m.isTensorMove(s) {
		if hasTensors(from.Kind) || hasTensors(to.Kind) {
			return fmt.Errorf("a move from %v to %v", from.Kind, to.Kind)
		}
		return nil
	}
	if from.Tensor.DType != to.Tensor.DType || len(from.Tensor.Sizes) != len(to.Tensor.Sizes) {
		return fmt.Errorf("a move of %v%v to %v%v", from.Tensor.DType, from.Tensor.Sizes, to.Tensor.DType, to.Tensor.Sizes)
	}
	return nil
}

// checkResult refuses to replace a tensor, or a list of them, by a number, and a view that is no
// tensor.
func (m *Method) checkResult(s *Step) error {
	r := s.Sig.Result
	if r == nil {
		return nil
	}
	v := s.Args[len(s.Args)-1]
	kind := m.Values[v].Kind
	if r.Alias && kind != tensor.KindTensor || !r.Alias && hasTensors(kind) {
		return fmt.Errorf("result value %d of kind %v, want %v", v, kind, r.Type)
	}
	return nil
}

func hasTensors(k tensor.Kind) bool {
	return k == tensor.KindTensor || k == tensor.KindTensorList || k == tensor.KindOptionalTensorList
}
