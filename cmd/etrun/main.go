// Command etrun runs ExecuTorch programs and inspects them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/daemon"
	"github.com/etrun-go/etrun/internal/advice"
)

func main() {
	signal.Ignore(syscall.SIGPIPE) // a closed pipe is a write error, so that temporary files are removed
	if runtime.GOMAXPROCS(0) < 2 {
		runtime.GOMAXPROCS(2) // with one, each handoff between goroutines switches threads
	}
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// app is the environment of commands, and what ends them.
type app struct {
	cli.App
	release context.CancelFunc // of the time limit; nil for none
	abandon func(cause error)  // ends the process
}

// run executes one command line and returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{App: cli.New(stdin, stdout, stderr, hasFlag(args, "-q", "--quiet", "--quiet=true"))}
	defer a.Close()
	a.Version = version()
	ctx, stop := interruptible()
	defer stop()
	a.abandon = func(cause error) {
		os.Exit(a.fail(args, fmt.Errorf("%w; a run that could not be interrupted was abandoned", cause)))
	}
	root := newRoot(a)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(a.Out)
	root.SetErr(a.Notes)
	addCompletion(root)
	if cli.Completes(args) {
		cli.CompleteFlags(root)
	}
	err := root.ExecuteContext(ctx)
	if a.release != nil {
		a.release()
	}
	if err == nil {
		err = a.WriteError()
	}
	if err == nil {
		return 0
	}
	return a.fail(args, err)
}

// fail reports an error and returns the exit code.
func (a *app) fail(args []string, err error) int {
	e, text := exitOf(err), advice.Command(err.Error())
	a.JSON = a.JSON || hasFlag(args, "--json", "--json=true")                                      // the error may precede the flag
	if !errors.Is(err, syscall.EPIPE) && !errors.Is(err, cli.ErrUnlike) && !daemon.IsLogged(err) { // the reader closed the pipe
		fmt.Fprintf(a.Notes, "etrun: %s\n", cli.Escaped(text))
	}
	if a.JSON && !a.Written {
		_ = a.WriteJSON(failure{Schema: "etrun.error/1", Class: e.name, Exit: e.code, Message: text})
	}
	return e.code
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

// release is set by the linker (-X main.release=…).
var release = ""

// version formats the build: release or revision, Go version and platform.
func version() string {
	name := release
	if info, ok := debug.ReadBuildInfo(); ok && name == "" {
		name = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				name = s.Value
			}
		}
	}
	if name == "" {
		name = "(devel)"
	}
	return fmt.Sprintf("etrun %s %s %s/%s", name, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
