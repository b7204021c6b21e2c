package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// progress is a line on a terminal that says how long a command has been at work. It is
// there while nothing else is written, from the second second on.
type progress struct {
	mu    sync.Mutex
	w     io.Writer // the terminal
	begun time.Time
	what  string // that is done
	shown bool
	stop  chan struct{}
	ended chan struct{}
}

// clearLine goes to the begin of a line and clears it.
const clearLine = "\r\x1b[K"

// newProgress begins a line; it is nil where nobody sees it.
func newProgress(w io.Writer, after, every time.Duration) *progress {
	p := &progress{w: w, begun: time.Now(), what: "working", stop: make(chan struct{}), ended: make(chan struct{})}
	go p.run(after, every)
	return p
}

// run shows the line again and again until the end.
func (p *progress) run(after, every time.Duration) {
	defer close(p.ended)
	for next := time.NewTimer(after); ; next.Reset(every) {
		select {
		case <-p.stop:
			next.Stop()
			return
		case <-next.C:
			p.show()
		}
	}
}

func (p *progress) show() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown = true
	fmt.Fprintf(p.w, "%setrun: %s, %d s", clearLine, p.what, int(time.Since(p.begun).Seconds()))
}

// say names what is done.
func (p *progress) say(format string, args ...any) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.what = fmt.Sprintf(format, args...)
}

// close takes the line away for good.
func (p *progress) close() {
	if p == nil {
		return
	}
	close(p.stop)
	<-p.ended
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

// clear takes the line away. The lock is held.
func (p *progress) clear() {
	if p.shown {
		io.WriteString(p.w, clearLine)
		p.shown = false
	}
}

// over is w with the line taken away before each write.
func (p *progress) over(w io.Writer) io.Writer {
	if p == nil {
		return w
	}
	return &overProgress{p, w}
}

type overProgress struct {
	p *progress
	w io.Writer
}

func (o *overProgress) Write(b []byte) (int, error) {
	o.p.mu.Lock()
	defer o.p.mu.Unlock()
	o.p.clear()
	return o.w.Write(b)
}

// isTerminal reports a terminal that can clear a line.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || os.Getenv("TERM") == "" {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
