package etrun

import (
	"context"
	"fmt"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/exec"
	"github.com/etrun-go/etrun/runtime/lower"
	"github.com/etrun-go/etrun/runtime/plan"
	"github.com/etrun-go/etrun/runtime/prepare"
	"github.com/etrun-go/etrun/runtime/rows"
)

// Method is a loaded instance of a program's method, with its own memory, state and delegate units.
// Only one goroutine may use it at a time: a call during another call returns ErrBusy and changes
// nothing.
type Method struct {
	program *Program
	index   int             // in the program
	shared  *prepare.Method // with the other instances
	in      *exec.Instance
	options exec.Options // of the load
	shares  *Method      // see WithStateOf
}

// MethodOption configures [Program.Load].
type MethodOption func(*Method)

// WithStateOf makes a method share the mutable state of another method of the same program, such as
// a cache. State is shared if name and size match or, in files without names, if it is at the same
// offset of the file's second arena. The other method must outlive this one.
func WithStateOf(other *Method) MethodOption { return func(m *Method) { m.shares = other } }

// WithTransientOutputs makes outputs invalid when the method is closed: reading them later may end the process. All memory of the method
// is then returned to the system at once, and outputs need none of their own. Instances of a [Pool] are loaded so.
func WithTransientOutputs() MethodOption { return func(m *Method) { m.options.Transient = true } }

// WithBoundInputs makes the caller provide the memory of tensor inputs: the arena is smaller. Each
// tensor input must be set with BindInput.
func WithBoundInputs() MethodOption { return func(m *Method) { m.options.BoundInputs = true } }

// WithBoundOutputs lets the caller provide the memory of tensor outputs, except those that are
// inputs, state or constants. Each must be set with BindOutput.
func WithBoundOutputs() MethodOption { return func(m *Method) { m.options.BoundOutputs = true } }

// Name returns the method's name.
func (m *Method) Name() string { return m.shared.IR.Name }

// Meta describes the method as declared in the file.
func (m *Method) Meta() *MethodMeta { return m.program.meta(m.index) }

// Program returns the program that the method was loaded from.
func (m *Method) Program() *Program { return m.program }

// NumInputs returns the number of inputs.
func (m *Method) NumInputs() int { return m.in.NumInputs() }

// NumOutputs returns the number of outputs.
func (m *Method) NumOutputs() int { return m.in.NumOutputs() }

// Set copies elements into input i. They are in logical order (the last dimension varies fastest),
// whatever the input's dim order. T must be the Go type of the input's elements, uint16 for half
// floats. If sizes are omitted, the declared sizes are used, or, for a dynamic input in which all
// dimensions but one are 1, derived from the number of elements. For an input that is a number or
// bool, data is one int64, float64 or bool.
//
// The input keeps its value until it is set again. Set does not allocate. Errors are *InputError
// and leave the input unchanged.
func Set[T tensor.Element](m *Method, i int, data []T, sizes ...int) error {
	return exec.Set(m.in, i, data, sizes...)
}

// SetInput copies a tensor into input i. Its type must be the input's; its sizes must be the
// declared ones or, for a dynamic input, within their bounds. Its dim order may differ. The input
// keeps its value until it is set again. SetInput does not allocate. Errors are *InputError and
// leave the input unchanged.
func (m *Method) SetInput(i int, t *tensor.Tensor) error { return m.in.SetInput(i, t) }

// SetValue sets input i to a value of any kind. Numbers, bools and strings were fixed at export: v
// must equal the value in the program. If the program contains None, v may be a number (a symbolic
// size), bool, string or None.
func (m *Method) SetValue(i int, v tensor.Value) error { return m.in.SetValue(i, v) }

// BindInput makes the method read input i directly from t's memory, which saves the copy that
// SetInput makes, until the input is set or bound again. t must have the input's type, dim order
// and sizes (or, for a dynamic input, sizes within its bounds). Its memory must come from tensor.New
// or tensor.AlignedBytes, because delegates may read a few bytes past the end, and must not change
// during a run. It must not be this method's own memory, such as an output. The method writes to it
// only if the program updates the input; the next run then starts from the updated elements. Inputs
// whose sizes have no bound cannot be bound. Reset ends the binding, unless the method was loaded
// with WithBoundInputs. Errors are *InputError and leave the input unchanged.
func (m *Method) BindInput(i int, t *tensor.Tensor) error { return m.in.BindInput(i, t, false) }

// BindConstant is BindInput of memory that does not change as long as it is bound. Runs may then keep what they compute from the input,
// such as the keys and values of an encoder's result, which a decoder uses for each token: from the second run on, at the cost of memory
// within the limits of the program. Results are the same. They also do so with inputs that stay set, except with WithReusableInputs.
func (m *Method) BindConstant(i int, t *tensor.Tensor) error { return m.in.BindInput(i, t, true) }

// BindOutput makes the method write output i directly to t's memory, starting with the next run. t
// must have the output's type and dim order and, if its sizes vary, the largest sizes. Its memory
// must come from tensor.New or tensor.AlignedBytes. t's own sizes do not change: [Method.Output]
// returns the current sizes of a dynamic output. Outputs that are inputs, state or constants cannot
// be bound; see [Method.CanBindOutput]. Errors are *OutputError.
func (m *Method) BindOutput(i int, t *tensor.Tensor) error { return m.in.BindOutput(i, t) }

