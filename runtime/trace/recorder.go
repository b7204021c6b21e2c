package trace

import "sync"

// Recorder is an observer that stores events. The zero value is ready to use and stores all events
// except Begin, Read and Written. It is safe for concurrent use; its fields may be accessed while
// no events arrive.
type Recorder struct {
	// Kinds are the events to store; 0 means the default. Events of values are stored without
	// Values.
	Kinds Kinds
	// Max limits the number of stored events; Dropped counts further ones. 0 means no limit.
	Max int
	// Events are in the order of arrival, without Context and Values.
	Events  []Event
	Dropped int

	mu sync.Mutex
}

// Wants returns r.Kinds, or the default if it is 0.
func (r *Recorder) Wants() Kinds {
	if r.Kinds != 0 {
		return r.Kinds
	}
	return Everything &^ (1 << Begin)
}

// Observe stores an event.
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

// Reset removes all events and keeps the allocated memory.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.Events)
	r.Events, r.Dropped = r.Events[:0], 0
}
