package cost

import (
	"fmt"
	"math"
	"time"

	"github.com/etrun-go/etrun/internal/duration"
)

const (
	// LongTime is the time of a run above which methods may gain more from the library than is estimated.
	LongTime = time.Millisecond
	// regionLoss limits by how much a region may be slower without the library: by 1/regionLoss, as estimated.
	regionLoss = 10
)

// Estimates are the approximate times of a run, by engine.
type Estimates [2]time.Duration

// Never is the estimate of an engine that does not run a graph.
const Never = time.Duration(math.MaxInt64 / 4)

// Times of a run on two threads of graphs that several threads compute in the library: relative to one thread, and in
// addition for each node, after which threads synchronize. Measured on 17 models, within 0.15 of the ratios of both.
var (
	ThreadedTime = [...]float64{ByLibrary: 0.6, ByGo: 0.7}
	ThreadedNode = [...]time.Duration{ByLibrary: 2300 * time.Nanosecond, ByGo: 1500 * time.Nanosecond}
)

// goFactors correct the Go engine's estimates of graphs, by their time, and include a margin. Nodes
// run faster in a graph than alone, because their operands are in the cache; those of large graphs
// read weights from memory. Measured over estimated times: 0.8 to 1 from 50 µs to 1 ms, up to 1.2
// above. Shorter runs depend on more than rates: their factors are larger margins.
var goFactors = [...]struct {
	upTo   time.Duration
	factor float64
}{
	{20 * time.Microsecond, 1.12},
	{50 * time.Microsecond, 1.05},
	{time.Millisecond, 0.97},
	{math.MaxInt64, 1.07},
}

// Expected returns the corrected estimate of the Go engine.
func (e Estimates) Expected() time.Duration {
	i := 0
	for e[ByGo] > goFactors[i].upTo {
		i++
	}
	return time.Duration(goFactors[i].factor * float64(e[ByGo]))
}

// PrefersGo reports whether the Go engine probably runs a graph faster than the library.
func (e Estimates) PrefersGo() bool { return e.Expected() < e[ByLibrary] }

// RegionInGo reports whether the Go engine should run a region. The library must save 1/regionLoss of
// the time: its memory is not in the method's plan, and it needs time to start.
func (e Estimates) RegionInGo() bool {
	return e.PrefersGo() || e[ByGo] <= LongTime && (e[ByGo]-e[ByLibrary])*regionLoss < e[ByGo]
}

// String returns the estimates for messages.
func (e Estimates) String() string {
	if e[ByLibrary] >= Never/2 {
		return fmt.Sprintf("%s in Go, not in the library", duration.Format(e[ByGo]))
	}
	return fmt.Sprintf("%s in Go, %s in the library", duration.Format(e[ByGo]), duration.Format(e[ByLibrary]))
}
