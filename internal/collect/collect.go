// Package collect sets when Go's garbage is collected in the programs of this module.
package collect

import (
	"os"
	"runtime/debug"
	"sync"
	"time"
)

// loadingPercent is the growth of the heap, in percent, before a collection while a program is opened, or runs once. Its heap is small, as
// files, weights and values are elsewhere, and most of it is needed: collections would find little.
const loadingPercent = 300

// Loading has fewer collections until Loaded, unless the environment sets GOGC.
func Loading() { setPercent(loadingPercent) }

// Loaded ends that. It collects what loads have left, and returns the memory to the system.
func Loaded() {
	setPercent(100)
	debug.FreeOSMemory()
}

// idle is how long a server has no requests before it returns memory to the system.
const idle = 10 * time.Second

var timer = sync.OnceValue(func() *time.Timer { return time.AfterFunc(idle, debug.FreeOSMemory) })

// Answered notes the end of a request. After the last one for a while, garbage is collected, and its memory returned to the system: nobody
// allocates any more, so that no collection would come by itself.
func Answered() { timer().Reset(idle) }

func setPercent(n int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(n)
	}
}
