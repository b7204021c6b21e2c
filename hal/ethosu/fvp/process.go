package fvp

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// process is a running program controlled by lines of text, with its child processes.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines chan string   // lines accepted by keep
	ended chan struct{} // closed when the program has ended
	keep  func(line string) bool

	mu     sync.Mutex
	gone   bool // it has ended; its PID may be reused
	status error
	part   []byte   // of a line
	tail   []string // the last lines
}

const (
	maxLine   = 4096
	tailLines = 12
)

// start runs a program. keep selects the lines of its output for [process.line].
func start(path string, args []string, dir string, keep func(line string) bool) (*process, error) {
	if !supported {
		return nil, failure("start", ErrUnsupported, "Arm's models are for Linux")
	}
	p := &process{cmd: exec.Command(path, args...), lines: make(chan string, 64), ended: make(chan struct{}), keep: keep}
	p.cmd.Dir = dir
	p.cmd.Stdout, p.cmd.Stderr = p, p
	p.cmd.WaitDelay = time.Second // for output of children that are still running
	ownGroup(p.cmd)
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, failure("start", ErrMissing, "%v", err)
	}
	go p.watch()
	return p, nil
}

// watch waits for the program's end and kills its remaining children.
func (p *process) watch() {
	awaitEnd(p.cmd)
	p.mu.Lock()
	killGroup(p.cmd)
	p.gone = true
	p.mu.Unlock()
	err := p.cmd.Wait()
	p.mu.Lock()
	p.status = err
	p.mu.Unlock()
	close(p.ended)
}

// Write splits the program's output into lines.
func (p *process) Write(b []byte) (int, error) {
	for _, c := range b {
		if c != '\n' {
			p.part = append(p.part, c)
		}
		if c == '\n' || len(p.part) == maxLine {
			p.say(strings.TrimRight(string(p.part), "\r"))
			p.part = p.part[:0]
		}
	}
	return len(b), nil
}

func (p *process) say(line string) {
	p.mu.Lock()
	p.tail = append(p.tail[max(0, len(p.tail)-tailLines+1):], line)
	p.mu.Unlock()
	if p.keep(line) {
		select {
		case p.lines <- line:
		case <-p.ended:
		}
	}
}

// enter sends an empty line to the program.
func (p *process) enter() error {
	_, err := io.WriteString(p.stdin, "\n")
	return err
}

// line returns the next selected line. op names the operation for errors: the end of ctx, a
// timeout, or the end of the program.
func (p *process) line(ctx context.Context, op string, timeout <-chan time.Time) (string, error) {
	select {
	case s := <-p.lines:
		return s, nil
	case <-ctx.Done():
		return "", &Error{Op: op, Reason: context.Cause(ctx)}
	case <-timeout:
		return "", p.error(op, ErrTimeout, "")
	case <-p.ended:
	}
	select { // printed before the end
	case s := <-p.lines:
		return s, nil
	default:
		return "", p.error(op, ErrEnded, "%s", p.how())
	}
}

const endedWell = "exit status 0"

// how describes how the program ended.
func (p *process) how() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.status == nil {
		return endedWell
	}
	return p.status.Error()
}

func (p *process) error(op string, reason error, format string, args ...any) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &Error{Op: op, Reason: reason, Detail: fmt.Sprintf(format, args...), Output: strings.Join(p.tail, " | ")}
}

// alive reports whether the program is running.
func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// stop stops the program by closing its input, and kills it after grace.
func (p *process) stop(grace time.Duration) {
	_ = p.stdin.Close() // an error means that it has ended
	if grace > 0 {
		select {
		case <-p.ended:
		case <-time.After(grace):
		}
	}
	p.mu.Lock()
	if !p.gone {
		killGroup(p.cmd)
	}
	p.mu.Unlock()
	<-p.ended
}
