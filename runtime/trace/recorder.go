package trace

import "sync"

// Recorder is an observer that keeps events. The zero value is ready and keeps all of
// them but Begin and values. It is safe for concurrent use; its fields are, while nothing is
// observed.
type Recorder struct {
	// Kinds are the events to keep; 0 means all but Begin. Of values only their events are
	// kept, without Values.
	Kinds Kinds
	// Max bounds the number of events kept; later ones are counted in Dropped. 0
	// means no bound.
	Max int
	// Events are in the order in which they were told, without their Context and Values.
	Events  []Event
	Dropped int

	mu sync.Mutex
}

// Wants is r.Kinds, or everything but Begin.
func (r *Recorder) Wants() Kinds {
	if r.Kinds != 0 {
		return r.Kinds
	}
	return Everything &^ (1 << Begin)
}

// Observe keeps an event.
func (r *Recorder) Observe(e *Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Max > 0 && len(r.Events) >= r.Max {
		r.Dropped++
		return
	}
	r.Events = append(r.Events, *e)
	kept := &r.Events[len(r.Events)-1]
	kept.Context, kept.Values = nil, nil
}

// Reset forgets all events and keeps the memory that they were in.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.Events)
	r.Events, r.Dropped = r.Events[:0], 0
}
