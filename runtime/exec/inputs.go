package exec

import (
	"fmt"
	"math"
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// input is the state of one method input.
type input struct {
	value    *tensor.Value // the slot
	initial  tensor.Value  // the slot's value at the start of each run
	bound    *ir.Tensor    // the declared tensor, nil for other kinds
	set      bool
	version  uint64         // of its contents: the number of times that it was set
	ran      uint64         // that of the last run
	callers  bool           // the bytes are the caller's
	constant bool           // they do not change as long as they are bound
	clobber  bool           // a run overwrites its bytes: it must be set again
	kept     *kept          // nil if runs leave the bytes unchanged
	logical  *tensor.Tensor // source of a conversion from logical to memory order
}

// kept is a copy of an input that the program itself overwrites: each run starts from it.
type kept struct {
	set   bool // it holds the input's value
	bytes []byte
	sizes []int
}

// makeInputs initializes the inputs. Those that are not tensors have a value already.
func (m *Instance) makeInputs() {
	m.inputs = make([]input, len(m.ir.Inputs))
	written := m.written()
	clobbered := slices.Clone(written)
	m.plan.MarkShared(clobbered)
	for i, v := range m.ir.Inputs {
		in := &m.inputs[i]
		in.value = &m.values[v]
		in.initial = m.values[v]
		if m.values[v].Kind != tensor.KindTensor {
			in.set = true
			continue
		}
		in.bound = m.ir.Values[v].Tensor
		storage := m.ir.Values[v].Storage
		switch in.callers = m.plan.Callers[storage]; {
		case in.callers:
		case m.planning.Preserve && written[storage]:
			in.kept = new(kept)
		default:
			in.clobber = clobbered[storage]
		}
	}
}

// written marks the storages whose bytes instructions change or free.
func (m *Instance) written() []bool {
	marks := make([]bool, len(m.ir.Storages))
	for i := range m.ir.Steps {
		s := &m.ir.Steps[i]
		if m.ir.Frees(s) {
			marks[m.ir.Values[s.Args[0]].Storage] = true
		}
		for _, list := range [...][]int{s.Writes, s.Updates} {
			for _, v := range list {
				storage := m.ir.Values[v].Storage
				marks[storage] = marks[storage] || !s.IsView()
			}
		}
	}
	return marks
}

// NumInputs returns the number of inputs.
func (m *Instance) NumInputs() int { return len(m.inputs) }

// Set copies elements in logical order, or a number or bool, into input i. Without sizes they are the declared ones, or follow from the
// number of elements.
func Set[T tensor.Element](m *Instance, i int, data []T, sizes ...int) error {
	return m.set(i, tensor.TypeOf[T](), tensor.Stores[T], tensor.BytesOf(data), sizes)
}

// set is Set for elements of a type, which stores says of which types they are.
func (m *Instance) set(i int, own tensor.DType, stores func(tensor.DType) bool, data []byte, sizes []int) error {
	if err := m.begin(); err != nil {
		return err
	}
	defer m.end()
	in, err := m.input(i)
	if err != nil {
		return err
	}
	if in.bound == nil {
		v, ok := oneNumber(own, data)
		if !ok || len(sizes) > 0 {
			return m.badInput(i, fmt.Sprintf("%d elements of %v", len(data)/own.Size(), own), in.want())
		}
		return m.setScalar(i, in, v)
	}
	if !stores(in.bound.DType) {
		return m.badInput(i, fmt.Sprintf("elements of %v", own), in.want())
	}
	return m.setElements(i, in, data, sizes)
}

// oneNumber returns the value of one number or bool.
func oneNumber(own tensor.DType, data []byte) (v tensor.Value, ok bool) {
	if len(data) != own.Size() {
		return v, false
	}
	switch own {
	case tensor.Int64:
		return tensor.IntValue(tensor.View[int64](data)[0]), true
	case tensor.Float64:
		return tensor.DoubleValue(tensor.View[float64](data)[0]), true
	case tensor.Bool:
		return tensor.BoolValue(data[0] != 0), true
	}
	return v, false
}

// setElements copies elements in logical order into a tensor input.
func (m *Instance) setElements(i int, in *input, data []byte, sizes []int) error {
	elements := len(data) / in.bound.DType.Size()
	var room [tensor.MaxRank]int
	if len(sizes) == 0 {
		sizes = in.infer(room[:0], elements)
	}
	if n, ok := tensor.Product(sizes); !ok || n != elements || !in.accepts(sizes) {
		return m.badInput(i, fmt.Sprintf("%d elements, sizes %s", elements, tensor.FormatSizes(sizes)), in.want())
	}
	dst, err := m.resizeInput(i, in, sizes)
	if err != nil {
		return err
	}
	if dst.IsContiguous() {
		copy(dst.Data, data)
	} else if err := in.reorder(dst, data); err != nil {
		return m.badInput(i, err.Error(), in.want())
	}
	in.stored()
	return nil
}

// infer returns the sizes of an input with the given number of elements: the declared sizes unless
// only one dimension varies.
func (in *input) infer(room []int, elements int) []int {
	sizes, free := append(room, in.bound.Sizes...), -1
	if in.bound.Dynamism == tensor.Static {
		return sizes
	}
	for d, n := range sizes {
		if n != 1 && free >= 0 {
			return sizes
		}
		if n != 1 {
			free = d
		}
	}
	if free >= 0 {
		sizes[free] = elements
	}
	return sizes
}

// accepts reports whether sizes are the declared ones or within their bounds.
func (in *input) accepts(sizes []int) bool {
	if len(sizes) != len(in.bound.Sizes) {
		return false
	}
	for d, n := range sizes {
		bound := in.bound.Sizes[d]
		switch {
		case n < 0, in.bound.Dynamism == tensor.Static && n != bound, in.bound.Dynamism == tensor.DynamicBound && n > bound:
			return false
		}
	}
	return true
}

// resizeInput resizes an input to sizes that it accepts.
func (m *Instance) resizeInput(i int, in *input, sizes []int) (*tensor.Tensor, error) {
	dst := in.initial.Tensor
	storage := m.ir.Values[m.ir.Inputs[i]].Storage
	if m.plan.Callers[storage] {
		return nil, m.badInput(i, "a value to copy", "BindInput, because the method was loaded with WithBoundInputs")
	}
	bytes, ok := tensor.Product(sizes)
	bytes *= dst.DType.Size()
	if !ok || int64(bytes) > m.program.Limits.Planned {
		return nil, m.badInput(i, "sizes "+tensor.FormatSizes(sizes), "a tensor within the memory limit")
	}
	if in.callers {
		m.bindInputs(storage, m.memory.bytes(m.plan, storage), false)
	}
	if bytes > len(dst.Storage()) {
		m.heap.reckon()
	}
	if err := dst.Resize(sizes); err != nil {
		if above := m.aboveLimit(err); above != err {
			return nil, above
		}
		return nil, m.badInput(i, err.Error(), in.want())
	}
	return dst, nil
}

// reorder copies elements in logical order into a tensor of another dim order.
func (in *input) reorder(dst *tensor.Tensor, data []byte) error {
	if in.logical == nil {
		in.logical = tensor.Make(dst.DType, dst.Sizes, nil, tensor.DynamicBound)
	}
	in.logical.Limit(dst.Numel())
	if err := in.logical.Resize(dst.Sizes); err != nil {
		return err
	}
	in.logical.Bind(data)
	tensor.CopyLayout(dst, in.logical)
	in.logical.Bind(nil)
	return nil
}

// stored records that the input has been set.
func (in *input) stored() {
	in.set = true
	in.version++
	if in.kept != nil {
		t := in.initial.Tensor
		in.kept.set, in.kept.bytes, in.kept.sizes = true, append(in.kept.bytes[:0], t.Data...), append(in.kept.sizes[:0], t.Sizes...)
	}
}

// start sets the slot to its value at the start of a run. The caller's memory stays as it is.
func (in *input) start() error {
	*in.value = in.initial
	if in.kept == nil || !in.kept.set || in.callers {
		return nil
	}
	if err := in.initial.Tensor.Resize(in.kept.sizes); err != nil {
		return err
	}
	copy(in.initial.Tensor.Data, in.kept.bytes)
	return nil
}

// SetInput copies a tensor, which may have another dim order, into input i.
func (m *Instance) SetInput(i int, t *tensor.Tensor) error {
	if err := m.begin(); err != nil {
		return err
	}
	defer m.end()
	in, err := m.tensorInput(i, t)
	if err != nil {
		return err
	}
	dst, err := m.resizeInput(i, in, t.Sizes)
	if err != nil {
		return err
	}
	tensor.CopyLayout(dst, t)
	in.stored()
	return nil
}

func (m *Instance) input(i int) (*input, error) {
	if i < 0 || i >= len(m.inputs) {
		return nil, m.badInput(i, fmt.Sprintf("index %d", i), fmt.Sprintf("an index below %d", len(m.inputs)))
	}
	return &m.inputs[i], nil
}

// tensorInput returns input i if it accepts t.
func (m *Instance) tensorInput(i int, t *tensor.Tensor) (*input, error) {
	in, err := m.input(i)
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, m.badInput(i, "no tensor", in.want())
	}
	if in.bound == nil || t.DType != in.bound.DType || !in.accepts(t.Sizes) {
		return nil, m.badInput(i, t.String(), in.want())
	}
	if err := t.Check(); err != nil {
		return nil, m.badInput(i, err.Error(), in.want())
	}
	return in, nil
}

