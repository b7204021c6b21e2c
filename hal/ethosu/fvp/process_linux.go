package fvp

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

const supported = true

// ownGroup puts a program and its children in a process group of their own.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// awaitEnd waits for a program's end without collecting it, so that its number, and
// that of its group, stay its own.
func awaitEnd(cmd *exec.Cmd) {
	for unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}

// killGroup ends a program that has not been collected, and its children.
func killGroup(cmd *exec.Cmd) { _ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
