package integration

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/internal/cputime"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// Limits on hostile programs.
const (
	maxTime  = 2 * time.Second
	maxBytes = 64 << 20 // in addition to 8 times the file
)

// limits keep a run of a hostile program within maxBytes.
var limits = etrun.Limits{PlannedBytes: 4 << 20, Instructions: 2000}

// seedPrograms are small real programs of every kind.
func seedPrograms(tb testing.TB) [][]byte {
	tb.Helper()
	files, err := filepath.Glob(testdata("pte", "*pte"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("no programs in testdata/pte (%v)", err)
	}
	var seeds [][]byte
	for _, f := range append(files, testdata("digits", "xnnpack.pte")) {
		data, err := os.ReadFile(f)
		if err != nil {
			tb.Fatal(err)
		}
		seeds = append(seeds, data)
	}
	return seeds
}

// FuzzRun loads and runs programs with modified fields, and arbitrary bytes. Nothing may panic,
// hang or exceed its limits, and every error has a class.
func FuzzRun(f *testing.F) {
	for _, data := range seedPrograms(f) {
		for seed := range uint64(8) {
			f.Add(data, seed, byte(seed))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, seed uint64, changes byte) {
		if n := int(changes % 8); n > 0 {
			data, _ = ptetest.Mutate(data, seed, n)
		}
		runHostile(t, data, seed)
	})
}

// TestMutatedPrograms is FuzzRun over many mutants of the seeds, in every test run.
func TestMutatedPrograms(t *testing.T) {
	rounds := uint64(120)
	if testing.Short() {
		rounds = 20
	}
	accepted, refused := 0, 0
	for i, data := range seedPrograms(t) {
		for seed := range rounds {
			mutant, changes := ptetest.Mutate(data, seed, 1+int(seed%3))
			if runHostile(t, mutant, seed) {
				accepted++
			} else {
				refused++
			}
			if t.Failed() {
				t.Fatalf("program %d, seed %d: %q", i, seed, changes)
			}
		}
	}
	t.Logf("%d mutants ran, %d were refused", accepted, refused)
	if accepted < refused/20 {
		t.Errorf("%d of %d mutants ran: the mutations do not pass the outer checks", accepted, accepted+refused)
	}
}

// runHostile runs every method of a program; ran reports whether one succeeded.
func runHostile(t *testing.T, data []byte, seed uint64) (ran bool) {
	t.Helper()
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	begun := cputime.Process()
	ran = runMethods(t, data, seed)
	if took := cputime.Process() - begun; took > maxTime {
		t.Errorf("%v for %d bytes", took, len(data))
	}
	goruntime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > maxBytes+8*uint64(len(data)) {
		t.Errorf("%d bytes allocated for a file of %d", n, len(data))
	}
	return ran
}

func runMethods(t *testing.T, data []byte, seed uint64) (ran bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), maxTime)
	defer cancel()
	p, err := etrun.Parse(data, etrun.WithLimits(limits), etrun.WithThreads(1), etrun.WithDelegates(all.Backends()...))
	if err != nil {
		wantClass(t, err)
		return false
	}
	defer p.Close()
	for _, name := range p.MethodNames()[:min(len(p.MethodNames()), 8)] {
		m, err := p.Load(ctx, name)
		if err != nil {
			wantClass(t, err)
			continue
		}
		for range 2 {
			if err := execute(ctx, m, seed); err != nil {
				wantClass(t, err)
				break
			}
			ran = true
		}
		if err := m.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	return ran
}

// execute runs a method with random inputs at their upper bounds.
func execute(ctx context.Context, m *etrun.Method, seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 1))
	for i, in := range m.Meta().Inputs {
		x := in.NewTensor()
		if x == nil {
			continue
		}
		for k := range x.Data {
			x.Data[k] = byte(r.Uint32()) & 0x3f
		}
		if err := m.SetInput(i, x); err != nil {
			return err
		}
	}
	return m.Execute(ctx)
}

// wantClass reports an error without a class, and a panic that only the outermost recover caught.
func wantClass(t *testing.T, err error) {
	t.Helper()
	if p, ok := errors.AsType[*etrun.PanicError](err); ok {
		t.Errorf("a panic reached the fence: %v\n%s", err, p.Stack)
		return
	}
	for _, class := range []error{etrun.ErrFormat, etrun.ErrUnsupported, etrun.ErrMissing, etrun.ErrInput, etrun.ErrMemory,
		etrun.ErrExecute, etrun.ErrDevice, context.DeadlineExceeded} {
		if errors.Is(err, class) {
			return
		}
	}
	t.Errorf("an error without a class: %v", err)
}
