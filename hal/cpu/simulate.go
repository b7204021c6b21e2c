package cpu

import (
	"sync/atomic"
	"time"
)

// Simulation is how many loops were divided, and the time of all their parts and of the longest part of each.
type Simulation struct {
	Loops            int
	Divided, Longest time.Duration
	Clock            func() time.Duration // of the caller's thread

	inside bool
}

var simulation atomic.Pointer[Simulation]

// Simulate makes the parts of loops run one after the other, each as the thread that begins with it, and adds their times to s, until
// it is called with nil: on as many processors as parts, loops take the longest parts. Loops must have one caller at a time.
func Simulate(s *Simulation) { simulation.Store(s) }

// run runs the parts of a loop. Loops inside of them belong to their times.
func (s *Simulation) run(r *Run) {
	outer, longest := !s.inside, time.Duration(0)
	s.inside = true
	for i := range r.parts {
		p, begin := &r.parts[i], s.Clock()
		for lo := p.next.Load(); lo < p.end; lo += p.chunk {
			r.chunk(i, int(lo), int(min(lo+p.chunk, p.end)), r.body)
		}
		if took := s.Clock() - begin; outer {
			s.Divided, longest = s.Divided+took, max(longest, took)
		}
	}
	if outer {
		s.inside = false
		s.Loops, s.Longest = s.Loops+1, s.Longest+longest
	}
}
