// Package collect returns the memory of garbage to the system when a server has no use for it.
package collect

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// Small is the size of files below which their memory is not worth the time of collections.
const Small = 4 << 20

// Often makes collections more frequent until restore is called: for commands whose files fit into memory a few times only.
func Often(files ...string) (restore func()) {
	size := int64(0)
	for _, name := range files {
		if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
			size = Small // unknown
		} else {
			size += info.Size()
		}
	}
	if size < Small {
		return func() {}
	}
	old := debug.SetGCPercent(20)
	return func() { debug.SetGCPercent(old) }
}

// Loaded collects what a load has left.
func Loaded() { debug.FreeOSMemory() }

const (
	idle   = 10 * time.Second // the time between looks
	little = 4 << 20          // bytes that an idle server allocates in that time at most: it is asked for its state and its metrics
)

var (
	watched atomic.Bool  // a look is to come
	freed   atomic.Bool  // a collection would return memory, whatever has been allocated
	last    atomic.Int64 // what had been allocated at the last collection
)

// Answered notes the end of a request. Once little is allocated, garbage is collected, and its memory returned to the system: no collection
// would come by itself.
func Answered() {
	if watched.CompareAndSwap(false, true) {
		n := allocated()
		time.AfterFunc(idle, func() { look(n) })
	}
}

// Freed is Answered for what a server has kept.
func Freed() {
	freed.Store(true)
	Answered()
}

// look collects if little has been allocated since the last look, when it was n bytes in all.
func look(n int64) {
	now := allocated()
	if now-n > little {
		time.AfterFunc(idle, func() { look(now) })
		return
	}
	watched.Store(false)
	if freed.Swap(false) || now-last.Load() > little {
		debug.FreeOSMemory()
		last.Store(now)
	}
}

// allocated returns the bytes that have been allocated on the heap so far.
func allocated() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}
