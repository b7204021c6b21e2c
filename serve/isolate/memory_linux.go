//go:build linux && (amd64 || arm64)

package isolate

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// newMemory creates shared memory without a size.
func newMemory() (*os.File, error) {
	fd, err := unix.MemfdCreate("etrun-tensors", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	return os.NewFile(uintptr(fd), "memfd"), nil
}

// seal sets and seals the size of shared memory, and maps it.
func seal(f *os.File, size int64) ([]byte, error) {
	if err := f.Truncate(size); err != nil {
		return nil, err
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return nil, fmt.Errorf("sealing shared memory: %w", err)
	}
	return attachMemory(f, size)
}

// attachMemory maps shared memory. Its size must be sealed, so that the mapping stays valid.
func attachMemory(f *os.File, size int64) ([]byte, error) {
	have, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0)
	if err != nil || have&seals != seals {
		return nil, fmt.Errorf("shared memory with seals %#x, want %#x: %w", have, seals, errProtocol)
	}
	var info unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &info); err != nil || info.Size != size {
		return nil, fmt.Errorf("shared memory of %d bytes, want %d: %w", info.Size, size, errProtocol)
	}
	return unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

func detach(b []byte) { _ = unix.Munmap(b) } // cannot fail for a mapping
