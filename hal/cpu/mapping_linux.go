package cpu

import "golang.org/x/sys/unix"

// useLargePages asks for pages of megabytes, where the system has them.
func useLargePages(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }
