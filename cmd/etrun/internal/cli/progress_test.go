//go:build unix

package cli

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/etrun-go/etrun/internal/await"
)

// locked is a buffer that is safe for concurrent use.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// The line appears after a delay, is removed before each write, and at the end.
func TestProgress(t *testing.T) {
	var terminal locked
	p := newProgress(&terminal, time.Millisecond, time.Millisecond)
	p.Say("run %d of 3", 2)
	await.True(t, "the line appears", func() bool { return strings.Contains(terminal.String(), "run 2 of 3, 0s") })
	fmt.Fprint(p.over(&terminal), "result\n")
	p.close()
	if text := terminal.String(); !strings.Contains(text, clearLine+"result\n") || strings.LastIndex(text, "run 2") > strings.LastIndex(text, clearLine) {
		t.Errorf("got %q", text)
	}
}

// An activity of a known time shows that, and begins when it is set.
func TestProgressTotal(t *testing.T) {
	var terminal locked
	p := newProgress(&terminal, time.Hour, time.Hour)
	defer p.close()
	p.begun = p.begun.Add(-time.Hour)
	p.During(6*time.Second, "%d clients", 2)
	p.show()
	p.begun = p.begun.Add(-3 * time.Second)
	p.show()
	p.begun = p.begun.Add(-time.Minute) // its last run takes longer
	p.show()
	p.Say("loading")
	p.show()
	want := "2 clients, 0s of 6s|2 clients, 3s of 6s|2 clients, 6s of 6s|loading, 0s"
	if got := strings.ReplaceAll(strings.TrimPrefix(terminal.String(), clearLine+"etrun: "), clearLine+"etrun: ", "|"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNoProgress(t *testing.T) {
	var p *progress
	p.Say("x")
	p.close()
	var b bytes.Buffer
	if p.over(&b) != &b || isTerminal(&b) {
		t.Error("a line for a buffer")
	}
	fast := newProgress(&b, time.Hour, time.Hour)
	fast.close()
	if b.Len() > 0 {
		t.Errorf("got %q", b.String())
	}
}

// isTerminal does not depend on the process's own standard error.
func TestIsTerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer master.Close()
	if !isTerminal(master) {
		t.Error("a pseudo-terminal is none")
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if isTerminal(null) {
		t.Error("/dev/null is one")
	}
	t.Setenv("TERM", "dumb")
	if isTerminal(master) {
		t.Error("a dumb terminal is one that clears lines")
	}
}
