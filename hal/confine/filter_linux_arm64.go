package confine

import "golang.org/x/sys/unix"

const (
	machine   = unix.AUDIT_ARCH_AARCH64
	largeFile = 0x20000
)

// Calls that this processor has under another name.
var (
	harmlessHere = []uintptr{}
	loadingHere  = []uintptr{unix.SYS_FSTATAT}
)
