package cpu

import (
	"errors"
	"os"
	"slices"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// leasePoll is how often a lease is checked. Whoever wants to write to the file waits as long.
const leasePoll = 200 * time.Millisecond

var errLease = errors.New("no lease")

// localFiles are the file systems on which a lease is known to keep a file from changing: others may change it elsewhere.
var localFiles = []int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC,
	unix.OVERLAYFS_SUPER_MAGIC}

// MapLeased is MapFile for a file that does not change as long as it is mapped: with a lease the kernel lets those who want to
// write to it, or to truncate it, wait until the mapping has memory of its own instead. There is a lease only of a file of this user that nobody
// has opened for writing, on a local file system; otherwise MapLeased fails.
func MapLeased(f *os.File, size int64) (*Mapping, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	m, err := mapLeased(fd, size)
	if err != nil {
		endLease(fd)
		return nil, err
	}
	m.closing = make(chan struct{})
	go m.watch(fd)
	return m, nil
}

func mapLeased(fd int, size int64) (*Mapping, error) {
	var system unix.Statfs_t
	if err := unix.Fstatfs(fd, &system); err != nil || !slices.Contains(localFiles, int64(uint32(system.Type))) {
		return nil, errors.Join(errLease, err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETSIG, int(unix.SIGURG)); err != nil { // ignored, unlike SIGIO: the lease is polled
		return nil, err
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
		return nil, err
	}
	var now unix.Stat_t
	if err := unix.Fstat(fd, &now); err != nil || now.Size != size { // before the lease it may have changed
		return nil, errors.Join(errLease, err)
	}
	return mmap(fd, int(size), unix.PROT_READ, unix.MAP_PRIVATE)
}

// endLease gives a lease up, which the caller's descriptor has as well, and closes its own.
func endLease(fd int) {
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
	_ = unix.Close(fd)
}

// watch copies the file to memory before it gives the lease up.
func (m *Mapping) watch(fd int) {
	defer endLease(fd)
	poll := time.NewTicker(leasePoll)
	defer poll.Stop()
	for {
		select {
		case <-m.closing:
			return
		case <-poll.C:
		}
		if kind, err := unix.FcntlInt(uintptr(fd), unix.F_GETLEASE, 0); err != nil || kind != unix.F_RDLCK {
			m.detach()
			return
		}
	}
}

// detach replaces the pages of the file by a copy, at the same address and in one step.
func (m *Mapping) detach() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bytes == nil {
		return
	}
	size := uintptr(len(m.bytes))
	own, err := unix.MmapPtr(-1, 0, nil, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return // without memory for it the mapping is as safe as one without a lease
	}
	b := unsafe.Slice((*byte)(own), size)
	copy(b, m.bytes)
	_ = unix.Mprotect(b, unix.PROT_READ)
	if _, err := unix.MremapPtr(own, size, unsafe.Pointer(&m.bytes[0]), size, unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED); err != nil {
		_ = unix.MunmapPtr(own, size)
		return
	}
	m.detached = true
}

// forgettable are mappings of files that are read here and there: with a byte the kernel maps up to 2 MiB that it has in memory.
var forgettable struct {
	mu   sync.Mutex
	list []*Mapping
}

// Forgettable lets [Forget] release the pages of a mapped file.
func (m *Mapping) Forgettable() {
	forgettable.mu.Lock()
	forgettable.list = append(forgettable.list, m)
	forgettable.mu.Unlock()
}

// Forget releases the pages of the mappings that are forgettable. They are read again when they are touched.
func Forget() {
	forgettable.mu.Lock()
	left := forgettable.list[:0]
	for _, m := range forgettable.list {
		m.mu.Lock()
		if !m.detached {
			advise(m.bytes, unix.MADV_DONTNEED)
		}
		if m.bytes != nil { // not closed
			left = append(left, m)
		}
		m.mu.Unlock()
	}
	clear(forgettable.list[len(left):])
	forgettable.list = left
	forgettable.mu.Unlock()
}
