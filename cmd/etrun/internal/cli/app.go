// Package cli has what all commands share: streams, global flags, checks of arguments, and texts.
package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/etrun-go/etrun/cmd/etrun/internal/input"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/internal/advice"
)

// App is the environment of a command: its streams and the global flags.
type App struct {
	In         io.Reader
	Out, Notes io.Writer
	JSON       bool      // results as one JSON object on Out
	Quiet      bool      // no notes
	Written    bool      // the object of JSON
	Version    string    // of this build
	Progress   *progress // nil unless stderr is a terminal

	results *results // the first Out; nil in tests
}

// New returns the environment of a command line. The status line of a terminal is shown unless
// quiet is set, and ends with Close.
func New(in io.Reader, out, notes io.Writer, quiet bool) App {
	var p *progress
	if isTerminal(notes) && !quiet {
		p = newProgress(notes, time.Second, time.Second)
	}
	r := &results{w: p.over(out)}
	return App{In: in, Out: r, Notes: p.over(notes), Progress: p, results: r}
}

// Close removes the status line.
func (a *App) Close() { a.Progress.close() }

// WriteError returns the first error of standard output.
func (a *App) WriteError() error {
	if a.results == nil {
		return nil
	}
	return a.results.err
}

// ToTerminal reports whether out is a terminal.
func (a *App) ToTerminal() bool {
	if a.results == nil || a.Out != io.Writer(a.results) {
		return false
	}
	out := a.results.w
	if o, ok := out.(*overProgress); ok {
		out = o.w
	}
	f, ok := out.(*os.File)
	return ok && onTerminal(f)
}

// WriteJSON writes the single object of --json.
func (a *App) WriteJSON(v any) error {
	a.Written = true
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = a.Out.Write(append(text, '\n'))
	return err
}

// Note writes a message to stderr. With --quiet, it writes only that inputs are not complete.
func (a *App) Note(format string, args ...any) {
	if a.Quiet && format != input.WarnCut {
		return
	}
	fmt.Fprintf(a.Notes, "etrun: %s\n", Escaped(advice.Command(fmt.Sprintf(format, args...))))
}

// NoteOnce returns a note that does not repeat messages, for facts that two programs share.
func (a *App) NoteOnce() func(format string, args ...any) {
	said := make(map[string]bool)
	return func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !said[text] {
			said[text] = true
			a.Note(format, args...)
		}
	}
}

// LeaveStdout redirects the summary to stderr if one of the files is standard output.
func (a *App) LeaveStdout(paths ...string) error {
	n := 0
	for _, path := range paths {
		if path == output.Stdout {
			n++
		}
	}
	switch {
	case n > 1:
		return session.Usage("%d outputs are set to standard output, want at most one", n)
	case n == 1 && a.JSON:
		return session.Usage("--json and an output both use standard output; choose one")
	case n == 1:
		a.Out = a.Notes
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
