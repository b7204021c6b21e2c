// Package trace records what a method did and when, and writes it down: as a table
// for people, as a Chrome trace, as an ETDump for ExecuTorch's Inspector.
package trace

import "time"

// Kind is what an event measured.
type Kind uint8

// Kinds of events.
const (
	Execute  Kind = iota // a whole execute of a method
	Operator             // a KernelCall
	Delegate             // a DelegateCall
	Node                 // one operation inside a delegate
	Move                 // a MoveCall
	Jump                 // a JumpFalseCall
	Free                 // a FreeCall
)

func (k Kind) String() string {
	return [...]string{"execute", "operator", "delegate", "node", "move", "jump", "free"}[k]
}

// Event is one measured span.
type Event struct {
	Kind        Kind
	Name        string // operator, delegate, node; the method's name for Execute
	Run         int    // number of the execute, from 0
	Chain       int    // of the instruction; -1 for Execute
	Instruction int    // in its chain; of the enclosing DelegateCall for Node
	Index       int    // of a Node in its delegate, else -1
	Start, End  time.Duration
}

// Recorder keeps events in order. The zero value is ready and keeps all of them.
// It belongs to one method instance at a time.
type Recorder struct {
	// Max bounds the number of events kept; later ones are counted in Dropped. 0
	// means no bound.
	Max     int
	Events  []Event
	Dropped int

	epoch time.Time
	run   int
}

// Now is the time since the recorder's first event began.
func (r *Recorder) Now() time.Duration {
	if r.epoch.IsZero() {
		r.epoch = time.Now()
	}
	return time.Since(r.epoch)
}

// Add keeps an event of the current run.
func (r *Recorder) Add(e Event) {
	if r.Max > 0 && len(r.Events) >= r.Max {
		r.Dropped++
		return
	}
	e.Run = r.run
	r.Events = append(r.Events, e)
}

// EndRun adds the event of the whole execute and begins the next run.
func (r *Recorder) EndRun(method string, start time.Duration) {
	r.Add(Event{Kind: Execute, Name: method, Chain: -1, Index: -1, Start: start, End: r.Now()})
	r.run++
}
