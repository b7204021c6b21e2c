package session

import (
	"context"
	"sync/atomic"
	"time"
)

// executing is the number of runs in progress.
var executing atomic.Int64

// overdue is how long a run may continue after its context ended. Loops in C cannot be interrupted.
const overdue = time.Second

// EndOverdue calls end if runs are still in progress a second after ctx has ended. The returned function
// ends the wait.
func EndOverdue(ctx context.Context, end func(cause error)) (stop func()) {
	var stopped atomic.Bool
	release := context.AfterFunc(ctx, func() {
		for until := time.Now().Add(overdue); time.Now().Before(until); time.Sleep(overdue / 20) {
			if executing.Load() == 0 || stopped.Load() {
				return
			}
		}
		end(context.Cause(ctx))
	})
	return func() {
		stopped.Store(true)
		release()
	}
}
