package runtime

import (
	"context"
	"errors"
	"fmt"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/pte"
)

// loader gathers what a method needs, step by step.
type loader struct {
	program *Program
	index   int
	spec    *pte.Method

	ops    []*kernels.Op // per operator of the method, nil where missing
	sigs   []*kernels.Signature
	images []delegate.Image
	calls  []*pte.Instruction // per delegate, the first call, nil where there is none
	bytes  map[int][]byte     // values with bytes from outside: constants, external data
	quants map[int]*delegate.Quantization
	rows   map[int]bool // values that lie in rows whatever dim order the file declares
	flow   *ir.Flow
	marks  []mark // per storage, what the instruction at hand does to it

	changing []bool // per value: its slot is written, not only its bytes
	folded   *folding
}

// Load makes a method ready to execute: it finds every operator and backend,
// compiles the delegates (once per program), plans the memory and allocates it. The
// empty name means "forward". Errors are *LoadError; everything
// that is missing is reported at once.
func (p *Program) Load(ctx context.Context, name string, options ...MethodOption) (*Method, error) {
	i, err := p.methodIndex(name)
	if err != nil {
		return nil, err
	}
	if err := p.acquire(); err != nil {
		return nil, err
	}
	m, err := p.load(ctx, i, options)
	if err != nil {
		p.release()
		return nil, loadError(p.spec.Methods[i].Name, err, ErrFormat)
	}
	return m, nil
}

