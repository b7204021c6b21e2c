//go:build unix

package output

import (
	"os"
	"syscall"
)

// notWaiting are the flags of an open that neither waits nor takes over a terminal.
const notWaiting = syscall.O_NONBLOCK | syscall.O_NOCTTY

// duplicate is a file over the same open file, which outlives it.
func duplicate(f *os.File, name string) (*os.File, error) {
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}
