package serve

import (
	"context"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Program is an open program, in this process or in another one. It is safe for concurrent
// use.
type Program interface {
	MethodNames() []string
	Meta(method string) (*etrun.MethodMeta, error)
	// Pool makes n instances of a method and has each of them tried.
	Pool(ctx context.Context, method string, n int) (Runner, error)
	// Instance makes an instance that keeps its state, which it shares with another
	// instance of the program unless that is nil.
	Instance(ctx context.Context, method string, sharing Instance) (Instance, error)
	// Down says why the program executes nothing for now, nil where it does. Calls wait
	// meanwhile.
	Down() error
	// Close ends the program. Its pools and instances have been closed before.
	Close() error
}

// Runner executes a method.
type Runner interface {
	// Run executes the method on inputs. take gets the k-th of the outputs that are asked
	// for, in their order, and copies what it keeps.
	Run(ctx context.Context, inputs []tensor.Value, outputs []int, take func(k int, v *tensor.Value)) error
	Close() error
}

// Instance is a Runner whose state goes on from one Run to the next. It is used by one
// goroutine at a time.
type Instance interface {
	Runner
	// Reset makes the state that of a new instance.
	Reset() error
	// Bytes is the memory that the instance takes for itself.
	Bytes() int64
}

// Local is a program of this process. check decides whether a method that was loaded may
// serve; nil executes it on random inputs. It must not keep the method.
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
		_ = pool.Close() // of memory: nobody waits for what it says
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
	return p.Do(ctx, func(m *etrun.Method) error { return execute(ctx, m, inputs, outputs, take) })
}

type localInstance struct{ *etrun.Method }

func (i localInstance) Run(ctx context.Context, inputs []tensor.Value, outputs []int, take func(k int, v *tensor.Value)) error {
	return execute(ctx, i.Method, inputs, outputs, take)
}

func (i localInstance) Bytes() int64 {
	plan := i.Plan()
	return plan.Size() + plan.StateBytes + plan.HeapBytes
}

func execute(ctx context.Context, m *etrun.Method, inputs []tensor.Value, outputs []int, take func(k int, v *tensor.Value)) error {
	for i, v := range inputs {
		if err := m.SetValue(i, v); err != nil {
			return err
		}
	}
	if err := m.Execute(ctx); err != nil {
		return err
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

// TryMethod executes a method on random inputs of the declared sizes: floats in [0, 1),
// integers and bools 0 or 1.
func TryMethod(ctx context.Context, m *etrun.Method) error {
	for i, v := range samples(m.Meta().Inputs) {
		if v.Kind != tensor.KindTensor {
			continue // it has the program's value
		}
		if err := m.SetValue(i, v); err != nil {
			return err
		}
	}
	return m.Execute(ctx)
}

// samples are random tensors of the declared sizes, and the program's values of other kinds.
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
