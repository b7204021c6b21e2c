package serve

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/etrun-go/etrun/internal/await"
)

// errTried is the error of a load that was tried.
var errTried = errors.New("tried")

// waiting returns a server with a model that is loaded on demand, and whose loads fail.
func waiting(t *testing.T) (*Server, *Model) {
	t.Helper()
	s, err := New(Options{MemoryBytes: 100}, Config{Name: "m", OnDemand: true,
		Start: func(context.Context) (Program, error) { return nil, errTried }})
	if err != nil {
		t.Fatal(err)
	}
	return s, s.Model("m")
}

// TestLastLeaves lets a request wait for a load which the last request before it has canceled: it is loaded again.
func TestLastLeaves(t *testing.T) {
	for _, waiters := range []int{0, 1} {
		_, m := waiting(t)
		ctx, cancel := context.WithCancel(t.Context())
		d := &pendingLoad{model: m, done: make(chan struct{}), cancel: cancel, waiters: 1}
		m.pending = d
		d.leave()
		d.waiters = waiters
		again := d.end(ctx, context.Cause(ctx))
		if wait := m.pending != nil; wait != (waiters > 0) || wait != (again != nil) {
			t.Fatalf("%d requests wait: %v, %v", waiters, m.pending, again)
		}
		if again == nil {
			continue
		}
		m.fulfil(again, d)
		if _, err := d.wait(t.Context()); errors.Is(err, context.Canceled) || m.State() != Failed {
			t.Errorf("%v, %s", err, m.State())
		}
	}
}

// TestUnloadedMeanwhile unloads a model while a request waits for its load.
func TestUnloadedMeanwhile(t *testing.T) {
	_, m := waiting(t)
	m.loading.Lock()
	_, d, _ := m.join()
	m.change(func() { m.stopped = true }) // by Unload
	m.loading.Unlock()
	if _, err := d.wait(t.Context()); !errors.Is(err, ErrUnknown) || m.State() != Unloaded {
		t.Errorf("%v, %s", err, m.State())
	}
}

// TestFreed waits for the memory of any version, not only of that which leaves for the longest time.
func TestFreed(t *testing.T) {
	s, m := waiting(t)
	h := s.common
	long, short := &version{bytes: 50}, &version{bytes: 50}
	h.used.Store(100)
	h.leaving = []*version{long, short}
	var load sync.WaitGroup
	load.Go(func() {
		if err := h.reserve(t.Context(), m, 40); err != nil {
			t.Error(err)
		}
	})
	await.True(t, "the load looks for memory", func() bool {
		h.freed.mu.Lock()
		defer h.freed.mu.Unlock()
		return h.freed.waiting != nil
	})
	h.closed(short)
	load.Wait()
	if n := s.MemoryBytes(); n != 90 {
		t.Errorf("%d bytes", n)
	}
	for _, n := range []int64{101, math.MaxInt64 - 1, math.MaxInt64} {
		if err := h.reserve(t.Context(), m, n); !errors.Is(err, ErrNoRoom) || s.MemoryBytes() != 90 {
			t.Errorf("%d bytes: %v, %d are used", n, err, s.MemoryBytes())
		}
	}
	s.cancel()
	if err := h.reserve(context.Background(), m, 40); !errors.Is(err, context.Canceled) {
		t.Errorf("after Close: %v", err)
	}
}

// TestRefusedMemory asks for memory that there is not, while others look at what is used: they never see more than the limit.
func TestRefusedMemory(t *testing.T) {
	s, _ := waiting(t)
	s.common.used.Store(90)
	var done atomic.Bool
	var load sync.WaitGroup
	load.Go(func() {
		for range 100_000 {
			if s.common.fits(11) {
				t.Error("101 bytes fit into 100")
			}
		}
		done.Store(true)
	})
	for !done.Load() {
		if n := s.MemoryBytes(); n != 90 {
			t.Fatalf("%d bytes are used, want 90", n)
		}
	}
	load.Wait()
}