// CanBindOutput reports whether output i can be bound with BindOutput.
func (m *Method) CanBindOutput(i int) bool { return m.in.CanBindOutput(i) }

// Execute runs the method on the inputs that were set. After the first run it allocates nothing,
// except for the results of operators with unbounded output sizes. A canceled ctx ends the run
// between instructions, inside the parallel loops of operators, and inside devices; outputs are then
// undefined. Errors are *InstructionError and *InputError.
func (m *Method) Execute(ctx context.Context) error { return m.in.Execute(ctx) }

// Output returns output i of the last run. Its tensor is valid until the next Execute or Reset,
// with WithReusableInputs also until an input is set. It must not be written: outputs may share
// memory with inputs, constants or other outputs. Elements are in memory order (see
// [tensor.Tensor]); [Get] returns them in logical order. Errors are *OutputError.
func (m *Method) Output(i int) (tensor.Value, error) { return m.in.Output(i) }

// Get returns the elements of output i in logical order: the last dimension varies fastest. T must
// be the Go type of the output's elements, uint16 for half floats. An output that is a number or
// bool yields one int64, float64 or bool. The slice is valid until the next Execute or Reset, with
// WithReusableInputs also until an input is set, and must not be written. For tensors only the
// first call allocates. Errors are *OutputError.
func Get[T tensor.Element](m *Method, i int) ([]T, error) { return exec.Get[T](m.in, i) }

// Reset returns the method to the state after Load: mutable state, including state shared with
// other methods, is reset to its initial bytes, the random number generator is seeded again, and
// inputs and outputs are unset.
func (m *Method) Reset() error { return m.in.Reset() }

// State returns a named mutable buffer (ExecuTorch attribute); ok is false if the method has none
// of that name. Writing to it while the method runs is a data race. It is valid until Close.
func (m *Method) State(name string) (t *tensor.Tensor, ok bool) { return m.in.State(name) }

// StateTensors returns the mutable buffers of the method, named or not, each with its declared
// sizes, in the order of their first use in the file. Writing to them while the method runs is a
// data race. The tensors are those that the method uses: they must not be resized, and are valid until Close.
func (m *Method) StateTensors() (list []*tensor.Tensor) { return m.in.StateTensors() }

// ResetState returns the bytes from one to before another of a tensor of [Method.StateTensors] to their initial contents. Memory of zeros
// goes back to the system until it is used again, if the sizes of the method's inputs vary.
func (m *Method) ResetState(t *tensor.Tensor, from, to int) error {
	return m.in.ResetState(t, from, to)
}

// CopyState sets the method's mutable state, including state shared with other methods, and its
// random number generator to those of another instance of the same method of the same program.
// Inputs and outputs do not change. While one of the two runs, CopyState returns ErrBusy and
// changes nothing. An instance that has failed with a [*PanicError] cannot be copied.
func (m *Method) CopyState(from *Method) error {
	return m.CopyStateOf(from, func(*tensor.Tensor) (stride, n int) { return 0, 0 })
}

// CopyStateOf is CopyState for a part of the state: of each of the tensors of [Method.StateTensors] of the other instance the first n
// bytes of every stride bytes, or all with a stride of 0. What is not copied remains as it is.
func (m *Method) CopyStateOf(from *Method, part func(t *tensor.Tensor) (stride, n int)) error {
	return m.in.CopyStateOf(from.in, part)
}

// CheckRows returns nil if the last run computed every row of each output, an index of the first dimension, from the same row of
// the inputs alone: the rows of several callers may share such a run. It follows the rows through all instructions of the
// method, at the sizes of the run, which had at least two rows; contents do not matter. The error is a *BatchError that names the first
// instruction that may compute an element from several rows. Calls with sizes that were checked before allocate nothing.
func (m *Method) CheckRows() error { return m.in.CheckRows() }

// Shrink returns the memory of values that no run keeps to the system, until the next run, if the sizes of the method's inputs vary.
// Inputs that were set, and outputs, are then unset.
func (m *Method) Shrink() error { return m.in.Shrink() }

// Arena is memory of values that instances of a method use one after the other: see [Method.DetachArena].
type Arena struct{ in *exec.Arena }

// Bytes returns its size, as far as calls have used it.
func (a *Arena) Bytes() int64 { return a.in.Bytes() }

// Close frees it.
func (a *Arena) Close() { a.in.Close() }

// DetachArena removes the memory of values that no run keeps from the method, for [Method.AttachArena] of another instance of the
// same method. The next run allocates such memory again. It returns nil, and changes nothing, if the sizes of the method's inputs do
// not vary or the system cannot move memory: Linux 5.7 and later can. Else inputs that were set, and outputs, are unset.
func (m *Method) DetachArena() (*Arena, error) {
	a, err := m.in.DetachArena()
	if a == nil || err != nil {
		return nil, err
	}
	return &Arena{a}, nil
}

