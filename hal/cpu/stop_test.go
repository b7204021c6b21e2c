package cpu

import (
	"testing"
	"time"
)

// steps is a loop that closes stop in a step, and takes a millisecond a step.
type steps struct {
	stop chan struct{}
	at   int
	run  *Run
	poll bool
}

func (s *steps) Range(_, lo, hi int) {
	for i := lo; i < hi; i++ {
		if i == s.at {
			close(s.stop)
		}
		time.Sleep(time.Millisecond)
		if s.poll {
			s.run.Poll()
		}
	}
}

// TestStops stops loops that would take minutes: between ranges, inside a few large chunks of several threads, and
// inside one range whose body polls.
func TestStops(t *testing.T) {
	for _, v := range []struct {
		threads, n, grain int
		poll              bool
	}{
		{1, 1 << 20, 1, false}, {2, 1 << 20, 1, false}, {3, 1 << 20, 1, false},
		{1, 1 << 18, 1 << 18, true}, {2, 1 << 20, 1 << 18, true},
	} {
		p := NewPool(v.threads)
		var r Run
		s := &steps{stop: make(chan struct{}), at: 5, run: &r, poll: v.poll}
		r.StopWhen(s.stop)
		begun := time.Now()
		fault := func() (fault any) {
			defer func() { fault = recover() }()
			p.Do(&r, v.n, v.grain, s)
			return nil
		}()
		if took := time.Since(begun); fault != (Stopped{}) || took > 10*time.Second {
			t.Errorf("%+v: panic %v after %v", v, fault, took)
		}
		p.Close()
	}
}
