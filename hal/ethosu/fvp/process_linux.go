package fvp

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

const supported = true

// ownGroup puts a program and its children in a separate process group.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// awaitEnd waits for a program's end without reaping it, so that its PID and process group remain
// reserved.
func awaitEnd(cmd *exec.Cmd) {
	for unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}

// killGroup kills a program that has not been reaped, and its children.
func killGroup(cmd *exec.Cmd) { _ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
