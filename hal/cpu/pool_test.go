package cpu

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/etrun-go/etrun/internal/await"
)

// counter counts visits per element, and checks worker numbers.
type counter struct {
	seen    []atomic.Int32
	workers []atomic.Int32 // goroutines inside Range, by worker number
	faults  atomic.Int32   // numbers out of range, or used twice at a time
}

func newCounter(p *Pool, n int) *counter {
	return &counter{seen: make([]atomic.Int32, n), workers: make([]atomic.Int32, p.Size())}
}

func (c *counter) Range(worker, lo, hi int) {
	if worker < 0 || worker >= len(c.workers) || c.workers[worker].Add(1) != 1 || lo >= hi {
		c.faults.Add(1)
	}
	for i := lo; i < hi; i++ {
		c.seen[i].Add(1)
	}
	runtime.Gosched()
	c.workers[worker].Add(-1)
}

func (c *counter) check(t *testing.T, times int32) {
	t.Helper()
	for i := range c.seen {
		if got := c.seen[i].Load(); got != times {
			t.Errorf("element %d: visited %d times, want %d", i, got, times)
			return
		}
	}
	if n := c.faults.Load(); n != 0 {
		t.Errorf("%d ranges with a bad or doubly used worker number, or without elements", n)
	}
}

func TestDoVisitsEachElementOnce(t *testing.T) {
	for _, threads := range []int{-1, 1, 2, 3, 8} {
		p := NewPool(threads)
		var r Run
		for _, n := range []int{0, 1, 2, 7, 100, 1000} {
			for _, grain := range []int{-5, 0, 1, 3, 64, 5000} {
				c := newCounter(p, n)
				p.Do(&r, n, grain, c)
				c.check(t, 1)
			}
		}
		p.Close()
	}
	var none *Pool
	c := newCounter(NewPool(1), 10)
	none.Do(new(Run), 10, 1, c)
	c.check(t, 1)
}

func TestManyCallers(t *testing.T) {
	p := NewPool(4)
	defer p.Close()
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			var r Run
			c := newCounter(p, 333)
			for range 50 {
				p.Do(&r, 333, 10, c)
			}
			c.check(t, 50)
		})
	}
	callers.Wait()
}

// nest runs a loop of its own for each range.
type nest struct {
	p     *Pool
	inner *counter
}

func (n *nest) Range(_, lo, hi int) {
	var r Run
	for range hi - lo {
		n.p.Do(&r, len(n.inner.seen), 1, &visitor{n.inner})
	}
}

// visitor only counts visits: nested loops reuse worker numbers.
type visitor struct{ c *counter }

func (v *visitor) Range(_, lo, hi int) {
	for i := lo; i < hi; i++ {
		v.c.seen[i].Add(1)
	}
}

func TestNested(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	n := &nest{p, newCounter(p, 40)}
	var r Run
	p.Do(&r, 20, 1, n)
	n.inner.check(t, 20)
}

// faulty panics at one element.
type faulty struct{ at int }

func (f faulty) Range(_, lo, hi int) {
	if lo <= f.at && f.at < hi {
		panic(f)
	}
	runtime.Gosched() // others have ranges, too
}

func TestPanicReachesTheCaller(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	var r Run
	for at := range 100 {
		got := func() (v any) {
			defer func() { v = recover() }()
			p.Do(&r, 100, 1, faulty{at})
			return nil
		}()
		if got != (faulty{at}) {
			t.Fatalf("panic at element %d: got %v", at, got)
		}
		c := newCounter(p, 100) // the pool and the Run are still usable
		p.Do(&r, 100, 1, c)
		c.check(t, 1)
	}
}

func TestCloseAtAnyTime(t *testing.T) {
	for range 200 {
		p := NewPool(3)
		var callers sync.WaitGroup
		for range 3 {
			callers.Go(func() {
				var r Run
				for range 5 {
					c := newCounter(p, 50)
					p.Do(&r, 50, 1, c)
					c.check(t, 1)
				}
			})
		}
		p.Close()
		p.Close()
		callers.Wait()
	}
}

func TestCloseEndsTheHelpers(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 20 {
		p := NewPool(5)
		p.Do(new(Run), 100, 1, newCounter(p, 100))
		p.Close()
	}
	await.True(t, "the helpers end", func() bool { return runtime.NumGoroutine() <= before })
}

// sleeper holds its first range until released.
type sleeper struct{ entered, release chan struct{} }

func (s *sleeper) Range(_, lo, _ int) {
	if lo == 0 {
		close(s.entered)
		<-s.release
	}
}

// TestBusyHelperDelaysNoOther finishes a loop while the only helper is blocked.
func TestBusyHelperDelaysNoOther(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	stuck := &sleeper{make(chan struct{}), make(chan struct{})}
	p.once.Do(p.start)
	var blocked, r Run
	blocked.prepare(2, 1, 1, stuck)
	if p.offer(&blocked, 1) != 1 {
		t.Fatal("the helper is not idle")
	}
	<-stuck.entered
	c := newCounter(p, 100)
	p.Do(&r, 100, 1, c)
	c.check(t, 1)
	close(stuck.release)
	if fault := <-blocked.done; fault != nil {
		t.Fatal(fault)
	}
}

func TestDoAllocatesNothing(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	var r Run
	c := newCounter(p, 100)
	if n := testing.AllocsPerRun(100, func() { p.Do(&r, 100, 10, c) }); n != 0 {
		t.Errorf("%v allocations a loop, want none", n)
	}
}

func TestNilPool(t *testing.T) {
	var p *Pool
	if n := p.Size(); n != 1 {
		t.Errorf("a nil pool has %d threads, want 1", n)
	}
}

// elements is a loop that takes as long as the last element that it has reached.
type elements struct {
	now  *time.Duration
	seen []int // the worker of each element
}

func (e *elements) Range(worker, lo, hi int) {
	for i := lo; i < hi; i++ {
		e.seen[i] = worker
		*e.now += time.Duration(i)
	}
}

func TestSimulate(t *testing.T) {
	p, now := NewPool(4), time.Duration(0)
	defer p.Close()
	s := Simulation{Clock: func() time.Duration { return now }}
	Simulate(&s)
	defer Simulate(nil)
	var r Run
	body := &elements{&now, make([]int, 8)}
	p.Do(&r, 8, 1, body)
	p.Do(&r, 8, 8, body) // is not divided
	p.Do(&r, 8, 4, body)
	if s.Loops != 2 || s.Divided != 56 || s.Longest != 6+7+4+5+6+7 {
		t.Errorf("%d loops of %d, the longest parts %d, want 2, 56 and 35", s.Loops, s.Divided, s.Longest)
	}
	if want := []int{0, 0, 0, 0, 1, 1, 1, 1}; !slices.Equal(body.seen, want) {
		t.Errorf("elements of workers %v, want %v", body.seen, want)
	}
}
