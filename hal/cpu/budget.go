package cpu

import "sync"

// DefaultThreads is the number of threads that keep every processor busy that the
// process may use, and none more than that: the allowed processors, within the
// cgroup's quota rounded down. More threads than the quota would be stopped for
// part of each period, and with them the loop that waits for all of them.
var DefaultThreads = sync.OnceValue(func() int {
	n := Allowed()
	if quota, limited := Quota(); limited {
		n = min(n, int(quota))
	}
	return max(n, 1)
})