func (p *Program) load(ctx context.Context, index int, options []MethodOption) (*Method, error) {
	l := &loader{program: p, index: index, spec: &p.spec.Methods[index]}
	if err := l.findMissing(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if err := l.compileDelegates(ctx); err != nil {
		return nil, err
	}
	if err := l.analyse(); err != nil {
		return nil, err
	}
	l.changing = l.changingSlots()
	if err := l.fold(); err != nil {
		return nil, err
	}
	m := &Method{program: p, index: index, spec: l.spec, limit: p.config.limits.Instructions}
	for _, o := range options {
		o(m)
	}
	if err := m.build(l); err != nil {
		m.free()
		return nil, err
	}
	return m, nil
}

// findMissing resolves operators, backends and external data; all that is not there
// comes in one MissingError.
func (l *loader) findMissing() error {
	var missing MissingError
	if err := l.findOperators(&missing); err != nil {
		return err
	}
	seen := make(map[string]bool)
	for i := range l.spec.Delegates {
		id := l.spec.Delegates[i].ID
		if _, ok := l.program.config.backends[id]; !ok && !seen[id] {
			seen[id] = true
			missing.Backends = append(missing.Backends, id)
		}
	}
	if err := l.findData(&missing); err != nil {
		return err
	}
	if len(missing.Operators)+len(missing.Backends)+len(missing.Data) > 0 {
		return &missing
	}
	return nil
}

func (l *loader) findOperators(missing *MissingError) error {
	n := len(l.spec.Operators)
	l.ops, l.sigs = make([]*kernels.Op, n), make([]*kernels.Signature, n)
	for i, o := range l.spec.Operators {
		op, sig, ok, err := l.program.config.operators.Lookup(o.FullName())
		if err != nil {
			return err
		}
		if ok {
			l.ops[i], l.sigs[i] = op, sig
		}
	}
	calls := make(map[string]int) // name to index in missing.Operators
	step := 0
	for c := range l.spec.Chains {
		for _, in := range l.spec.Chains[c].Instructions {
			if in.Kind == pte.KernelCall && l.ops[in.Index] == nil {
				name := l.spec.Operators[in.Index].FullName()
				at, ok := calls[name]
				if !ok {
					at = len(missing.Operators)
					calls[name] = at
					missing.Operators = append(missing.Operators, MissingOperator{Name: name})
				}
				missing.Operators[at].Instructions = append(missing.Operators[at].Instructions, step)
			}
			step++
		}
	}
	return nil
}

// findData collects the bytes of constants and of external tensors.
func (l *loader) findData(missing *MissingError) error {
	l.bytes = make(map[int][]byte)
	for v := range l.spec.Values {
		t := l.spec.Values[v].Tensor
		if l.spec.Values[v].Kind != tensor.KindTensor {
			continue
		}
		switch t.Storage {
		case pte.Constant, pte.PlannedInit:
			l.bytes[v] = t.Data
		case pte.External, pte.ExternalPlanned:
			data, ok, err := l.program.data.tensorData(t)
			if err != nil {
				return err
			}
			if !ok {
				missing.Data = append(missing.Data, t.Name)
			}
			l.bytes[v] = data
		}
	}
	return l.alignConstants()
}

// alignConstants copies the constants that do not start at a multiple of their
// element's size, each run of bytes once. Constants that overlap could be copied
// without end: together the copies are no larger than what was read.
func (l *loader) alignConstants() error {
	type run struct {
		start *byte
		bytes int
	}
	copies := make(map[run][]byte)
	left := l.program.fileBytes()
	for v, b := range l.bytes {
		t := l.spec.Values[v].Tensor
		if len(b) == 0 || t.Storage != pte.Constant && t.Storage != pte.External || tensor.Aligned(b, t.DType.Size()) {
			continue
		}
		r := run{&b[0], len(b)}
		if copies[r] == nil {
			if left -= int64(len(b)); left < 0 {
				return fmt.Errorf("constants of value %d and others overlap, out of alignment: %w", v, ErrFormat)
			}
			copies[r] = tensor.AlignedBytes(len(b))
			copy(copies[r], b)
		}
		l.bytes[v] = copies[r]
	}
	return nil
}

func (l *loader) compileDelegates(ctx context.Context) error {
	l.images = make([]delegate.Image, len(l.spec.Delegates))
	l.quants = quantizations(l.spec)
	l.findCalls()
	left := l.program.delegateLimits()
	for i := range l.spec.Delegates {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		d := &l.spec.Delegates[i]
		c := &l.program.config
		payload := &delegate.Payload{Method: l.spec.Name, Index: i, Data: d.Data, Named: l.program.data,
			Args: l.delegateArgs(i), Limits: left}
		for _, s := range d.Specs {
			payload.Specs = append(payload.Specs, delegate.CompileSpec{Key: s.Key, Value: s.Value})
		}
		img, err := l.program.image(ctx, imageKey{l.index, i}, c.backends[d.ID], payload)
		if err != nil {
			return fmt.Errorf("delegate %d (%.100q): %w", i, d.ID, err)
		}
		l.images[i], left = img, less(left, img)
	}
	return nil
}

// delegateLimits is what a method's delegates may cost together: its working memory,
// and the memory limit or, without one, as many packed weights as the files justify.
func (p *Program) delegateLimits() delegate.Limits {
	planned, file := p.config.limits.PlannedBytes, p.fileBytes()
	if limit := p.config.maxMemory; limit > 0 {
		left := max(limit-file, 1)
		return delegate.Limits{Scratch: min(planned, left), Memory: left}
	}
	return delegate.Limits{Scratch: planned, Memory: packedPerByte*file + planned}
}

// less is what an image leaves of limits.
func less(l delegate.Limits, img delegate.Image) delegate.Limits {
	info := img.Info()
	memory := max(l.Memory-info.Scratch-info.PackedBytes, 1)
	return delegate.Limits{Scratch: min(max(l.Scratch-info.Scratch, 1), memory), Memory: memory}
}

// packedPerByte is how many bytes of packed weights a byte of a file may make, where
// no limit is set: layouts round small filters up, and several nodes may share one.
const packedPerByte = 16

// findCalls finds the first call of each delegate.
func (l *loader) findCalls() {
	l.calls = make([]*pte.Instruction, len(l.spec.Delegates))
	for c := range l.spec.Chains {
		list := l.spec.Chains[c].Instructions
		for i := range list {
			if in := &list[i]; in.Kind == pte.DelegateCall && l.calls[in.Index] == nil {
				l.calls[in.Index] = in
			}
		}
	}
}

// delegateArgs describes the arguments of the first call of delegate i.
func (l *loader) delegateArgs(i int) []*delegate.ArgSpec {
	if l.calls[i] == nil {
		return nil
	}
	args := make([]*delegate.ArgSpec, len(l.calls[i].Args))
	for k, v := range l.calls[i].Args {
		args[k] = l.argSpec(v)
	}
	return args
}

func (l *loader) argSpec(v int) *delegate.ArgSpec {
	t := l.spec.Values[v].Tensor
	if l.spec.Values[v].Kind != tensor.KindTensor {
		return nil
	}
	a := &delegate.ArgSpec{Value: v, DType: t.DType, Sizes: t.Sizes, DimOrder: t.DimOrder, Dynamism: t.Dynamism, Quant: l.quants[v]}
	if t.Storage == pte.Constant || t.Storage == pte.External {
		a.Const = l.bytes[v]
	}
	return a
}

// analyse builds the dataflow and refuses what no instruction may do.
func (l *loader) analyse() (err error) {
	inputs := make([]int, len(l.images))
	for i, img := range l.images {
		inputs[i] = img.Info().Inputs
	}
	if l.flow, err = ir.Build(l.spec, ir.Calls{Signatures: l.sigs, DelegateInputs: inputs}); err != nil {
		return err
	}
	for i, v := range l.spec.Inputs {
		if s := l.flow.Of[v]; s >= 0 && l.flow.Storages[s].Kind == ir.Constant {
			return fmt.Errorf("input %d (value %d) is a constant: %w", i, v, ErrFormat)
		}
	}
	l.rows = make(map[int]bool)
	for i := range l.flow.Steps {
		s := &l.flow.Steps[i]
		if in := s.Instruction; in.Kind == pte.KernelCall && l.ops[in.Index].Rows {
			for _, v := range s.Writes {
				l.rows[v] = true
			}
		}
		if err := l.checkStep(s); err != nil {
			return &InstructionError{Class: ErrFormat, Method: l.spec.Name, Chain: s.Chain, Index: s.Index, Op: l.stepName(s), Err: err}
		}
	}
	return nil
}

var errWritesConstant = errors.New("it would write a constant")

// checkStep holds an instruction against its storages: constants stay as they are,
// and a kernel's out is nothing that it also reads.
func (l *loader) checkStep(s *ir.Step) error {
	for _, v := range s.Writes {
		if l.flow.Storages[l.flow.Of[v]].Kind == ir.Constant && !s.IsView() {
			return fmt.Errorf("value %d: %w", v, errWritesConstant)
		}
	}
	for _, v := range s.Updates {
		if l.flow.Storages[l.flow.Of[v]].Kind == ir.Constant {
			return fmt.Errorf("value %d: %w", v, errWritesConstant)
		}
	}
	if s.Instruction.Kind != pte.KernelCall || s.IsView() {
		return nil
	}
	return l.checkOverlap(s)
}

// mark is the last value of a storage that an instruction was seen to touch.
type mark struct {
	step  *ir.Step
	value int
}

// checkOverlap refuses an out argument whose bytes another argument has.
func (l *loader) checkOverlap(s *ir.Step) error {
	if l.marks == nil {
		l.marks = make([]mark, len(l.flow.Storages))
	}
	for _, list := range [...][]int{s.Reads, s.Updates} {
		for _, v := range list {
			l.marks[l.flow.Of[v]] = mark{s, v}
		}
	}
	for _, v := range s.Writes {
		m := &l.marks[l.flow.Of[v]]
		if m.step == s && l.flow.Storages[l.flow.Of[v]].Bytes > 0 {
			return fmt.Errorf("out value %d shares its bytes with argument value %d", v, m.value)
		}
		*m = mark{s, v}
	}
	return nil
}

// stepName is the operator, delegate or kind of an instruction, for messages.
func (l *loader) stepName(s *ir.Step) string {
	switch in := s.Instruction; in.Kind {
	case pte.KernelCall:
		return fmt.Sprintf("%.100s", l.spec.Operators[in.Index].FullName())
	case pte.DelegateCall:
		return fmt.Sprintf("delegate %d, %.100s", in.Index, l.spec.Delegates[in.Index].ID)
	default:
		return in.Kind.String()
	}
}
