package session

import (
	"errors"
	"fmt"
	"strings"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/internal/advice"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/text"
)

// ErrUsage is the class of command line errors; match with errors.Is.
var ErrUsage = errors.New("usage")

// Usage returns a command line error.
func Usage(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrUsage, fmt.Errorf(format, args...))
}

// WithHint returns an error in the words of the command line, with advice if there is any.
func WithHint(err error) error {
	text := advice.Command(err.Error())
	if _, ok := errors.AsType[*etrun.MemoryError](err); ok || errors.Is(err, delegate.ErrMemory) || tooLargeArena(err) {
		text += "; " + advice.Memory.Command()
	}
	if text == err.Error() {
		return err
	}
	return &worded{text, err}
}

// OfFlag returns the error of an option of package text as that of its flag.
func OfFlag(err error, flags map[string]string) error {
	e, ok := errors.AsType[*text.OptionError](err)
	if !ok || flags[e.Option] == "" {
		return err
	}
	return &worded{fmt.Sprintf("--%s: got %v, want %s", flags[e.Option], e.Got, e.Want), err}
}

// worded is an error in the words of the command line.
type worded struct {
	text string
	err  error
}

func (e *worded) Error() string { return e.text }

// Unwrap returns the error of the library.
func (e *worded) Unwrap() error { return e.err }

// tooLargeArena reports whether a file declares more planned memory than the limit, the one limit of
// the format that --max-memory raises.
func tooLargeArena(err error) bool {
	e, ok := errors.AsType[*pte.FormatError](err)
	return ok && e.Reason == pte.ErrLimit && strings.Contains(e.Path, ".non_const_buffer_sizes[")
}
