package rows

import (
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// findShared finds the storages that must not be divided between instances: state, and those that steps update in place or
// that several write.
func (f *finder) findShared() {
	f.fixed, f.updated = make([]bool, len(f.Storages)), make([]bool, len(f.Storages))
	writers, written := make([]int, len(f.Storages)), make([]bool, len(f.Values))
	jump := false // the step before was a jump, which leads to the delegate or to its calls
	for i := range f.Steps {
		s := &f.Steps[i]
		for _, v := range s.Updates {
			f.fixed[f.Values[v].Storage] = true
		}
		for _, v := range s.Writes {
			written[v] = true
			if !s.IsView() && !(s.Kind == ir.DelegateCall && jump) {
				writers[f.Values[v].Storage]++
			}
		}
		jump = s.Kind == ir.SizesJump
	}
	for _, v := range f.Inputs {
		f.homes[v], written[v] = each, true
		if f.Values[v].Storage >= 0 {
			writers[f.Values[v].Storage]++
		}
	}
	for i := range f.Storages {
		s := &f.Storages[i]
		member := func(v int) bool { return !written[v] && f.plan.Dims[v] == None } // the file's view of another size
		f.updated[i] = f.fixed[i] || writers[i] > 1
		f.fixed[i] = f.fixed[i] || s.Kind == ir.State || s.Kind == ir.Heap || writers[i] > 1 || slices.ContainsFunc(s.Values, member)
	}
}

// classify finds the kind of step i and of those that a jump joins with it, and returns the next step.
func (f *finder) classify(i int) (next int, err error) {
	switch s := &f.Steps[i]; s.Kind {
	case ir.SizesJump:
		end, ok := block(f.Method, i)
		if !ok {
			return 0, &Error{f.place(i) + " jumps in an order that is not known"}
		}
		f.classifyBlock(i, end)
		return end, nil
	case ir.JumpFalseCall:
		return 0, &Error{f.place(i) + " is a condition"}
	case ir.MoveCall, ir.FreeCall:
		f.set(i, each)
	default:
		f.set(i, f.kind(i))
	}
	return i + 1, nil
}

func (f *finder) place(i int) string { return f.Steps[i].Origin.Place(f.StepName(&f.Steps[i])) }

// block returns the end of a region with its calls beside it: a jump, the delegate's call, a jump over the calls, the calls.
func block(m *ir.Method, i int) (end int, ok bool) {
	calls := m.Steps[i].Target
	if calls < i+3 || calls > len(m.Steps) || m.Steps[calls-1].Kind != ir.JumpFalseCall {
		return 0, false
	}
	end = m.Steps[calls-1].Target
	for k := i + 1; k < end; k++ {
		if m.Steps[k].IsJump() && k != calls-1 {
			return 0, false
		}
	}
	return end, end >= calls
}

// classifyBlock gives all steps of a block one kind.
func (f *finder) classifyBlock(from, end int) {
	kind, lifted := together, len(f.plan.Lifted)
	f.undo, f.joined = f.undo[:0], true
	defer func() { f.joined = false }()
	for i := from; i < end && kind == together; i++ {
		if s := &f.Steps[i]; s.IsJump() {
			f.kinds[i] = together
			continue
		}
		if kind = f.kind(i); kind == both {
			kind = together
		}
		f.set(i, together)
	}
	if kind == together {
		return
	}
	for _, c := range slices.Backward(f.undo) {
		f.homes[c.value] = c.was
	}
	for _, v := range f.plan.Lifted[lifted:] {
		f.plan.Dims[v] = None
	}
	f.plan.Lifted = f.plan.Lifted[:lifted]
	for i := from; i < end; i++ {
		f.set(i, each)
	}
}

// set sets the kind of a step.
func (f *finder) set(i int, k placement) {
	f.kinds[i] = k
	s := &f.Steps[i]
	for p, v := range s.Args {
		if _, writes := s.Uses(p); writes {
			f.write(v, k)
			for _, item := range f.Values[v].Items() {
				if item >= 0 {
					f.write(item, k)
				}
			}
		}
	}
}

func (f *finder) write(v int, k placement) {
	f.undo = append(f.undo, change{v, f.homes[v]})
	f.homes[v] = k
}

// kind returns the kind of a step.
func (f *finder) kind(i int) placement {
	s := &f.Steps[i]
	if v, ok := slot(f.Method, s); ok {
		c := call{f, s, f.Method}
		f.numbers[v] = c.result()
	}
	if f.selects(s) && f.lift(s) {
		f.plan.Selected = append(f.plan.Selected, i)
		return together
	}
	lifted := s.Kind != ir.FreeCall && slices.ContainsFunc(s.Reads, f.isLifted) && f.lift(s)
	k := f.kindOf(s)
	if lifted && k != together {
		f.drop(s)
	}
	return k
}

// kindOf returns the kind of a step whose results have the dimensions of rows that they would have together.
func (f *finder) kindOf(s *ir.Step) placement {
	switch {
	case s.Kind == ir.KernelCall && s.ReadsSizes() && !f.numbersOfEach(s) && !slices.ContainsFunc(s.Reads, f.lacksRows):
		return both
	case len(s.Updates) > 0 || slices.ContainsFunc(s.Writes, f.perInstance) || slices.ContainsFunc(s.Reads, f.lacksRows):
		return each
	case s.Kind == ir.DelegateCall:
		return f.kindIf(f.delegateRows(s))
	case s.Op.Random || !s.Op.Pure || s.Own || f.numbersOfEach(s):
		return each
	}
	return f.kindIf(f.operatorRows(s))
}

func (f *finder) kindIf(ok bool) placement {
	if ok {
		return together
	}
	return each
}

// lacksRows reports whether a tensor has contents of an instance, but no rows.
func (f *finder) lacksRows(v int) bool {
	return f.plan.Dims[v] == None && !f.Storages[f.Values[v].Storage].Kind.IsConstant()
}

// perInstance reports whether a result has no rows, or must be written in each instance.
func (f *finder) perInstance(v int) bool {
	return f.plan.Dims[v] == None || f.fixed[f.Values[v].Storage]
}

// numbersOfEach reports whether a step reads numbers that differ between instances.
func (f *finder) numbersOfEach(s *ir.Step) bool {
	for p, v := range s.Args {
		if reads, _ := s.Uses(p); reads && f.numberOfEach(v) {
			return true
		}
	}
	return false
}

func (f *finder) numberOfEach(v int) bool {
	if f.Values[v].Kind != tensor.KindTensor && f.homes[v] == each {
		return true
	}
	return f.Values[v].Kind == tensor.KindIntList && slices.ContainsFunc(f.Values[v].Items(), f.numberOfEach)
}

// delegateRows reports whether a delegate computes each row by itself.
func (f *finder) delegateRows(s *ir.Step) bool {
	outputs, err := delegateRows(f, f.images[s.Delegate], s, f.declared)
	for i, d := range outputs {
		if f.plan.Dims[s.Args[s.Inputs+i]] != d {
			return false
		}
	}
	return err == nil && len(outputs) > 0 && slices.ContainsFunc(s.Reads, func(v int) bool { return f.plan.Dims[v] != None })
}

// declared returns a tensor without memory of the declared sizes, nil for other values.
func (f *finder) declared(v int) *tensor.Tensor {
	t := f.Values[v].Tensor
	if t == nil {
		return nil
	}
	dynamism := t.Dynamism
	if f.plan.Dims[v] != None {
		dynamism = tensor.DynamicBound
	}
	return tensor.Make(t.DType, f.sizes(v), t.DimOrder, dynamism)
}

// operatorRows reports whether an operator computes each row by itself.
func (f *finder) operatorRows(s *ir.Step) bool {
	if !slices.ContainsFunc(s.Reads, func(v int) bool { return f.plan.Dims[v] != None }) || len(s.Writes) == 0 {
		return false
	}
	c := call{f, s, f.Method}
	dim, ok := c.rows()
	return ok && c.exact() && !slices.ContainsFunc(s.Writes, func(v int) bool { return f.plan.Dims[v] != dim })
}
