//go:build linux && (amd64 || arm64)

package sandbox

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// numbers are numbers of system calls, and the architecture's value in seccomp_data, from the
// kernel's tables (asm/unistd.h, linux/audit.h).
var numbers = map[string]map[string]uint32{
	"amd64": {"machine": 0xc000003e, "read": 0, "write": 1, "close": 3, "mmap": 9, "mprotect": 10, "socket": 41, "connect": 42, "clone": 56,
		"fork": 57, "execve": 59, "kill": 62, "ptrace": 101, "futex": 202, "exit_group": 231, "tgkill": 234, "openat": 257, "unlinkat": 263, "execveat": 322,
		"clone3": 435, "io_uring_setup": 425, "epoll_pwait": 281, "fstatat": 262},
	"arm64": {"machine": 0xc00000b7, "read": 63, "write": 64, "close": 57, "mmap": 222, "mprotect": 226, "socket": 198, "connect": 203, "clone": 220,
		"execve": 221, "kill": 129, "ptrace": 117, "futex": 98, "exit_group": 94, "tgkill": 131, "openat": 56, "unlinkat": 35, "execveat": 281,
		"clone3": 435, "io_uring_setup": 425, "epoll_pwait": 22, "fstatat": 79},
}

// evaluate runs a filter as the kernel does. It supports the instructions that program uses.
func evaluate(t *testing.T, list []unix.SockFilter, data map[uint32]uint32) uint32 {
	t.Helper()
	a := uint32(0)
	for pc := 0; pc < len(list); pc++ {
		switch f := list[pc]; f.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			a = data[f.K]
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			a &= f.K
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			if a == f.K {
				pc += int(f.Jt)
			} else {
				pc += int(f.Jf)
			}
		case unix.BPF_RET | unix.BPF_K:
			return f.K
		default:
			t.Fatalf("instruction %d has the unknown code %#x", pc, f.Code)
		}
	}
	t.Fatal("no verdict")
	return 0
}

// TestFilterNumbers evaluates the filters for system calls by the kernel's numbers, also on
// machines that cannot install filters, such as user-mode emulators.
func TestFilterNumbers(t *testing.T) {
	number := numbers[runtime.GOARCH]
	const allow, both = unix.SECCOMP_RET_ALLOW, ""
	self, thread := uint32(os.Getpid()), uint32(unix.CLONE_THREAD)
	for _, c := range []struct {
		name  string
		stage string // both if empty
		args  map[uint32]uint32
		want  uint32
	}{
		{"read", both, nil, allow}, {"write", both, nil, allow}, {"close", both, nil, allow}, {"futex", both, nil, allow},
		{"exit_group", both, nil, allow}, {"epoll_pwait", both, nil, allow},
		{"socket", both, nil, refused}, {"connect", both, nil, refused}, {"execve", both, nil, refused}, {"execveat", both, nil, refused},
		{"fork", both, nil, refused}, {"kill", both, nil, refused}, {"ptrace", both, nil, refused}, {"unlinkat", both, nil, refused},
		{"io_uring_setup", both, nil, refused}, {"clone3", both, nil, unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{"mmap", both, map[uint32]uint32{2: unix.PROT_READ | unix.PROT_WRITE}, allow},
		{"mmap", "serve", map[uint32]uint32{2: unix.PROT_READ | unix.PROT_EXEC}, refused},
		{"mprotect", "serve", map[uint32]uint32{2: unix.PROT_EXEC}, refused},
		{"clone", both, map[uint32]uint32{0: thread | unix.CLONE_VM}, allow}, {"clone", both, map[uint32]uint32{0: unix.CLONE_VM}, refused},
		{"tgkill", both, map[uint32]uint32{0: self}, allow}, {"tgkill", both, map[uint32]uint32{0: self + 1}, refused},
		{"openat", "load", map[uint32]uint32{2: unix.O_RDONLY | unix.O_CLOEXEC}, allow}, {"openat", "load", map[uint32]uint32{2: unix.O_RDWR}, refused},
		{"openat", "load", map[uint32]uint32{2: unix.O_CREAT}, refused}, {"openat", "serve", nil, refused},
		{"fstatat", "load", nil, allow}, {"fstatat", "serve", nil, refused},
	} {
		n, ok := number[c.name]
		if !ok {
			continue // not a system call of this architecture
		}
		data := map[uint32]uint32{numberAt: n, machineAt: number["machine"]}
		for i, v := range c.args {
			data[argsAt+8*i] = v
		}
		for stage, s := range map[string]Stage{"load": Load, "serve": Serve} {
			if c.stage != both && c.stage != stage {
				continue
			}
			if got := evaluate(t, program(allowed(s)), data); got != c.want {
				t.Errorf("%s %v at stage %s: %#x, want %#x", c.name, c.args, stage, got, c.want)
			}
		}
	}
	foreign := map[uint32]uint32{numberAt: number["read"], machineAt: number["machine"] ^ 1}
	if got := evaluate(t, program(allowed(Serve)), foreign); got != unix.SECCOMP_RET_KILL_PROCESS {
		t.Errorf("a call of another architecture: %#x, want the end of the process", got)
	}
}
