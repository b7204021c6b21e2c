package cpu

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Allowed returns the number of processors in the process's affinity mask (sched_getaffinity).
func Allowed() int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil || set.Count() == 0 {
		return runtime.NumCPU() // more processors than fit the set
	}
	return set.Count()
}
