// Package cputime is the clock of tests that bound what an input may cost: unlike the
// wall's, it does not run while a busy machine does something else.
package cputime

import (
	"time"

	"golang.org/x/sys/unix"
)

// Used is the processor time that the process has taken, on all its threads.
func Used() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
