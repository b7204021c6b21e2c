package etrun_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/internal/await"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/exec/exectest"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// slowBackend compiles payloads that add two tensors. Each compilation signals its start and waits
// for a signal, and ignores its context.
type slowBackend struct {
	begun   chan int // indexes of delegates
	proceed map[string]chan error
	images  atomic.Int32 // open
}

func newSlowBackend(methods ...string) *slowBackend {
	b := &slowBackend{begun: make(chan int, 100), proceed: make(map[string]chan error)}
	for _, m := range methods {
		b.proceed[m] = make(chan error, 100)
	}
	return b
}

func (*slowBackend) ID() string             { return "slow" }
func (*slowBackend) Probe() delegate.Status { return delegate.Status{Loaded: true} }

func (b *slowBackend) Compile(_ context.Context, p *delegate.Payload) (delegate.Image, error) {
	b.begun <- p.Index
	if err := <-b.proceed[p.Method]; err != nil {
		if err == errPanic {
			panic(err)
		}
		return nil, err
	}
	b.images.Add(1)
	return &slowImage{backend: b}, nil
}

var errPanic = errors.New("a fault of the backend")

type slowImage struct {
	exectest.AddDelegate
	backend *slowBackend
}

func (i *slowImage) Close() error {
	i.backend.images.Add(-1)
	return nil
}

// delegated returns a method with two delegate calls.
func delegated(name string) pte.Method {
	m := exectest.Small(pte.Instruction{Kind: pte.DelegateCall, Index: 0, Args: []int{exectest.VecA, exectest.Constant, exectest.VecB}},
		pte.Instruction{Kind: pte.DelegateCall, Index: 1, Args: []int{exectest.VecA, exectest.Constant, exectest.VecB}})
	m.Name, m.Delegates = name, []pte.Delegate{{ID: "slow"}, {ID: "slow"}}
	return m
}

func slowProgram(t *testing.T, methods ...string) (*etrun.Program, *slowBackend) {
	t.Helper()
	b := newSlowBackend(methods...)
	var specs []pte.Method
	for _, name := range methods {
		specs = append(specs, delegated(name))
	}
	p, err := etrun.Parse(ptetest.Write(&pte.Program{Methods: specs}, ptetest.Layout{}), etrun.WithDelegates(b), etrun.WithThreads(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		await.True(t, "no image is open after the program was closed", func() bool { return b.images.Load() == 0 })
	})
	return p, b
}

// loading is a Load in a goroutine.
type loading struct {
	cancel context.CancelCauseFunc
	done   chan struct{}
	method *etrun.Method
	err    error
	ended  time.Time
	woken  chan time.Time // when another goroutine saw the same context end
	waits  chan struct{}  // closed when it waits for a preparation
}

// waiting is a context that closes a channel when the load waits for it to end.
type waiting struct {
	context.Context
	begin func()
}

func (w waiting) Done() <-chan struct{} {
	w.begin()
	return w.Context.Done()
}

func beginLoad(p *etrun.Program, name string) *loading {
	ctx, cancel := context.WithCancelCause(context.Background())
	l := &loading{cancel: cancel, done: make(chan struct{}), woken: make(chan time.Time, 1), waits: make(chan struct{})}
	go func() {
		<-ctx.Done()
		l.woken <- time.Now()
	}()
	go func() {
		defer close(l.done)
		l.method, l.err = p.Load(waiting{ctx, sync.OnceFunc(func() { close(l.waits) })}, name)
		l.ended = time.Now()
	}()
	return l
}

// finish waits for a load that must succeed, and closes its method.
func (l *loading) finish(t *testing.T) {
	t.Helper()
	<-l.done
	l.cancel(nil)
	if l.err != nil {
		t.Error(l.err)
		return
	}
	err := errors.Join(l.method.SetInput(0, tensor.New(tensor.Int64, exectest.Len)), l.method.Execute(context.Background()))
	if err != nil || tensor.Data[int64](outputTensor(l.method, 0))[0] != 1 {
		t.Errorf("got %v, %v", outputTensor(l.method, 0).Data, err)
	}
	if err := l.method.Close(); err != nil {
		t.Error(err)
	}
}

// prompt is the time in which a load must end after its context, measured from when a goroutine of
// this test noticed: the machine may be busy.
const prompt = 20 * time.Millisecond

var errGone = errors.New("the caller has gone")

// leave cancels a load, which must end in time.
func (l *loading) leave(t *testing.T) {
	t.Helper()
	l.cancel(errGone)
	<-l.done
	if took := l.ended.Sub(<-l.woken); took > prompt {
		t.Errorf("a load ended %v after its context", took)
	}
	if !errors.Is(l.err, errGone) {
		t.Errorf("a cancelled load: %v", l.err)
	}
}

