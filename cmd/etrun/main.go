// Command etrun runs ExecuTorch programs and shows what is in them.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
)

func main() {
	signal.Ignore(syscall.SIGPIPE) // a reader that has gone is an error of the write: hidden files are still removed
	if runtime.GOMAXPROCS(0) < 2 {
		runtime.GOMAXPROCS(2) // with one, every hand-over between goroutines is a switch of threads
	}
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// results is standard output, which keeps its first fault: what is printed may be all
// that a run leaves.
type results struct {
	w   io.Writer
	err error
}

func (r *results) Write(b []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.w.Write(b)
	if err != nil {
		r.err = &output.Error{Err: err}
	}
	return n, r.err
}

// app is what every command gets: where its results go, and where people's text goes.
type app struct {
	in          io.Reader
	out, notes  io.Writer
	json        bool // results as one JSON object on out
	quiet       bool // no notes
	jsonWritten bool
	progress    *progress // nil where nobody sees it
}

// run executes one command line and returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var p *progress
	if isTerminal(stderr) && !hasFlag(args, "-q", "--quiet", "--quiet=true") {
		p = newProgress(stderr, time.Second, time.Second)
		defer p.close()
		stdout, stderr = p.over(stdout), p.over(stderr)
	}
	out := &results{w: stdout}
	a := &app{in: stdin, out: out, notes: stderr, progress: p}
	ctx, stop := interruptible()
	defer stop()
	root := newRoot(a)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(out)
	root.SetErr(stderr)
	addCompletion(root)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = out.err
	}
	if err == nil {
		return 0
	}
	e := exitOf(err)
	a.json = a.json || hasFlag(args, "--json", "--json=true")         // the fault may stand before the flag
	if !errors.Is(err, syscall.EPIPE) && !errors.Is(err, errUnlike) { // whoever closed the pipe has read enough
		fmt.Fprintf(stderr, "etrun: %v\n", err)
	}
	if a.json && !a.jsonWritten {
		_ = a.writeJSON(failure{Schema: "etrun.error/1", Class: e.name, Exit: e.code, Message: err.Error()})
	}
	return e.code
}

// hasFlag reports a flag among arguments of which not all may have been read.
func hasFlag(args []string, names ...string) bool {
	for _, arg := range args {
		if arg == "--" {
			return false
		}
		if slices.Contains(names, arg) {
			return true
		}
	}
	return false
}

// failure is the JSON object of a command that did not get to its own.
type failure struct {
	Schema  string `json:"schema"`
	Class   string `json:"class"`
	Exit    int    `json:"exit"`
	Message string `json:"message"`
}

// writeJSON writes the one object of --json.
func (a *app) writeJSON(v any) error {
	a.jsonWritten = true
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = a.out.Write(append(text, '\n'))
	return err
}

// note says something to people.
func (a *app) note(format string, args ...any) {
	if a.quiet {
		return
	}
	fmt.Fprintf(a.notes, "etrun: "+format+"\n", args...)
}

// noteOnce is note without what it has said before, for what two programs have in common.
func (a *app) noteOnce() func(format string, args ...any) {
	said := make(map[string]bool)
	return func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !said[text] {
			said[text] = true
			a.note("%s", text)
		}
	}
}

// leaveStdout sends the summary to stderr where one of the files is standard output.
func (a *app) leaveStdout(paths ...string) error {
	n := 0
	for _, path := range paths {
		if path == output.Stdout {
			n++
		}
	}
	switch {
	case n > 1:
		return session.Usage("%d files are to be written to standard output, want one", n)
	case n == 1 && a.json:
		return session.Usage("--json and a file are to be written to standard output, want one of them")
	case n == 1:
		a.out = a.notes
	}
	return nil
}

// interrupted is the cause of a context that a signal ended.
type interrupted struct{ signal os.Signal }

func (e interrupted) Error() string { return "ended by a signal: " + e.signal.String() }

// Unwrap makes it a context.Canceled.
func (e interrupted) Unwrap() error { return context.Canceled }

// interruptible is a context that the first interrupt cancels, with a cause that is
// context.Canceled. The second interrupt ends the process as usual.
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		select {
		case s := <-signals:
			cancel(interrupted{s})
			signal.Stop(signals)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}
