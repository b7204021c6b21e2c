// Package collect returns the memory of garbage to the system when a server has no use for it.
package collect

import (
	"runtime/debug"
	"sync/atomic"
	"time"
)

// Loaded collects what a load has left.
func Loaded() { debug.FreeOSMemory() }

// idle is how long a server has no requests before it returns memory to the system.
const idle = 10 * time.Second

var (
	requests atomic.Int64
	watched  atomic.Bool // a look is to come
)

// Answered notes the end of a request. After the last one for a while, garbage is collected, and its memory returned to the system: nobody
// allocates any more, so that no collection would come by itself.
func Answered() {
	requests.Add(1)
	if watched.CompareAndSwap(false, true) {
		time.AfterFunc(idle, func() { look(0) })
	}
}

// look returns memory if no request has ended since the last look, at which there were n.
func look(n int64) {
	now := requests.Load()
	if now != n {
		time.AfterFunc(idle, func() { look(now) })
		return
	}
	watched.Store(false)
	debug.FreeOSMemory()
}
