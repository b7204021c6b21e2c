package collect

import (
	"time"

	"golang.org/x/sys/unix"
)

// pause sleeps in the system: with a timer of Go's that is to come, each wait for the network has one, which takes 3 to 5 µs of a
// request.
func pause(d time.Duration) {
	for left := unix.NsecToTimespec(int64(d)); unix.Nanosleep(&left, &left) == unix.EINTR; {
	}
}
