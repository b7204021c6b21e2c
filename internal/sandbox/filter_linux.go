//go:build linux && (amd64 || arm64)

package sandbox

import (
	"fmt"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// call is an allowed system call. If mask is not 0, the low 32 bits of an argument, masked, must be
// one of values.
type call struct {
	number uintptr
	arg    uint32
	mask   uint32
	values []uint32
}

// harmless are calls that act on the process itself and on open descriptors.
var harmless = []uintptr{
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_PREAD64, unix.SYS_LSEEK, unix.SYS_CLOSE, unix.SYS_FSTAT,
	unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MADVISE, unix.SYS_MINCORE, unix.SYS_BRK, unix.SYS_FUTEX, unix.SYS_MEMBARRIER,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK, unix.SYS_RESTART_SYSCALL,
	unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME,
	unix.SYS_CLOCK_GETRES, unix.SYS_GETTIMEOFDAY, unix.SYS_GETCPU, unix.SYS_GETPID, unix.SYS_GETPPID, unix.SYS_GETTID,
	unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID, unix.SYS_GETRUSAGE, unix.SYS_GETRANDOM, unix.SYS_UNAME, unix.SYS_SYSINFO,
	unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2, unix.SYS_PPOLL,
	unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
}

// loading are calls needed to open files, and to install the next filter.
var loading = []uintptr{unix.SYS_SECCOMP, unix.SYS_GETDENTS64, unix.SYS_READLINKAT, unix.SYS_STATX,
	unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2, unix.SYS_FSTATFS}

// allowed returns the allowed calls of a stage.
func allowed(s Stage) (list []call) {
	numbers, names := slices.Concat(harmless, harmlessHere), []uint32{unix.PR_SET_NAME, unix.PR_SET_VMA}
	if s == Load {
		numbers = slices.Concat(numbers, loading, loadingHere)
		names = append(names, unix.PR_SET_NO_NEW_PRIVS, unix.PR_SET_DUMPABLE)
		const inert = unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_NOFOLLOW | unix.O_DIRECTORY | unix.O_LARGEFILE | largeFile
		list = append(list, call{unix.SYS_OPENAT, 2, ^uint32(inert), []uint32{unix.O_RDONLY}})
	}
	for _, n := range numbers {
		list = append(list, call{number: n})
	}
	return append(list,
		call{unix.SYS_MMAP, 2, unix.PROT_EXEC, []uint32{0}},
		call{unix.SYS_MPROTECT, 2, unix.PROT_EXEC, []uint32{0}},
		call{unix.SYS_CLONE, 0, unix.CLONE_THREAD, []uint32{unix.CLONE_THREAD}},
		call{unix.SYS_TGKILL, 0, ^uint32(0), []uint32{uint32(os.Getpid())}},
		call{unix.SYS_PRCTL, 0, ^uint32(0), names},
		call{unix.SYS_FCNTL, 1, ^uint32(0), []uint32{unix.F_DUPFD_CLOEXEC, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL,
			unix.F_GET_SEALS}},
	)
}

// Offsets in struct seccomp_data, the input of a filter.
const (
	numberAt  = 0
	machineAt = 4
	argsAt    = 16 // of 8 bytes each, the low half first
)

func load(at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
}

// unlessEqual jumps over n instructions unless the accumulator is k.
func unlessEqual(k uint32, n int) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: uint8(n), K: k}
}

func verdict(k uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k}
}

const refused = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)

// program returns the filter for a table: other calls fail with EPERM, clone3 with ENOSYS, so that
// the C library falls back to clone. Calls of another architecture end the process.
func program(table []call) []unix.SockFilter {
	list := []unix.SockFilter{
		load(machineAt),
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: machine},
		verdict(unix.SECCOMP_RET_KILL_PROCESS),
		load(numberAt),
	}
	list = append(list, unlessEqual(unix.SYS_CLONE3, 1), verdict(unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS)))
	for _, c := range table {
		body := c.body()
		list = append(append(list, unlessEqual(uint32(c.number), len(body))), body...)
	}
	return append(list, verdict(refused))
}

// body returns the filter instructions for a call after its number matched.
func (c *call) body() []unix.SockFilter {
	if c.mask == 0 {
		return []unix.SockFilter{verdict(unix.SECCOMP_RET_ALLOW)}
	}
	list := []unix.SockFilter{load(argsAt + 8*c.arg), {Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: c.mask}}
	for _, v := range c.values {
		list = append(list, unlessEqual(v, 1), verdict(unix.SECCOMP_RET_ALLOW))
	}
	return append(list, verdict(refused))
}

// Filter restricts the system calls of all threads of the process, which can no longer gain
// privileges. Apply the filter of Load before that of Serve.
func Filter(s Stage) Layer {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return Layer{seccomp, err}
	}
	list := program(allowed(s))
	p := unix.SockFprog{Len: uint16(len(list)), Filter: &list[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&p)))
	switch {
	case errno != 0:
		return Layer{seccomp, fmt.Errorf("the kernel rejected the filter: %w", errno)}
	case thread != 0:
		return Layer{seccomp, fmt.Errorf("thread %d has another filter", thread)}
	}
	return Layer{seccomp, nil}
}

// seccompAvailable checks for an action that filters use.
func seccompAvailable() error {
	action := uint32(unix.SECCOMP_RET_KILL_PROCESS)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	if errno != 0 {
		return fmt.Errorf("the kernel does not support filters: %w", errno)
	}
	return nil
}
