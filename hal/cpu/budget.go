package cpu

import "sync"

// MaxThreads is the largest number of threads of a program. Loops have scratch memory for each.
const MaxThreads = 1024

// DefaultThreads returns the number of threads that keeps all processors available to the process
// busy: the affinity mask, limited by the cgroup's quota rounded down. With more threads than the
// quota, the kernel would stop them for part of each period, and every parallel loop with them.
var DefaultThreads = sync.OnceValue(func() int {
	n := Allowed()
	if quota, limited := Quota(); limited {
		n = min(n, int(quota))
	}
	return max(n, 1)
})
