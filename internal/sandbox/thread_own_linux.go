package sandbox

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// OwnThread calls f on a thread that ends with it. It is not the main thread: processes that
// a confined main thread starts could signal this process.
func OwnThread(f func()) {
	runtime.LockOSThread()
	if unix.Gettid() != os.Getpid() {
		f()
		runtime.Goexit() // locked: the thread ends
	}
	defer runtime.UnlockOSThread()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		f()
	}()
	<-done
}
