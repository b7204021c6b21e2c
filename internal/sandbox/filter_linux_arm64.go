package sandbox

import "golang.org/x/sys/unix"

const (
	machine   = unix.AUDIT_ARCH_AARCH64
	largeFile = 0x20000
)

// System calls that have other names on this architecture.
var (
	harmlessHere = []uintptr{}
	loadingHere  = []uintptr{unix.SYS_FSTATAT}
)
