// Package ir is the dataflow of a method: which bytes (storages) its values live
// in, which instructions read and write them, and when each is alive. It is pure:
// a description of a method in, a description of its flow out.
package ir

import (
	"fmt"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Kind says how a storage lives.
type Kind uint8

// Kinds of storage.
const (
	Activation Kind = iota // written before it is read, in every execute
	Input                  // set by the caller before an execute
	State                  // keeps its bytes from one execute to the next
	Constant               // bytes of the file or of an external file
	Heap                   // of unbounded size: allocated when it grows
	Folded                 // constant too, but computed once at load
)

func (k Kind) String() string {
	return [...]string{"activation", "input", "state", "constant", "heap", "folded"}[k]
}

// Storage is a class of values that share their bytes.
type Storage struct {
	Kind   Kind
	Values []int // members; the first is the one whose place the others take
	Bytes  int64 // of the largest member, at upper bound sizes
	// First and Last bound the steps at which the bytes matter, inclusive: a
	// definition at First, the last use at Last. An input starts at -1, an output
	// ends at the number of steps. Last < First: never used.
	First, Last int
	Output      bool
}

// Step is one instruction of the flattened chains, with its effects on storages.
type Step struct {
	Chain, Index int
	Instruction  *pte.Instruction
	Target       int   // JumpFalseCall: the step jumped to, at most the number of steps
	Reads        []int // values whose bytes are read, list items included
	Writes       []int // values whose bytes are written whole
	Updates      []int // values that are read and written in place, or in part

	view bool // the result shares the bytes of the first tensor read
}

// Flow is the dataflow of one method.
type Flow struct {
	Method   *pte.Method
	Steps    []Step
	Storages []Storage
	Of       []int // value to storage, -1 for values that are not tensors
}

// Calls tells the flow what instructions do beyond what the file says.
type Calls struct {
	// Signatures has one entry per operator of the method.
	Signatures []*kernels.Signature
	// DelegateInputs is the number of leading arguments of delegate i's calls that
	// are inputs; the others are outputs.
	DelegateInputs []int
}

// Build analyses a method. Its time is linear in the method's size for methods
// without backward jumps.
func Build(m *pte.Method, calls Calls) (*Flow, error) {
	f := &Flow{Method: m}
	if err := f.addSteps(calls); err != nil {
		return nil, err
	}
	f.addStorages()
	f.setLifetimes()
	return f, nil
}

// maxEffects bounds the values that all instructions read and write together: a list
// that many instructions name counts each time.
const maxEffects = 1 << 22

func (f *Flow) addSteps(calls Calls) error {
	base, effects := 0, 0
	for c := range f.Method.Chains {
		list := f.Method.Chains[c].Instructions
		for i := range list {
			s := Step{Chain: c, Index: i, Instruction: &list[i], Target: base + list[i].Target}
			if effects += s.operands(f.Method); effects > maxEffects {
				return fmt.Errorf("chain %d, instruction %d: more than %d operands in the method, items of lists included: %w", c, i, maxEffects, pte.ErrLimit)
			}
			if err := s.addEffects(f.Method, calls); err != nil {
				return fmt.Errorf("chain %d, instruction %d: %w", c, i, err)
			}
			f.Steps = append(f.Steps, s)
		}
		base += len(list)
	}
	return nil
}

// operands counts the arguments of an instruction and the items of their lists.
func (s *Step) operands(m *pte.Method) int {
	n := len(s.Instruction.Args)
	for _, v := range s.Instruction.Args {
		n += len(m.Values[v].Items)
	}
	return n
}

// addEffects fills Reads, Writes and Updates.
func (s *Step) addEffects(m *pte.Method, calls Calls) error {
	in := s.Instruction
	switch in.Kind {
	case pte.KernelCall:
		return s.addKernelEffects(m, calls.Signatures[in.Index])
	case pte.DelegateCall:
		n := calls.DelegateInputs[in.Index]
		if n < 0 || n > len(in.Args) {
			return fmt.Errorf("delegate %d has %d inputs, the call %d arguments", in.Index, n, len(in.Args))
		}
		s.Reads = tensors(m, nil, in.Args[:n]...)
		s.Writes = tensors(m, nil, in.Args[n:]...)
	case pte.MoveCall:
		s.Reads = tensors(m, nil, in.Index)
		s.Writes = tensors(m, nil, in.Target)
	case pte.JumpFalseCall:
		s.Reads = tensors(m, nil, in.Index)
	}
	return nil
}

func (s *Step) addKernelEffects(m *pte.Method, sig *kernels.Signature) error {
	args := s.Instruction.Args
	if err := sig.CheckCount(len(args)); err != nil {
		return err
	}
	for i := range sig.Args {
		switch a := &sig.Args[i]; {
		case a.Out:
			s.Writes = tensors(m, s.Writes, args[i])
		case a.Mutated:
			s.Updates = tensors(m, s.Updates, args[i])
		default:
			s.Reads = tensors(m, s.Reads, args[i])
		}
	}
	if sig.Result != nil {
		s.Writes = tensors(m, s.Writes, args[len(args)-1])
		s.view = sig.Result.Alias
	}
	return nil
}

// tensors appends the values among vs that are tensors, and the tensors of lists.
func tensors(m *pte.Method, to []int, vs ...int) []int {
	for _, v := range vs {
		switch m.Values[v].Kind {
		case tensor.KindTensor:
			to = append(to, v)
		case tensor.KindTensorList, tensor.KindOptionalTensorList:
			for _, item := range m.Values[v].Items {
				if item >= 0 && m.Values[item].Kind == tensor.KindTensor {
					to = append(to, item)
				}
			}
		}
	}
	return to
}

// IsView reports an instruction whose result shares the bytes of its first argument
// (executorch_prim::et_view).
func (s *Step) IsView() bool { return s.view }

// Views marks the values that some instruction makes views of others.
func (f *Flow) Views() []bool {
	views := make([]bool, len(f.Method.Values))
	for i := range f.Steps {
		if s := &f.Steps[i]; s.view {
			for _, v := range s.Writes {
				views[v] = true
			}
		}
	}
	return views
}
