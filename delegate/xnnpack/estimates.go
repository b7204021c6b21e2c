package xnnpack

import (
	"fmt"
	"math"
	"time"

	"github.com/etrun-go/etrun/internal/duration"
)

const (
	// longTime is the time of a run above which methods may gain more from the library than is estimated.
	longTime = time.Millisecond
	// regionLoss limits by how much a region may be slower without the library: by 1/regionLoss, as estimated.
	regionLoss = 10
)

// estimates are the approximate times of a run, by engine.
type estimates [2]time.Duration

// never is the estimate of an engine that does not run a graph.
const never = time.Duration(math.MaxInt64 / 4)

// Times of a run on two threads of graphs that several threads compute in the library: relative to one thread, and in
// addition for each node, after which threads synchronize. Measured on 17 models, within 0.15 of the ratios of both.
var (
	threadedTime = [...]float64{byLibrary: 0.6, byGo: 0.7}
	threadedNode = [...]time.Duration{byLibrary: 2300 * time.Nanosecond, byGo: 1500 * time.Nanosecond}
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

// expected returns the corrected estimate of the Go engine.
func (e estimates) expected() time.Duration {
	i := 0
	for e[byGo] > goFactors[i].upTo {
		i++
	}
	return time.Duration(goFactors[i].factor * float64(e[byGo]))
}

// prefersGo reports whether the Go engine probably runs a graph faster than the library.
func (e estimates) prefersGo() bool { return e.expected() < e[byLibrary] }

// regionInGo reports whether the Go engine should run a region. The library must save 1/regionLoss of
// the time: its memory is not in the method's plan, and it needs time to start.
func (e estimates) regionInGo() bool {
	return e.prefersGo() || e[byGo] <= longTime && (e[byGo]-e[byLibrary])*regionLoss < e[byGo]
}

func (e estimates) String() string {
	if e[byLibrary] >= never/2 {
		return fmt.Sprintf("%s in Go, not in the library", duration.Format(e[byGo]))
	}
	return fmt.Sprintf("%s in Go, %s in the library", duration.Format(e[byGo]), duration.Format(e[byLibrary]))
}
