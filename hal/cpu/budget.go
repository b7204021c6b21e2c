package cpu

import "runtime"

// DefaultThreads is the number of processors that the process may use: those its
// affinity allows, within its cgroup's quota. Go's scheduler asks the kernel both.
func DefaultThreads() int { return runtime.GOMAXPROCS(0) }
