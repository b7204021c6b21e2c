package xnnpack

import (
	"fmt"
	"time"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
)

// estimates are how long a run takes about on one thread, by engine.
type estimates [2]time.Duration

// estimates of a graph at its declared sizes, for the library that the backend opens.
func (b Backend) estimates(g *graph, s []shape) (e estimates) {
	varies, lib := make([]bool, g.Inputs), xnn.Locate(b.Library)
	for _, engine := range []int{byLibrary, byGo} {
		e[engine] = g.estimate(lib, s, engine, varies, 1)
	}
	return e
}

// sureTime is from where on estimates are good: short runs depend on more than rates.
const sureTime = 50 * time.Microsecond

// margin is what estimates of the Go engine cannot tell.
func (e estimates) margin() time.Duration {
	if e[byGo] > sureTime {
		return e[byGo] / 12
	}
	return e[byGo] / 4
}

// prefersGo reports whether the Go engine runs a graph faster than the library, with a margin.
func (e estimates) prefersGo() bool { return e[byGo]+e.margin() < e[byLibrary] }

// of is the estimate of the engine that a backend would choose.
func (e estimates) of(b Backend) time.Duration {
	if b.automatic() && e.prefersGo() {
		return e[byGo]
	}
	return e[b.engine()]
}

func (e estimates) String() string {
	return fmt.Sprintf("%v in Go, %v in the library", e[byGo].Round(10*time.Nanosecond), e[byLibrary].Round(10*time.Nanosecond))
}

// automatic reports that the engine is chosen graph by graph. A folder for packed weights is
// for those of the library, which then has every graph that it may have.
func (b Backend) automatic() bool {
	return (b.Engine == "" || b.Engine == EngineAuto) && b.WeightsCache == ""
}

// choose makes the image one of the Go engine where that is faster; done is false where the
// library is to have it. A library that is asked for by name has to be there anyhow.
func (b Backend) choose(m *image) (done bool, err error) {
	if !b.automatic() {
		return false, nil
	}
	if xnn.Named(b.Library) && !xnn.Found(b.Library) {
		if _, err := xnn.Open(b.Library); err != nil {
			return false, &delegate.Error{Backend: ID, Reason: delegate.ErrMissing, Err: err}
		}
	}
	if m.estimates = b.estimates(m.graph, m.shapes); !m.inGo && !m.estimates.prefersGo() {
		return false, nil
	}
	_, err = m.openReference()
	return err == nil, nil
}