func (m *Instance) badInput(i int, got, want string) error {
	return m.program.Input(m.ir.Name, i, got, want)
}

// want describes the values that an input accepts.
func (in *input) want() string {
	if in.bound == nil {
		return describe(in.initial)
	}
	text := fmt.Sprintf("%v %s", in.bound.DType, tensor.FormatSizes(in.bound.Sizes))
	switch in.bound.Dynamism {
	case tensor.DynamicBound:
		text += " at most"
	case tensor.DynamicUnbound:
		text += " or other sizes"
	}
	return text
}

// SetValue sets input i to a value of any kind. Scalars must equal those of the file, except for a None of the file.
func (m *Instance) SetValue(i int, v tensor.Value) error {
	if v.Kind == tensor.KindTensor {
		return m.SetInput(i, v.Tensor)
	}
	if err := m.begin(); err != nil {
		return err
	}
	defer m.end()
	in, err := m.input(i)
	if err != nil {
		return err
	}
	return m.setScalar(i, in, v)
}

func (m *Instance) setScalar(i int, in *input, v tensor.Value) error {
	if in.bound != nil {
		return m.badInput(i, describe(v), in.want())
	}
	want := m.ir.Values[m.ir.Inputs[i]].Scalar()
	if want.Kind == tensor.None {
		switch v.Kind {
		case tensor.None, tensor.KindInt, tensor.KindDouble, tensor.KindBool, tensor.KindString:
			in.initial = v
			return nil
		}
	}
	if !sameScalar(v, want) {
		return m.badInput(i, describe(v), describe(want)+" as fixed by the export")
	}
	return nil
}

