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
	if !watched.Load() && watched.CompareAndSwap(false, true) {
		go wait()
	}
}

// wait returns memory when no request has ended for a while.
func wait() {
	for n := int64(0); n != requests.Load(); {
		n = requests.Load()
		pause(idle)
	}
	watched.Store(false)
	debug.FreeOSMemory()
}
