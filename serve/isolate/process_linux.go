//go:build linux && (amd64 || arm64)

package isolate

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/etrun-go/etrun/internal/sandbox"
)

// process is a started process.
type process struct {
	cmd    *exec.Cmd
	conn   net.Conn
	memory *os.File
	layers []sandbox.Layer
	ended  chan struct{} // closed after Wait
	err    error         // the result of Wait, after ended
	last   atomic.Pointer[string]
}

// executable is the running executable, even if its file was replaced.
const executable = "/proc/self/exe"

// environment lists the prefixes of the variables that a process inherits. Others may be secrets.
var environment = []string{"LD_LIBRARY_PATH=", "ETRUN_", "GO", "HOME=", "XDG_", "LANG=", "LC_"}

// readable and libraries are what loading a program reads in addition to its files.
var (
	readable = []string{"/proc", "/sys/devices/system", "/sys/kernel/mm/transparent_hugepage", "/sys/fs/cgroup", "/etc/ld.so.cache",
		"/dev/urandom", os.DevNull}
	code = []string{executable, "/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib"}
)

// startProcess starts a process.
func startProcess(o *Options) (p *process, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socketpair: %w", err)
	}
	near, far := os.NewFile(uintptr(pair[0]), "socket"), os.NewFile(uintptr(pair[1]), "socket")
	defer far.Close()
	defer near.Close()
	p = &process{ended: make(chan struct{})}
	if p.conn, err = net.FileConn(near); err != nil {
		return nil, err
	}
	if p.memory, err = newMemory(); err == nil {
		err = p.start(o, far)
	}
	if err != nil {
		_ = p.conn.Close()
		if p.memory != nil {
			_ = p.memory.Close()
		}
		return nil, err
	}
	return p, nil
}

// start confines a dedicated thread, which starts the process and waits for it. The process is
// killed when that thread ends, also if this process crashes.
func (p *process) start(o *Options, socket *os.File) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	said, stderr, err := os.Pipe()
	if err != nil {
		return err
	}
	defer stderr.Close()
	p.cmd = exec.Command(executable, o.Args...)
	p.cmd.Args[0] = "etrun"
	p.cmd.Env = inherited()
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = null, null, stderr
	p.cmd.ExtraFiles = append([]*os.File{socket, p.memory}, o.Files...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	files := sandbox.Files{Read: readable, Execute: append(append([]string{}, code...), o.Libraries...)}
	for _, f := range o.Files {
		files.Open = append(files.Open, f.Fd())
	}
	started, heard := make(chan error), make(chan struct{})
	go sandbox.OwnThread(func() {
		p.layers = sandbox.Thread(files)
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			select { // its last output contains the reason of its end
			case <-heard:
			case <-time.After(time.Second):
			}
		}
		close(p.ended)
	})
	if err := <-started; err != nil {
		_ = said.Close()
		return fmt.Errorf("starting a process for the model: %w", err)
	}
	go func() {
		defer close(heard)
		p.listen(o, said)
	}()
	return nil
}

func inherited() (list []string) {
	for _, variable := range os.Environ() {
		for _, prefix := range environment {
			if strings.HasPrefix(variable, prefix) {
				list = append(list, variable)
			}
		}
	}
	return list
}

// Bounds of the logged part of a process's standard error.
const (
	maxLine  = 1 << 10
	maxLines = 200
)

// listen logs the process's standard error.
func (p *process) listen(o *Options, said *os.File) {
	defer said.Close()
	r := bufio.NewReaderSize(said, maxLine)
	for n := 0; ; n++ {
		line, _, err := r.ReadLine()
		if err != nil {
			return
		}
		if n < maxLines && len(line) > 0 {
			text := string(line)
			p.last.CompareAndSwap(nil, &text) // the first line of a crash is the most useful
			o.Log.Warn("model process wrote to stderr", "pid", p.cmd.Process.Pid, "line", text)
		}
	}
}

// kill ends the process and waits.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

// ending describes how the process ended.
func (p *process) ending() string {
	text := "it exited"
	if p.err != nil {
		text = p.err.Error()
	}
	if line := p.last.Load(); line != nil {
		text += ": " + *line
	}
	return text
}