// sameScalar compares as ExecuTorch does: doubles with tolerance 1e-4 + 1e-5 of the value.
func sameScalar(got, want tensor.Value) bool {
	if got.Kind == tensor.KindInt && want.Kind == tensor.KindDouble {
		got = tensor.DoubleValue(float64(got.Int))
	}
	if got.Kind != want.Kind {
		return false
	}
	switch want.Kind {
	case tensor.KindInt:
		return got.Int == want.Int
	case tensor.KindBool:
		return got.Bool == want.Bool
	case tensor.KindString:
		return got.Str == want.Str
	case tensor.KindDouble:
		return got.Double == want.Double || math.IsNaN(got.Double) && math.IsNaN(want.Double) ||
			math.Abs(got.Double-want.Double) <= 1e-4+1e-5*math.Abs(want.Double)
	}
	return false
}

func describe(v tensor.Value) string {
	switch v.Kind {
	case tensor.KindInt:
		return fmt.Sprintf("int %d", v.Int)
	case tensor.KindDouble:
		return fmt.Sprintf("float %g", v.Double)
	case tensor.KindBool:
		return fmt.Sprintf("bool %v", v.Bool)
	case tensor.KindString:
		return fmt.Sprintf("string %.60q", v.Str)
	}
	return v.Kind.String()
}
