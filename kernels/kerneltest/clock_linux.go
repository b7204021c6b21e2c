package kerneltest

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is what the calling thread has spent on a processor: on a busy machine
// it leaves out what others spent meanwhile.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(t.Nano())
}