// AttachArena makes the method use memory in the place of its own, which saves its first allocation. The arena is then closed, and inputs
// that were set, and outputs, are unset. Nil changes nothing.
func (m *Method) AttachArena(a *Arena) error {
	if a == nil {
		a = &Arena{}
	}
	return m.in.AttachArena(a.in)
}

// MethodMemory is the memory of an instance, in bytes.
type MethodMemory struct {
	Planned int64 // arenas, state and outputs; of a method whose sizes vary, as far as calls have used them
	Scratch int64 // working memory of operators, and of delegates: of backends that do not measure it an upper estimate
}

// Memory returns the memory of the method, and reports what has changed to observers. During a run it is that of the last look.
func (m *Method) Memory() MethodMemory {
	planned, scratch := m.in.Memory()
	return MethodMemory{planned, scratch}
}

// Observe sets an observer for this method, in addition to those of the program. It replaces an
// earlier one; nil removes it. The observer receives the events of the following runs. In [Pool.Do]
// it is removed when the function returns.
//
//	var r trace.Recorder
//	err := pool.Do(ctx, func(m *etrun.Method) error {
//		m.Observe(&r)
//		return m.Execute(ctx)
//	})
//
// Observe is cheap enough to observe one run in many. Resources for measuring nodes are allocated
// by the first call and kept; Observe fails if they would exceed the limit of WithMaxMemory.
func (m *Method) Observe(o Observer) error { return m.in.Observe(o) }

// Close frees the method. If another goroutine is running it, it is freed when that run ends.
// Closing twice is allowed. Output tensors remain readable, unless the method was loaded with [WithTransientOutputs]; tensors of
// state do not.
func (m *Method) Close() error { return m.in.Close() }

// Delegates describes the method's compiled delegates: first those of the file, in file order, then
// the regions compiled because of [WithLowering]. It returns nil once the program and all its methods are
// closed.
func (m *Method) Delegates() []delegate.Info {
	if !m.program.keep() {
		return nil
	}
	defer m.program.release()
	infos := make([]delegate.Info, len(m.shared.Images))
	for i, img := range m.shared.Images {
		infos[i] = img.Info()
		infos[i].Backend = m.shared.Backends[i]
		if m.shared.Work[i] != nil {
			infos[i].Needs = prepare.Unplanned(infos[i].Needs)
		}
	}
	return infos
}

// Report is what the load of a method decided, and how the outputs of its last run differ with [LowerVerify]. Nothing in it must be changed.
// The types of other packages in it may change.
type Report struct {
	Plan          *plan.Memory
	Folded        []lower.Folded    // instructions that were executed at load, because they depend on constants only
	Rewritten     []lower.Rewritten // instructions that lowering removed or changed
	Lowered       *lower.Report     // the decision for each region, nil without [LowerAuto], [LowerAll] or [LowerVerify]
	Repairs       []string          // exporter faults that were repaired, with their locations
	ReleasedBytes int64             // of constants whose memory was given back, because nothing reads them any more: see [WithConstants]
	WeightBytes   int64             // of the constants of delegates, as in the file
	Batch         BatchReport
	Distances     []Distance // of the outputs of the last run, nil without [LowerVerify]
}

// BatchReport has the numbers of instructions that instances would run together in a [Batch], and each by itself. Without a run it is
// not known which tensors have other sizes that vary: NewBatch may still find fewer.
type BatchReport struct {
	Batched, Separate int
	Reason            string // why no instructions would run together
}

// Report returns what is known of the method. It has no repairs, weights and batch once the program and all its methods are closed.
func (m *Method) Report() *Report {
	r := &Report{Plan: m.in.Plan(), Folded: m.shared.Folded, Rewritten: m.shared.Rewritten, Lowered: m.shared.Lowered,
		ReleasedBytes: m.shared.Released}
	for _, d := range m.in.Distances() {
		r.Distances = append(r.Distances, Distance(d))
	}
	if m.program.keep() {
		defer m.program.release()
		r.Repairs, r.Batch = m.repairs(), m.batchReport()
		for _, img := range m.shared.Images {
			r.WeightBytes += lowering.Brief(img).WeightBytes
		}
	}
	return r
}

func (m *Method) repairs() (list []string) {
	for i, img := range m.shared.Images {
		for _, repair := range lowering.Brief(img).Repairs {
			list = append(list, fmt.Sprintf("delegate %d: %s", i, repair))
		}
	}
	return append(list, m.program.fileRepairs(m.index, m.shared.IR)...)
}

func (m *Method) batchReport() BatchReport {
	plan, err := rows.Make(m.shared.IR, m.shared.Images, nil)
	if err != nil {
		return BatchReport{Reason: err.Error()}
	}
	return BatchReport{Batched: plan.Together, Separate: plan.Each}
}

// Distance is the largest difference between an output of a lowered method and the same output
// without lowering, in the last run.
type Distance struct {
	Output   int
	Index    int     // index, in memory order, of the element that differs most; -1 if all are equal
	Absolute float64 // absolute difference of that element
	Relative float64 // Absolute over the value without lowering
}
