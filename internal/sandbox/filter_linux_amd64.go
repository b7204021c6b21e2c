package sandbox

import "golang.org/x/sys/unix"

const (
	machine   = unix.AUDIT_ARCH_X86_64
	largeFile = 0x8000
)

// System calls for which this architecture has several variants.
var (
	harmlessHere = []uintptr{unix.SYS_TIME, unix.SYS_POLL, unix.SYS_EPOLL_WAIT}
	loadingHere  = []uintptr{unix.SYS_NEWFSTATAT, unix.SYS_ACCESS, unix.SYS_READLINK}
)
