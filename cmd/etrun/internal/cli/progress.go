package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// progress is a status line on a terminal with the elapsed time. It appears after a
// second, and disappears when other output is written.
type progress struct {
	mu    sync.Mutex
	w     io.Writer // terminal
	begun time.Time
	what  string        // current activity, empty to show nothing
	total time.Duration // of the activity, since begun; 0 if it is not known
	shown bool
	stop  chan struct{}
	ended chan struct{}
}

// clearLine moves to the start of the line and clears it.
const clearLine = "\r\x1b[K"

// newProgress starts the status line after a delay, and updates it periodically.
func newProgress(w io.Writer, after, every time.Duration) *progress {
	p := &progress{w: w, begun: time.Now(), what: "working", stop: make(chan struct{}), ended: make(chan struct{})}
	go p.run(after, every)
	return p
}

// run shows the line periodically until the end.
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
	if p.what == "" {
		return
	}
	p.shown = true
	took, of := time.Since(p.begun), ""
	if p.total > 0 { // a last run may take longer
		took, of = min(took, p.total), fmt.Sprintf(" of %v", p.total)
	}
	fmt.Fprintf(p.w, "%setrun: %s, %v%s", clearLine, p.what, took.Truncate(time.Second), of)
}

// Say sets the current activity.
func (p *progress) Say(format string, args ...any) {
	p.set(0, format, args...)
}

// During sets an activity that begins now and takes a known time.
func (p *progress) During(total time.Duration, format string, args ...any) {
	p.set(total, format, args...)
}

func (p *progress) set(total time.Duration, format string, args ...any) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if total > 0 || p.total > 0 {
		p.begun = time.Now()
	}
	p.what, p.total = fmt.Sprintf(format, args...), total
}

// Pause hides the line until the next say, because the terminal is used otherwise.
func (p *progress) Pause() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.what = ""
	p.clear()
}

// close removes the line.
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

// clear removes the line. mu is locked.
func (p *progress) clear() {
	if p.shown {
		io.WriteString(p.w, clearLine)
		p.shown = false
	}
}

// over returns w with the line removed before each write.
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

// isTerminal reports whether w is a terminal that can clear a line.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || os.Getenv("TERM") == "" {
		return false
	}
	return onTerminal(f)
}
