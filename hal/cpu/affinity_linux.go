package cpu

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Allowed is the number of processors that the process's affinity allows
// (sched_getaffinity).
func Allowed() int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil || set.Count() == 0 {
		return runtime.NumCPU() // more processors than the set has room for
	}
	return set.Count()
}
