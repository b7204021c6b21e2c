package main

import (
	"context"
	"errors"
	"io/fs"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/evaluate"
	"github.com/etrun-go/etrun/cmd/etrun/internal/input"
	"github.com/etrun-go/etrun/cmd/etrun/internal/modules"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/repair"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/internal/openfile"
	"github.com/etrun-go/etrun/media/sound"
	"github.com/etrun-go/etrun/runtime/compile"
	"github.com/etrun-go/etrun/speech"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// exit is one exit code and its meaning.
type exit struct {
	code   int
	name   string // for --json
	help   string
	causes []error // matched with errors.Is
}

// exits lists the exit codes. An error has the code of the first row, in this order, that
// contains one of its causes; the last row is for all others.
var exits = []exit{
	{0, "ok", "done", nil},
	{8, "cancelled", "time limit reached, or interrupted", []error{context.Canceled, context.DeadlineExceeded}},
	{2, "usage", "wrong usage, or a file cannot be opened", []error{session.ErrUsage, input.ErrSpec, input.ErrFile, output.ErrTarget, output.ErrDecode,
		evaluate.ErrSamples, errFile, speech.ErrOption, sound.ErrFormat, sound.ErrUnsupported}},
	{9, "memory", "memory limit, or a file or picture above its limit", []error{etrun.ErrMemory, input.ErrMemory, openfile.ErrSize, sound.ErrSize}},
	{4, "missing", "operator, backend or external data missing", []error{etrun.ErrMissing, etrun.ErrUnsupported, delegate.ErrMissing, delegate.ErrUnsupported,
		tokenizer.ErrUnsupported, compile.ErrUnsupported}},
	{3, "model", "invalid or unsafe model, or tokenizer", []error{etrun.ErrFormat, delegate.ErrPayload, repair.ErrBeyond, modules.ErrRecord, tokenizer.ErrFormat}},
	{5, "input", "inputs do not fit the model", []error{etrun.ErrInput, input.ErrMismatch, tokenizer.ErrText, tokenizer.ErrToken}},
	{6, "differ", "results differ (verify, compare)", []error{cli.ErrDiffer}},
	{7, "device", "device failure", []error{etrun.ErrDevice}},
	{1, "failure", "any other failure at run time", nil},
}

// errFile is the class of all files that cannot be opened, to be read or written.
var errFile = errors.New("file cannot be opened")

func exitOf(err error) exit {
	if err == nil {
		return exits[0]
	}
	if isFileError(err) {
		err = errors.Join(err, errFile)
	}
	for _, e := range exits {
		for _, cause := range e.causes {
			if errors.Is(err, cause) {
				return e
			}
		}
	}
	return exits[len(exits)-1]
}

// isFileError reports whether a file that the user named cannot be opened. A failure to write an
// open output is a failure of the run.
func isFileError(err error) bool {
	if _, writing := errors.AsType[*output.Error](err); writing {
		return false
	}
	_, ok := errors.AsType[*fs.PathError](err)
	return ok
}
