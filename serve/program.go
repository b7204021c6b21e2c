package serve

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Program is an open program, in this process or in another one. It is safe for concurrent use.
type Program interface {
	MethodNames() []string
	Meta(method string) (*etrun.MethodMeta, error)
	// Pool creates n instances of a method and tests each.
	Pool(ctx context.Context, method string, n int) (Runner, error)
	// Instance creates an instance that keeps its state between runs. It shares its state with the
	// instance sharing, if that is not nil.
	Instance(ctx context.Context, method string, sharing Instance) (Instance, error)
	// Down returns why the program cannot run at present, nil if it can. Calls wait meanwhile.
	Down() error
	// Close closes the program. Its pools and instances must be closed first.
	Close() error
}

// Runner executes a method.
type Runner interface {
	// Run executes the method on inputs, whose memory must be aligned and padded like that of
	// tensor.AlignedBytes. The program may write to it. Run calls take for each index in outputs, in
	// order; v is valid during the call only.
	Run(ctx context.Context, inputs []tensor.Value, outputs []int, take func(k int, v *tensor.Value)) error
	Close() error
}

// RowRunner is a Runner that may run the rows of several requests at once. Those that do not implement it run no batches.
type RowRunner interface {
	Runner
	// RunRows is Run for inputs of at least two rows. It fails before it calls take unless every row of the outputs was computed from the
	// same row of the inputs alone: see [etrun.Method.CheckRows].
	RunRows(ctx context.Context, inputs []tensor.Value, outputs []int, take func(k int, v *tensor.Value)) error
}

// Instance is a Runner that keeps its state from one Run to the next. It is not safe for concurrent
// use.
type Instance interface {
	Runner
	// Reset restores the initial state.
	Reset() error
	// Bytes returns the memory of the instance.
	Bytes() int64
}

// Local returns a program of this process. check decides whether a loaded method may serve; if nil,
// it is run on random inputs. check must not retain the method.
func Local(p *etrun.Program, check func(ctx context.Context, m *etrun.Method) error) Program {
	if check == nil {
		check = TryMethod
	}
	return &local{p, check}
}

type local struct {
	*etrun.Program
	check func(ctx context.Context, m *etrun.Method) error
}

func (p *local) Down() error { return nil }

func (p *local) Pool(ctx context.Context, method string, n int) (Runner, error) {
	pool, err := p.NewPool(method, n)
	if err != nil {
		return nil, err
	}
	try := p.check
	err = pool.Warm(ctx, func(m *etrun.Method) error {
		err := try(ctx, m)
		try = TryMethod
		return err
	})
	if err != nil {
		_ = pool.Close() // frees memory only
		return nil, err
	}
	return localPool{pool}, nil
}

func (p *local) Instance(ctx context.Context, method string, sharing Instance) (Instance, error) {
	var options []etrun.MethodOption
	if sharing != nil {
		options = append(options, etrun.WithStateOf(sharing.(localInstance).Method))
	}
	m, err := p.Load(ctx, method, options...)
	if err != nil {
		return nil, err
	}
	return localInstance{m}, nil
}

type localPool struct{ *etrun.Pool }

func (p localPool) Run(ctx context.Context, inputs []tensor.Value, outputs []int, take func(k int, v *tensor.Value)) error {
	return p.Do(ctx, func(m *etrun.Method) error { return execute(ctx, m, inputs, outputs, nil, take) })
}

func (p localPool) RunRows(ctx context.Context, inputs []tensor.Value, outputs []int, take func(k int, v *tensor.Value)) error {
	return p.Do(ctx, func(m *etrun.Method) error { return execute(ctx, m, inputs, outputs, m.CheckRows, take) })
}

type localInstance struct{ *etrun.Method }

func (i localInstance) Run(ctx context.Context, inputs []tensor.Value, outputs []int, take func(k int, v *tensor.Value)) error {
	return execute(ctx, i.Method, inputs, outputs, nil, take)
}

func (i localInstance) Bytes() int64 {
	plan := i.Report().Plan
	return plan.Size() + plan.StateBytes + plan.HeapBytes
}

// execute runs a method. check decides whether its outputs may be taken; nil: they may.
func execute(ctx context.Context, m *etrun.Method, inputs []tensor.Value, outputs []int, check func() error,
	take func(k int, v *tensor.Value)) error {
	for i, v := range inputs {
		if v.Kind == tensor.KindTensor && m.BindInput(i, v.Tensor) == nil {
			continue
		}
		// Not to bind: numbers, another dim order, unaligned memory, storage that other values share and the
		// tensor does not fill, and sizes without a bound. SetValue returns all other errors again.
		if err := m.SetValue(i, v); err != nil {
			return err
		}
	}
	if err := m.Execute(ctx); err != nil {
		return err
	}
	if check != nil {
		if err := check(); err != nil {
			return err
		}
	}
	for k, i := range outputs {
		v, err := m.Output(i)
		if err != nil {
			return err
		}
		take(k, &v)
	}
	return nil
}

// TryMethod runs a method on random inputs of the declared sizes: floats in [0, 1), integers and bools 0 or 1. Sizes that vary are 1
// first if the method has state, which it then fills in steps: with the largest sizes, a language model takes minutes.
func TryMethod(ctx context.Context, m *etrun.Method) error {
	inputs := m.Meta().Inputs
	if m.Report().Plan.StateBytes > 0 {
		least := slices.Clone(inputs)
		for i := range least {
			if least[i].Dynamism == tensor.DynamicBound {
				least[i].Sizes = slices.Repeat([]int{1}, len(least[i].Sizes))
			}
		}
		if tryInputs(ctx, m, least) == nil {
			return nil
		}
	}
	return tryInputs(ctx, m, inputs)
}

func tryInputs(ctx context.Context, m *etrun.Method, inputs []etrun.ValueMeta) error {
	for i, v := range samples(inputs) {
		if v.Kind != tensor.KindTensor {
			continue // it keeps the program's value
		}
		if err := m.SetValue(i, v); err != nil {
			return err
		}
	}
	return m.Execute(ctx)
}

// samples returns random tensors of the declared sizes, and the program's values of other kinds. A single integer is 0: it may be a
// position, from which on there is room for the largest input.
func samples(inputs []etrun.ValueMeta) []tensor.Value {
	values := make([]tensor.Value, len(inputs))
	for i := range inputs {
		values[i] = inputs[i].Scalar
		if t := inputs[i].NewTensor(); t != nil {
			randomize(t, uint64(i))
			values[i] = tensor.TensorValue(t)
		}
	}
	return values
}

func randomize(t *tensor.Tensor, seed uint64) {
	r := rand.New(rand.NewPCG(1, seed))
	for rest := t.Data; len(rest) > 0; rest = rest[t.DType.Size():] {
		x := r.Float64()
		if !t.DType.IsFloat() {
			x = float64(r.IntN(min(2, len(t.Data)/t.DType.Size())))
		}
		tensor.Put(rest, t.DType, x) // what operators do not compute on stays zero
	}
}
