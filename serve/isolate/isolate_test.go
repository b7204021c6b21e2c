//go:build linux && (amd64 || arm64)

package isolate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/internal/await"
	"github.com/etrun-go/etrun/internal/needs"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/trace"
	"github.com/etrun-go/etrun/serve"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "worker" {
		if err := workers[os.Args[2]](os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

const (
	digits = "../../testdata/digits/portable.pte"
	adder  = "../../testdata/pte/initial_state.pte"
)

// options returns the options of a worker for a file.
func options(t testing.TB, worker, path string, memory int64) Options {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Args: []string{"worker", worker, strconv.FormatInt(memory, 10)}, Files: []*os.File{f}, Instances: 2,
		Start:    20 * time.Second,
		Backends: []string{"XnnpackBackend", "EthosUBackend"}}
}

func open(t testing.TB, o Options) *Program {
	t.Helper()
	p, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func image(first float32) []tensor.Value {
	x := tensor.New(tensor.Float32, 1, 1, 8, 8)
	data := tensor.View[float32](x.Data)
	for i := range data {
		data[i] = first + float32(i)/64
	}
	return []tensor.Value{tensor.TensorValue(x)}
}

// output runs a method and returns a copy of its first output.
func output(ctx context.Context, r serve.Runner, in []tensor.Value) (out []byte, err error) {
	err = r.Run(ctx, in, []int{0}, func(_ int, v *tensor.Value) { out = bytes.Clone(v.Tensor.Data) })
	return out, err
}

func forward(t testing.TB, p serve.Program) serve.Runner {
	t.Helper()
	r, err := p.Pool(t.Context(), "", 1)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// library returns the output of the program in this process.
func library(t testing.TB, path string, in []tensor.Value) []byte {
	t.Helper()
	p, err := etrun.OpenSource(t.Context(), etrun.File(path), etrun.WithDelegates(all.Backends()...), etrun.WithLowering(etrun.LowerRewrite),
		etrun.WithThreads(1)) // one engine in all processes: lowering selects by what is open already
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	local := forward(t, serve.Local(p, nil))
	defer local.Close()
	out, err := output(t.Context(), local, in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestResults compares results with those of this process, for several concurrent callers.
func TestResults(t *testing.T) {
	p := open(t, options(t, "good", digits, 0))
	r := forward(t, p)
	var all sync.WaitGroup
	for c := range 4 {
		want := library(t, digits, image(float32(c)))
		all.Go(func() {
			for range 50 {
				if got, err := output(t.Context(), r, image(float32(c))); err != nil || !bytes.Equal(got, want) {
					t.Errorf("caller %d: %v, got %x, want %x", c, err, got, want)
					return
				}
			}
		})
	}
	all.Wait()
	if p.Digest() != "digest" || p.Down() != nil {
		t.Errorf("%q, %v", p.Digest(), p.Down())
	}
}

// TestRows wants outputs of the sizes of each call, alone and with rows of several requests; of a program whose rows depend on each
// other, the rows of several requests are an error.
func TestRows(t *testing.T) {
	pair := forward(t, open(t, options(t, "good", "../../testdata/pte/dynamic_pair.pte", 0)))
	for rows := 1; rows <= 5; rows++ {
		in := []tensor.Value{tensor.TensorValue(tensor.New(tensor.Float32, rows, 3)), tensor.TensorValue(tensor.New(tensor.Float32, rows, 3))}
		run := pair.Run
		if rows > 1 {
			run = pair.(serve.RowRunner).RunRows
		}
		err := run(t.Context(), in, []int{0, 1}, func(k int, v *tensor.Value) {
			if want := [][]int{{rows, 6}, {rows, 3}}[k]; !slices.Equal(v.Tensor.Sizes, want) {
				t.Errorf("%d rows, output %d: got sizes %v, want %v", rows, k, v.Tensor.Sizes, want)
			}
		})
		if err != nil {
			t.Errorf("%d rows: %v", rows, err)
		}
	}
	view := forward(t, open(t, options(t, "good", "../../testdata/pte/dynamic_view.pte", 0)))
	in := []tensor.Value{tensor.TensorValue(tensor.New(tensor.Float32, 4, 8))}
	err := view.(serve.RowRunner).RunRows(t.Context(), in, []int{0}, func(int, *tensor.Value) { t.Error("outputs of rows that depend on each other") })
	if !errors.Is(err, etrun.ErrUnsupported) {
		t.Errorf("rows that depend on each other: %v", err)
	}
}

// TestInstances checks that state belongs to an instance and ends with its process.
func TestInstances(t *testing.T) {
	p := open(t, options(t, "good", adder, 0))
	make := func() serve.Instance {
		i, err := p.Instance(t.Context(), "forward", nil)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	one := tensor.New(tensor.Float32, 4)
	tensor.View[float32](one.Data)[0] = 1
	step := func(i serve.Instance) float32 {
		out, err := output(t.Context(), i, []tensor.Value{tensor.TensorValue(one)})
		if err != nil {
			t.Fatal(err)
		}
		return tensor.View[float32](out)[0]
	}
	a, b := make(), make()
	first := step(a)
	if second, other := step(a), step(b); second == first || other != first {
		t.Errorf("steps %v, %v, of another instance %v", first, second, other)
	}
	if err := a.Reset(); err != nil || step(a) != first || a.Bytes() <= 0 {
		t.Errorf("after Reset: %v, %d bytes", err, a.Bytes())
	}
	b.Close()
	c := p.current
	if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-c.dead
	if _, err := output(t.Context(), a, []tensor.Value{tensor.TensorValue(one)}); !errors.Is(err, serve.ErrEnded) {
		t.Errorf("an instance of an ended process: %v", err)
	}
	a.Close()
	if d := make(); step(d) != first {
		t.Error("an instance of the next process has the state of the previous one")
	}
}

// TestKilled kills a process repeatedly: each pending call fails once, other calls return correct
// results, and every process is waited for.
func TestKilled(t *testing.T) {
	o := options(t, "good", digits, 0)
	var ended atomic.Int64
	o.Ended = func(error) { ended.Add(1) }
	p := open(t, o)
	r := forward(t, p)
	stop := make(chan struct{})
	var all sync.WaitGroup
	var right, failed atomic.Int64
	for c := range 4 {
		want := library(t, digits, image(float32(c)))
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				got, err := output(t.Context(), r, image(float32(c)))
				switch {
				case errors.Is(err, serve.ErrCrashed):
					failed.Add(1)
				case err != nil || !bytes.Equal(got, want):
					t.Errorf("%v, got %x, want %x", err, got, want)
					return
				default:
					right.Add(1)
				}
			}
		})
	}
	const kills = 6
	killed := 0
	for range kills {
		answers := right.Load()
		await.True(t, "a process answers", func() bool { return right.Load() > answers || t.Failed() })
		await.True(t, "the next process is killed", func() bool {
			pid := p.PID()
			next := pid > 0 && pid != killed && syscall.Kill(pid, syscall.SIGKILL) == nil
			if next {
				killed = pid
			}
			return next
		})
	}
	close(stop)
	all.Wait()
	// At most the calls of both lanes are pending at once.
	if failed.Load() > 2*kills || ended.Load() < kills-1 {
		t.Errorf("%d right, %d failed, %d kills, %d ended", right.Load(), failed.Load(), kills, ended.Load())
	}
}

// TestRefused checks the errors for processes that fail to start or send an invalid hello.
func TestRefused(t *testing.T) {
	for name, want := range map[string]error{"exits": serve.ErrCrashed, "first": errProtocol, "huge": errProtocol, "empty": errProtocol,
		"declares": etrun.ErrMemory, "promises": serve.ErrCrashed, "between": errProtocol} {
		o, memory := options(t, name, digits, 0), int64(0)
		o.Observer = trace.Func{Kinds: trace.Memories, Do: func(e *trace.Event) { memory += e.Bytes }}
		if p, err := Open(t.Context(), o); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
			if p != nil {
				p.Close()
			}
		}
		if memory != 0 {
			t.Errorf("%s: %d bytes of memory remain", name, memory)
		}
	}
	large := options(t, "good", digits, 0)
	large.Shared = 4 << 10
	if _, err := Open(t.Context(), large); !errors.Is(err, etrun.ErrMemory) || !strings.Contains(err.Error(), "4096") {
		t.Errorf("more shared memory than allowed: %v", err)
	}
	path := filepath.Join(t.TempDir(), "broken.pte")
	if err := os.WriteFile(path, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), options(t, "good", path, 0)); !errors.Is(err, etrun.ErrFormat) || !strings.Contains(err.Error(), "the model") {
		t.Errorf("a broken file: %v", err)
	}
}

// TestLoadedMemory checks that the memory of a program is known as soon as it is open.
func TestLoadedMemory(t *testing.T) {
	info, err := os.Stat(digits)
	if err != nil {
		t.Fatal(err)
	}
	o, memory := options(t, "good", digits, 0), int64(0)
	o.Observer = trace.Func{Kinds: trace.Memories, Do: func(e *trace.Event) { memory += e.Bytes }}
	p := open(t, o)
	if memory < info.Size() {
		t.Errorf("%d bytes for a program of %d", memory, info.Size())
	}
	if p.Close(); memory != 0 {
		t.Errorf("%d bytes after the end", memory)
	}
}

// TestLies checks that processes that violate the protocol are killed, with the reason.
func TestLies(t *testing.T) {
	for _, name := range []string{"outside", "beyond", "shape", "rank", "type", "kind", "unasked", "event", "memory"} {
		ended := make(chan error, 100)
		o := options(t, name, digits, 0)
		o.BackOff.Min = time.Hour
		o.Ended = func(err error) { ended <- err }
		p := open(t, o)
		r := forward(t, p)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if _, err := output(ctx, r, image(1)); err == nil {
			t.Errorf("%s: got an answer", name)
		}
		cancel()
		select {
		case err := <-ended:
			if !errors.Is(err, serve.ErrCrashed) || !strings.Contains(err.Error(), errProtocol.Error()) {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s: the process is still running", name)
		}
		p.Close()
	}
}

// TestInstanceSize refuses an instance of an impossible size.
func TestInstanceSize(t *testing.T) {
	p := open(t, options(t, "instance", digits, 0))
	if i, err := p.Instance(t.Context(), "forward", nil); !errors.Is(err, serve.ErrCrashed) || !errors.Is(err, errProtocol) {
		t.Errorf("%v, %v", i, err)
	}
}

// TestConfined attempts what a process must not do.
func TestConfined(t *testing.T) {
	p := open(t, options(t, "tries", digits, 0))
	for _, l := range Missing(p.Layers()) {
		needs.Missing(t, "%s in the kernel: %v", l.Name, l.Err)
	}
	if len(p.Layers()) != 4 {
		t.Errorf("layers %v", p.Layers())
	}
	if _, err := output(t.Context(), forward(t, p), image(13)); err != nil {
		t.Error(err)
	}
}

// TestMemoryLimit checks that a process above its memory limit ends and is restarted.
func TestMemoryLimit(t *testing.T) {
	p := open(t, options(t, "eats", digits, 512<<20))
	r := forward(t, p)
	if _, err := output(t.Context(), r, image(13)); !errors.Is(err, serve.ErrCrashed) {
		t.Errorf("1 GiB of 512 MiB: %v", err)
	}
	if _, err := output(t.Context(), r, image(1)); err != nil {
		t.Errorf("the next process: %v", err)
	}
}

// TestReasons checks that the error of a crash includes the process's output.
func TestReasons(t *testing.T) {
	for name, want := range map[string]string{"crashes": "exit status 9", "panics": "on purpose"} {
		p := open(t, options(t, name, digits, 0))
		if _, err := output(t.Context(), forward(t, p), image(13)); !errors.Is(err, serve.ErrCrashed) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestGrace checks that a call that does not return after its cancellation ends its process, and no
// other call.
func TestGrace(t *testing.T) {
	o := options(t, "sleeps", digits, 0)
	o.Grace = 100 * time.Millisecond
	p := open(t, o)
	r := forward(t, p)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begun := time.Now()
	if _, err := output(ctx, r, image(13)); !errors.Is(err, serve.ErrCrashed) || time.Since(begun) < 150*time.Millisecond {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
	if _, err := output(t.Context(), r, image(1)); err != nil {
		t.Errorf("the next process: %v", err)
	}
}

// TestBackOff checks that processes that keep ending are restarted with growing delays, up to a
// bound.
func TestBackOff(t *testing.T) {
	o := options(t, "crashes", digits, 0)
	o.BackOff = BackOff{Min: 20 * time.Millisecond, Max: 80 * time.Millisecond}
	p := open(t, o)
	r := forward(t, p)
	var down []time.Duration
	for range 5 {
		if _, err := output(t.Context(), r, image(13)); !errors.Is(err, serve.ErrCrashed) {
			t.Fatal(err)
		}
		begun := time.Now()
		if _, err := p.client(t.Context()); err != nil {
			t.Fatal(err)
		}
		down = append(down, time.Since(begun))
	}
	for i, least := range []time.Duration{20, 40, 80, 80, 80} {
		if got, want := down[i], least*time.Millisecond; got < want {
			t.Errorf("restart %d after %v, want at least %v", i, got, want)
		}
	}
	if err := once(t, r); err != nil {
		t.Errorf("at last: %v", err)
	}
}

func once(t *testing.T, r serve.Runner) error {
	_, err := output(t.Context(), r, image(1))
	return err
}

// TestLeaks checks that descriptors, processes and mappings are released.
func TestLeaks(t *testing.T) {
	count := func() (n int) {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		maps, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Fatal(err)
		}
		return len(list) + 1000*strings.Count(string(maps), "etrun-tensors")
	}
	before := count()
	for range 3 {
		p := open(t, options(t, "crashes", digits, 0))
		_, _ = output(t.Context(), forward(t, p), image(13))
		_, _ = output(t.Context(), forward(t, p), image(1))
		pid := p.PID()
		p.Close()
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d is there: %v", pid, err)
		}
	}
	await.True(t, "there are no more descriptors and mappings than before", func() bool { return count() <= before })
}

// TestEvents checks that events reach the observer, and are balanced when a process ends.
func TestEvents(t *testing.T) {
	var mu sync.Mutex
	counts, memory := make(map[trace.Kind]int), int64(0)
	o := options(t, "crashes", digits, 0)
	o.Observer = trace.Func{Kinds: trace.Everything, Do: func(e *trace.Event) {
		mu.Lock()
		defer mu.Unlock()
		counts[e.Kind]++
		if e.Kind == trace.Memory {
			memory += e.Bytes
		}
	}}
	p := open(t, o)
	r := forward(t, p)
	for range 3 {
		if err := once(t, r); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = output(t.Context(), r, image(13))
	p.Close()
	mu.Lock()
	defer mu.Unlock()
	if counts[trace.Begin] != counts[trace.Execute] || counts[trace.Execute] < 5 || counts[trace.Load] == 0 || memory != 0 {
		t.Errorf("events %v, memory %d", counts, memory)
	}
}
