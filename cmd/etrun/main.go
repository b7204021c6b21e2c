// Command etrun runs ExecuTorch programs and inspects them.
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
	"github.com/etrun-go/etrun/internal/advice"
)

func main() {
	signal.Ignore(syscall.SIGPIPE) // a closed pipe is a write error, so that temporary files are removed
	if runtime.GOMAXPROCS(0) < 2 {
		runtime.GOMAXPROCS(2) // with one, each handoff between goroutines switches threads
	}
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// results is standard output. It keeps its first error: the printed results may be the
// only ones of a run.
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

// app is the environment of a command: its streams and the global flags.
type app struct {
	in          io.Reader
	out, notes  io.Writer
	json        bool // results as one JSON object on out
	quiet       bool // no notes
	jsonWritten bool
	release     context.CancelFunc // of the time limit; nil for none
	progress    *progress          // nil unless stderr is a terminal
	abandon     func(cause error)  // ends the process
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
	a.abandon = func(cause error) {
		os.Exit(a.fail(args, fmt.Errorf("%w; a run that could not be interrupted was abandoned", cause), stderr))
	}
	root := newRoot(a)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(out)
	root.SetErr(stderr)
	addCompletion(root)
	err := root.ExecuteContext(ctx)
	if a.release != nil {
		a.release()
	}
	if err == nil {
		err = out.err
	}
	if err == nil {
		return 0
	}
	return a.fail(args, err, stderr)
}

// fail reports an error and returns the exit code.
func (a *app) fail(args []string, err error, stderr io.Writer) int {
	e, text := exitOf(err), advice.Command(err.Error())
	a.json = a.json || hasFlag(args, "--json", "--json=true")         // the error may precede the flag
	if !errors.Is(err, syscall.EPIPE) && !errors.Is(err, errUnlike) { // the reader closed the pipe
		fmt.Fprintf(stderr, "etrun: %s\n", escaped(text))
	}
	if a.json && !a.jsonWritten {
		_ = a.writeJSON(failure{Schema: "etrun.error/1", Class: e.name, Exit: e.code, Message: text})
	}
	return e.code
}

// cancelled reports whether a signal or the time limit ended what returned err.
func cancelled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// hasFlag reports whether a flag is among arguments that may not have been parsed.
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

// failure is the JSON object of a command that failed before writing its own.
type failure struct {
	Schema  string `json:"schema"`
	Class   string `json:"class"`
	Exit    int    `json:"exit"`
	Message string `json:"message"`
}

// writeJSON writes the single object of --json.
func (a *app) writeJSON(v any) error {
	a.jsonWritten = true
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = a.out.Write(append(text, '\n'))
	return err
}

// note writes a message to stderr, unless --quiet is set.
func (a *app) note(format string, args ...any) {
	if a.quiet {
		return
	}
	fmt.Fprintf(a.notes, "etrun: %s\n", escaped(advice.Command(fmt.Sprintf(format, args...))))
}

// noteOnce returns a note that does not repeat messages, for facts that two programs share.
func (a *app) noteOnce() func(format string, args ...any) {
	said := make(map[string]bool)
	return func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !said[text] {
			said[text] = true
			a.note("%s", text)
		}
	}
}

// leaveStdout redirects the summary to stderr if one of the files is standard output.
func (a *app) leaveStdout(paths ...string) error {
	n := 0
	for _, path := range paths {
		if path == output.Stdout {
			n++
		}
	}
	switch {
	case n > 1:
		return session.Usage("%d outputs are set to standard output, want at most one", n)
	case n == 1 && a.json:
		return session.Usage("--json and an output both use standard output; choose one")
	case n == 1:
		a.out = a.notes
	}
	return nil
}

// interrupted is the cause of a context that a signal canceled.
type interrupted struct{ signal os.Signal }

func (e interrupted) Error() string { return "interrupted by a signal: " + e.signal.String() }

// Unwrap returns context.Canceled.
func (e interrupted) Unwrap() error { return context.Canceled }

// interruptible returns a context that the first interrupt cancels, with a cause that is
// context.Canceled. The second interrupt ends the process.
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
