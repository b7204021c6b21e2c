package etrun_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/runtime/trace"
)

// meter counts runs of methods. Several may run concurrently, so its fields are atomic.
type meter struct {
	runs, failures atomic.Int64
	busy           atomic.Int64 // nanoseconds
}

// Wants subscribes to runs and nothing inside them, so instructions cost nothing extra.
func (m *meter) Wants() trace.Kinds { return trace.Executes }

func (m *meter) Observe(e *trace.Event) {
	if e.Kind != trace.Execute {
		return // the start of a run
	}
	m.runs.Add(1)
	m.busy.Add(int64(e.Duration()))
	if e.Err != nil {
		m.failures.Add(1)
	}
}

// An observer of a program receives the events of all its methods.
func ExampleObserver() {
	var meter meter
	prog := must(etrun.Open("testdata/digits/xnnpack.pte", etrun.WithDelegates(all.Backends()...), etrun.WithObserver(&meter)))
	defer prog.Close()
	ctx := context.Background()
	m := must(prog.Load(ctx, "forward"))
	defer m.Close()
	if err := m.Execute(ctx); err != nil {
		fmt.Println("no input yet:", errors.Is(err, etrun.ErrInput))
	}
	for i := range 3 {
		must(etrun.Run[float32](ctx, m, digit(i)))
	}
	fmt.Println(meter.runs.Load(), "runs,", meter.failures.Load(), "of them failed;",
		"under a minute:", time.Duration(meter.busy.Load()) < time.Minute)
	// Output:
	// no input yet: true
	// 4 runs, 1 of them failed; under a minute: true
}

// A function is enough to log the stages of loading and their cost.
func ExampleWithObserver() {
	loads := trace.Func{Kinds: trace.Loads, Do: func(e *trace.Event) {
		took := e.Duration() // see also e.Bytes
		if e.Kind == trace.Stage {
			fmt.Println(" ", e.Name, e.Backend, took < time.Minute)
			return
		}
		fmt.Println(e.Kind, e.Name, e.Err)
	}}
	prog := must(etrun.Open("testdata/digits/xnnpack.pte", etrun.WithDelegates(all.Backends()...), etrun.WithObserver(loads)))
	defer prog.Close()
	m := must(prog.Load(context.Background(), "forward"))
	defer m.Close()
	// Output:
	//   read  true
	//   parse  true
	//   data  true
	// open testdata/digits/xnnpack.pte <nil>
	//   find  true
	//   compile XnnpackBackend true
	//   build  true
	//   fold  true
	//   rewrite  true
	//   lower  true
	//   lower  true
	//   plan  true
	//   allocate  true
	//   units  true
	//   resolve  true
	// load forward <nil>
}

// Find out where the time of one request in a thousand goes: a recorder stores the events of that
// caller's runs only, with the nodes inside delegates.
func ExampleMethod_Observe() {
	prog := must(etrun.Open("testdata/pte/scalar_inputs.pte", etrun.WithDelegates(all.Backends()...)))
	defer prog.Close()
	pool := must(prog.NewPool("forward", 2))
	defer pool.Close()
	ctx := context.Background()
	var r trace.Recorder
	err := pool.Do(ctx, func(m *etrun.Method) error {
		if err := m.Observe(&r); err != nil { // until this function returns
			return err
		}
		for i, in := range m.Meta().Inputs {
			if x := in.NewTensor(); x != nil {
				if err := m.SetInput(i, x); err != nil {
					return err
				}
			}
		}
		return m.Execute(ctx)
	})
	fmt.Println(err)
	for _, e := range r.Events {
		fmt.Println(e.Kind, e.Name)
	}
	// Write the events with r.WriteTable, r.WriteChrome or r.WriteETDump.

	// Output:
	// <nil>
	// operator aten::mul.out
	// operator aten::add.out
	// operator aten::sum.IntList_out
	// execute forward
}
