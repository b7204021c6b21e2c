package etrun_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable"
	"github.com/etrun-go/etrun/kernels/tensor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const convProgram = "testdata/pte/conv_portable.pte"

// load opens a program and loads its forward method; both are closed at the end of the test.
func load(t *testing.T, path string, options ...etrun.Option) *etrun.Method {
	t.Helper()
	p, err := etrun.Open(path, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	m, err := p.Load(t.Context(), "forward")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// outputTensor returns an output that must exist and be a tensor.
func outputTensor(m *etrun.Method, i int) *tensor.Tensor {
	v, err := m.Output(i)
	if err != nil {
		panic(err)
	}
	return v.Tensor
}

// setOnes sets every tensor input to bytes of one.
func setOnes(t *testing.T, m *etrun.Method) {
	t.Helper()
	for i, in := range m.Meta().Inputs {
		if x := in.NewTensor(); x != nil {
			for k := range x.Data {
				x.Data[k] = 1
			}
			if err := m.SetInput(i, x); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// slow returns a set whose convolution signals its start and waits for a signal.
func slow(begun, proceed chan struct{}) *kernels.Set {
	return replaced("aten::convolution.out", func(next kernels.Func) kernels.Func {
		return func(c *kernels.Ctx, a kernels.Args) error {
			begun <- struct{}{}
			<-proceed
			return next(c, a)
		}
	})
}

// replaced returns the default set with one operator wrapped.
func replaced(name string, wrap func(kernels.Func) kernels.Func) *kernels.Set {
	ops := portable.Ops()
	for i := range ops {
		if ops[i].Name() == name {
			ops[i].Func = wrap(ops[i].Func)
		}
	}
	return kernels.NewSet(ops)
}

// A file that is overwritten in place has no effect on a program that was read, nor on one that has a lease of it.
func TestFileReplacedAfterOpen(t *testing.T) {
	data, err := os.ReadFile(convProgram)
	if err != nil {
		t.Fatal(err)
	}
	data = append(data, make([]byte, 1<<20)...) // smaller files are not mapped
	path := filepath.Join(t.TempDir(), "model.pte")
	for name, options := range map[string][]etrun.Option{"read": nil, "leased": {etrun.WithLeases()}} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := etrun.Open(path, options...)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if err := os.WriteFile(path, []byte("something else"), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := p.Load(t.Context(), "")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		defer m.Close()
		setOnes(t, m)
		if err := m.Execute(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTruncatedFileIsRefused(t *testing.T) {
	data, err := os.ReadFile(convProgram)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.pte")
	for n := 0; n < len(data); n += 1 + len(data)/97 {
		if err := os.WriteFile(path, data[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		for _, mode := range [][]etrun.Option{nil, {etrun.WithMmap()}} {
			if p, err := etrun.Open(path, mode...); !errors.Is(err, etrun.ErrFormat) {
				t.Errorf("%d of %d bytes: %v (%v)", n, len(data), err, p)
			}
		}
	}
}

func TestMmapGivesTheSame(t *testing.T) {
	read, mapped := load(t, convProgram), load(t, convProgram, etrun.WithMmap())
	for _, m := range []*etrun.Method{read, mapped} {
		setOnes(t, m)
		if err := m.Execute(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for i := range read.NumOutputs() {
		if got, want := outputTensor(mapped, i).Data, outputTensor(read, i).Data; string(got) != string(want) {
			t.Errorf("output %d: got %x, want %x", i, got, want)
		}
	}
}

func TestMemoryIsRefusedBeforeItIsAllocated(t *testing.T) {
	for name, option := range map[string]etrun.Option{
		"limits":               etrun.WithLimits(etrun.Limits{PlannedBytes: 64}),
		"max memory":           etrun.WithMaxMemory(6000),
		"file over max memory": etrun.WithMaxMemory(1000),
	} {
		p, err := etrun.Open(convProgram, option)
		if err == nil {
			defer p.Close()
			_, err = p.Load(t.Context(), "")
		}
		e, ok := errors.AsType[*etrun.MemoryError](err)
		if !ok || !errors.Is(err, etrun.ErrMemory) || e.Want <= e.Limit {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCancelledContext(t *testing.T) {
	cause := errors.New("the user has gone")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	p, err := etrun.Open(convProgram)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Load(ctx, ""); !errors.Is(err, cause) {
		t.Errorf("load: %v", err)
	}
	m := load(t, convProgram)
	setOnes(t, m)
	if err := m.Execute(ctx); !errors.Is(err, cause) {
		t.Errorf("execute: %v", err)
	}
	setOnes(t, m)
	if err := m.Execute(t.Context()); err != nil {
		t.Errorf("execute after a cancelled one: %v", err)
	}
}

func TestCancelWhileRunning(t *testing.T) {
	begun, proceed := make(chan struct{}), make(chan struct{})
	m := load(t, convProgram, etrun.WithOperatorSet(slow(begun, proceed)))
	setOnes(t, m)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- m.Execute(ctx) }()
	<-begun
	cancel()
	close(proceed)
	err := <-done
	e, ok := errors.AsType[*etrun.InstructionError](err)
	if !ok || !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want a cancelled instruction", err)
	}
	if e.Index == 0 {
		t.Errorf("cancelled at instruction %d: the running one is not interrupted", e.Index)
	}
}

func TestBusyAndClose(t *testing.T) {
	begun, proceed := make(chan struct{}), make(chan struct{})
	m := load(t, convProgram, etrun.WithOperatorSet(slow(begun, proceed)))
	setOnes(t, m)
	done := make(chan error)
	go func() { done <- m.Execute(context.Background()) }()
	<-begun
	for name, call := range map[string]func() error{
		"Execute":  func() error { return m.Execute(context.Background()) },
		"SetInput": func() error { return m.SetInput(0, tensor.New(tensor.Float32, 1)) },
		"Reset":    m.Reset,
	} {
		if err := call(); !errors.Is(err, etrun.ErrBusy) {
			t.Errorf("%s while executing: %v", name, err)
		}
	}
	if err := m.Close(); err != nil { // freed when the run ends
		t.Errorf("close while executing: %v", err)
	}
	if err := m.Program().Close(); err != nil {
		t.Errorf("close of the program while a method executes: %v", err)
	}
	close(proceed)
	if err := <-done; err != nil {
		t.Errorf("the execute that Close overtook: %v", err)
	}
	for name, err := range map[string]error{"Execute": m.Execute(context.Background()), "Reset": m.Reset()} {
		if !errors.Is(err, etrun.ErrClosed) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
	if err := m.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if _, err := m.Program().Load(context.Background(), ""); !errors.Is(err, etrun.ErrClosed) {
		t.Errorf("Load after the program's Close: %v", err)
	}
}

func TestPanicIsContained(t *testing.T) {
	set := replaced("aten::convolution.out", func(kernels.Func) kernels.Func {
		return func(*kernels.Ctx, kernels.Args) error { panic("a fault of the kernel") }
	})
	m := load(t, convProgram, etrun.WithOperatorSet(set))
	setOnes(t, m)
	err := m.Execute(t.Context())
	p, ok := errors.AsType[*etrun.PanicError](err)
	if !ok || p.Value != "a fault of the kernel" || !strings.Contains(err.Error(), "aten::convolution.out") {
		t.Fatalf("got %v, want a PanicError at the convolution", err)
	}
	if again := m.Execute(t.Context()); !errors.Is(again, etrun.ErrPanic) {
		t.Errorf("a poisoned method executed: %v", again)
	}
}
