package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/internal/advice"
)

// App is the environment of a command: its streams and the global flags.
type App struct {
	in          io.Reader
	out, notes  io.Writer
	json        bool // results as one JSON object on out
	quiet       bool // no notes
	jsonWritten bool
	version     string    // of this build
	progress    *progress // nil unless stderr is a terminal

	results *results // the first out; nil in tests
}

// newApp returns the environment of a command line. The status line of a terminal is shown unless
// quiet is set, and ends with close.
func newApp(in io.Reader, out, notes io.Writer, quiet bool) App {
	var p *progress
	if isTerminal(notes) && !quiet {
		p = newProgress(notes, time.Second, time.Second)
	}
	r := &results{w: p.over(out)}
	return App{in: in, out: r, notes: p.over(notes), progress: p, results: r}
}

// close removes the status line.
func (a *App) close() { a.progress.close() }

// writeError returns the first error of standard output.
func (a *App) writeError() error {
	if a.results == nil {
		return nil
	}
	return a.results.err
}

// toTerminal reports whether out is a terminal.
func (a *App) toTerminal() bool {
	if a.results == nil || a.out != io.Writer(a.results) {
		return false
	}
	out := a.results.w
	if o, ok := out.(*overProgress); ok {
		out = o.w
	}
	f, ok := out.(*os.File)
	return ok && onTerminal(f)
}

// writeJSON writes the single object of --json.
func (a *App) writeJSON(v any) error {
	a.jsonWritten = true
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = a.out.Write(append(text, '\n'))
	return err
}

// note writes a message to stderr, unless --quiet is set.
func (a *App) note(format string, args ...any) {
	if a.quiet {
		return
	}
	fmt.Fprintf(a.notes, "etrun: %s\n", escaped(advice.Command(fmt.Sprintf(format, args...))))
}

// noteOnce returns a note that does not repeat messages, for facts that two programs share.
func (a *App) noteOnce() func(format string, args ...any) {
	said := make(map[string]bool)
	return func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !said[text] {
			said[text] = true
			a.note("%s", text)
		}
	}
}

// leaveStdout redirects the summary to stderr if one of the files is standard output.
func (a *App) leaveStdout(paths ...string) error {
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
