package cost

import (
	"fmt"
	"math"
	"time"

	"github.com/etrun-go/etrun/internal/duration"
)

// Estimates are the approximate times of a run, by engine.
type Estimates [2]time.Duration

// Never is the estimate of an engine that does not run a graph.
const Never = time.Duration(math.MaxInt64 / 4)

// The library must save this part of the Go engine's time: estimates are not better than that, and a second copy of packed weights
// costs memory. And this much of a run: to open the library takes 0.7 ms, which tens of thousands of runs gain then.
const margin, leastGain = 0.02, 20 * time.Nanosecond

// PrefersGo reports whether the Go engine is to run a graph.
func (e Estimates) PrefersGo() bool {
	return e[ByGo]-e[ByLibrary] < max(time.Duration(margin*float64(e[ByGo])), leastGain)
}

// String returns the estimates for messages.
func (e Estimates) String() string {
	if e[ByLibrary] >= Never/2 {
		return fmt.Sprintf("%s in Go, not in the library", duration.Format(e[ByGo]))
	}
	return fmt.Sprintf("%s in Go, %s in the library", duration.Format(e[ByGo]), duration.Format(e[ByLibrary]))
}