// TestLoadBesideCompile loads methods while another one compiles. No load may wait longer than its
// context.
func TestLoadBesideCompile(t *testing.T) {
	p, b := slowProgram(t, "first", "second")
	first := beginLoad(p, "first")
	<-b.begun
	second := beginLoad(p, "second")
	<-b.begun // it compiles concurrently with the first
	for range 2 {
		b.proceed["second"] <- nil
	}
	second.finish(t)
	beginLoad(p, "first").leave(t)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if _, err := p.Load(ctx, "first"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("load with a deadline: %v", err)
	}
	for range 2 {
		b.proceed["first"] <- nil
	}
	first.finish(t)
}

// TestWaiterTakesOver cancels the load that started a preparation: other loads continue it.
func TestWaiterTakesOver(t *testing.T) {
	p, b := slowProgram(t, "m")
	first := beginLoad(p, "m")
	<-b.begun
	second := beginLoad(p, "m")
	<-second.waits
	first.leave(t)
	b.proceed["m"] <- nil
	<-b.begun // the second delegate: nothing was canceled
	b.proceed["m"] <- nil
	second.finish(t)
	if n := len(b.begun); n != 0 {
		t.Errorf("%d more compilations", n)
	}
}

// TestAbandonedCompile cancels all loads: the current delegate is the last one compiled, and its
// image is kept for the next load, which waits only for that delegate.
func TestAbandonedCompile(t *testing.T) {
	p, b := slowProgram(t, "m")
	first := beginLoad(p, "m")
	<-b.begun
	first.leave(t)
	again := beginLoad(p, "m")
	b.proceed["m"] <- nil
	if i := <-b.begun; i != 1 {
		t.Errorf("delegate %d is compiled after the first attempt, want 1", i)
	}
	b.proceed["m"] <- nil
	again.finish(t)
	if n := len(b.begun); n != 0 {
		t.Errorf("%d more compilations", n)
	}
}

// TestFailedCompile checks that all waiting loads get the error, and the next load tries again.
func TestFailedCompile(t *testing.T) {
	p, b := slowProgram(t, "m")
	failure := errors.New("no such payload")
	loads := []*loading{beginLoad(p, "m"), beginLoad(p, "m"), beginLoad(p, "m")}
	for _, l := range loads {
		<-l.waits
	}
	b.proceed["m"] <- failure
	for _, l := range loads {
		<-l.done
		l.cancel(nil)
		if !errors.Is(l.err, failure) {
			t.Errorf("got %v, want %v", l.err, failure)
		}
	}
	b.proceed["m"] <- errPanic
	if _, err := p.Load(context.Background(), "m"); !errors.Is(err, etrun.ErrPanic) {
		t.Errorf("got %v, want %v", err, etrun.ErrPanic)
	}
	b.proceed["m"] <- nil
	b.proceed["m"] <- nil
	beginLoad(p, "m").finish(t)
}

// TestCloseWhilePreparing closes the program while a method is prepared, with and without waiting
// loads.
func TestCloseWhilePreparing(t *testing.T) {
	for _, waits := range []bool{true, false} {
		p, b := slowProgram(t, "m")
		l := beginLoad(p, "m")
		<-b.begun
		if !waits {
			l.leave(t)
		}
		if err := p.Close(); err != nil { // does not wait: the backend was not signaled yet
			t.Error(err)
		}
		b.proceed["m"] <- nil
		if waits {
			b.proceed["m"] <- nil
			l.finish(t)
		}
	}
}

// TestLoadHammer loads and cancels in many goroutines.
func TestLoadHammer(t *testing.T) {
	p, b := slowProgram(t, "m")
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for k := range 20 {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i*k)*20*time.Microsecond)
				if m, err := p.Load(ctx, "m"); err == nil {
					m.Close()
				} else if !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		for range 2 {
			time.Sleep(2 * time.Millisecond)
			b.proceed["m"] <- nil
		}
	}()
	wg.Wait()
	<-stop
	beginLoad(p, "m").finish(t)
	if n := b.images.Load(); n != 2 {
		t.Errorf("%d images, want 2", n)
	}
}

// A load error names the file, the method and the code once each.
func TestLoadErrorText(t *testing.T) {
	data := ptetest.Write(&pte.Program{Methods: []pte.Method{exectest.Small(exectest.Call(exectest.OpAdd, exectest.VecB, exectest.VecA,
		exectest.VecB, exectest.VecB))}}, ptetest.Layout{})
	p, err := etrun.OpenSource(t.Context(), etrun.Bytes("model.pte", data), etrun.WithOperatorSet(kernels.NewSet(exectest.WordOps)))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	_, err = p.Load(t.Context(), "")
	const want = `load: model.pte: method "forward": instruction 0 (test::add.out): out value 1 shares its bytes with argument value 1 [InvalidProgram 0x23]`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if in, ok := errors.AsType[*etrun.InstructionError](err); !ok || strings.Count(in.Error(), "forward") != 1 {
		t.Errorf("the instruction's error: %v", in)
	}
}
