//go:build linux && (amd64 || arm64)

package ethosu

import (
	"path/filepath"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// linux is the running kernel.
type linux struct{}

func (linux) nodes(pattern string) []string {
	found, _ := filepath.Glob(pattern) // the patterns are constants, none is malformed
	return found
}

func (linux) open(path string) (int, error) {
	return unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
}

func (linux) close(fd int) error { return unix.Close(fd) }

func (linux) ioctl(fd int, request uint32, arg unsafe.Pointer) (int, error) {
	n, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(arg))
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}

func (linux) mmap(fd int, offset int64, size int) ([]byte, error) {
	return unix.Mmap(fd, offset, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

func (linux) remap(mem []byte, fd int, offset int64) error {
	_, err := unix.MmapPtr(fd, offset, unsafe.Pointer(unsafe.SliceData(mem)), uintptr(len(mem)),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED)
	return err
}

func (linux) munmap(mem []byte) error { return unix.Munmap(mem) }

func (linux) poll(fd int, timeout time.Duration) (bool, error) {
	fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	ms := int((timeout + time.Millisecond - 1) / time.Millisecond)
	n, err := unix.Poll(fds[:], ms)
	return n > 0 && fds[0].Revents != 0, err
}

func (linux) monotonic() int64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	return t.Nano()
}
