//go:build !linux || !(amd64 || arm64)

package ethosu

import (
	"syscall"
	"time"
	"unsafe"
)

// linux is a stub: there are no device nodes to open.
type linux struct{}

func (linux) nodes(string) []string                          { return nil }
func (linux) open(string) (int, error)                       { return -1, syscall.ENOSYS }
func (linux) close(int) error                                { return syscall.ENOSYS }
func (linux) ioctl(int, uint32, unsafe.Pointer) (int, error) { return -1, syscall.ENOSYS }
func (linux) mmap(int, int64, int) ([]byte, error)           { return nil, syscall.ENOSYS }
func (linux) remap([]byte, int, int64) error                 { return syscall.ENOSYS }
func (linux) munmap([]byte) error                            { return syscall.ENOSYS }
func (linux) poll(int, time.Duration) (bool, error)          { return false, syscall.ENOSYS }
func (linux) monotonic() int64                               { return 0 }
