package native

import (
	"sync"

	"github.com/etrun-go/etrun/cbindings/xnn"
)

// threads is a thread pool of the library that units share.
type threads struct {
	lib  *xnn.Library
	size int
	p    xnn.Threadpool
	uses int
}

var threadPools struct {
	sync.Mutex
	list []*threads
}

// acquireThreads returns the library's pool of n threads, including the caller's, or nil if the
// system has no more threads.
func acquireThreads(lib *xnn.Library, n int) *threads {
	threadPools.Lock()
	defer threadPools.Unlock()
	for _, t := range threadPools.list {
		if t.lib == lib && t.size == n {
			t.uses++
			return t
		}
	}
	p := lib.CreateThreadpool(uint(n))
	if p == 0 {
		return nil
	}
	t := &threads{lib: lib, size: n, p: p, uses: 1}
	threadPools.list = append(threadPools.list, t)
	return t
}

// release removes a user. It destroys the pool with its last user. A nil t is one thread.
func (t *threads) release() {
	if t == nil {
		return
	}
	threadPools.Lock()
	defer threadPools.Unlock()
	if t.uses--; t.uses > 0 {
		return
	}
	for i, other := range threadPools.list {
		if other == t {
			threadPools.list = append(threadPools.list[:i], threadPools.list[i+1:]...)
			break
		}
	}
	t.lib.DestroyThreadpool(t.p)
}

// pool returns the C pool, 0 for one thread.
func (t *threads) pool() xnn.Threadpool {
	if t == nil {
		return 0
	}
	return t.p
}
