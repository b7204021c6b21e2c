package serve

import (
	"sync/atomic"
	"time"
)

// statistics counts the requests of a method since its program was loaded, as Triton's statistics extension does. Goroutines
// may add to it at once.
type statistics struct {
	success, fail, queue, input, infer, output duration
	requests, runs                             atomic.Int64 // rows of requests that were answered, and runs
	last                                       atomic.Int64 // end of the last one, in Unix milliseconds
}

// duration is a number of requests and their time.
type duration struct{ count, ns atomic.Int64 }

// add adds n requests, each of which took some time.
func (d *duration) add(n int, each time.Duration) {
	d.count.Add(int64(n))
	d.ns.Add(int64(n) * int64(each))
}

// ended counts a request that has arrived then, with rows rows.
func (s *statistics) ended(arrived time.Time, rows int, err error) {
	took := time.Since(arrived)
	if err != nil {
		s.fail.add(1, took)
		return
	}
	s.success.add(1, took)
	s.requests.Add(int64(rows))
	s.last.Store(arrived.Add(took).UnixMilli())
}
