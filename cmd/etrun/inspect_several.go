package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/internal/advice"
)

// programsReport is the JSON object of inspect for several files.
type programsReport struct {
	Schema string          `json:"schema"`
	Exit   int             `json:"exit"`
	Files  []inspectedFile `json:"files"`
}

// inspectedFile is the result for one of several files: a program, or why it could not be read.
type inspectedFile struct {
	Model   string         `json:"model"`
	Exit    int            `json:"exit"`              // this file's own exit code
	Program *programReport `json:"program,omitempty"` // as for one file
	Error   *failure       `json:"error,omitempty"`   // as of a command that fails

	err error
}

// inspection is an inspect command.
type inspection struct {
	*app
	options      *session.Options
	lowered, all bool
	weight       savedWeight
}

// one inspects a single file.
func (i *inspection) one(ctx context.Context, path string) error {
	report, err := i.inspect(ctx, path)
	switch {
	case err != nil:
		return err
	case i.JSON:
		return i.WriteJSON(report)
	}
	return report.print(i.Out, i.all)
}

func (i *inspection) inspect(ctx context.Context, path string) (*programReport, error) {
	report, err := inspect(ctx, i.options, path)
	if err == nil && !i.lowered {
		report.omitInstructions()
	}
	return report, err
}

// several inspects files one after the other. The error it returns has the worst class.
func (i *inspection) several(ctx context.Context, paths []string) error {
	report := &programsReport{Schema: "etrun.inspect.files/1"}
	var errs []error
	for k, path := range paths {
		f, err := i.file(ctx, path)
		if err == nil && !i.JSON {
			err = i.print(f, k)
		}
		if err != nil {
			return err
		}
		report.Files, errs = append(report.Files, *f), append(errs, f.err)
	}
	n, err := worst(errs)
	if n > 0 {
		err = fmt.Errorf("%w: %d of %s", err, n, cli.Count(len(paths), "file", "files"))
	}
	if report.Exit = exitOf(err).code; i.JSON {
		return errors.Join(i.WriteJSON(report), err)
	}
	return err
}

// file inspects one of several files. Its error ends the command.
func (i *inspection) file(ctx context.Context, path string) (*inspectedFile, error) {
	f := &inspectedFile{Model: path}
	f.Program, f.err = i.inspect(ctx, path)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if errors.Is(f.err, session.ErrUsage) {
		return nil, f.err
	}
	end := exitOf(f.err)
	if f.Exit = end.code; f.err != nil {
		f.Error = &failure{Schema: "etrun.error/1", Class: end.name, Exit: end.code, Message: advice.Command(f.err.Error())}
	}
	return f, nil
}

// print writes the part of a file.
func (i *inspection) print(f *inspectedFile, k int) error {
	if k > 0 {
		fmt.Fprintln(i.Out)
	}
	if f.err == nil {
		return f.Program.print(i.Out, i.all)
	}
	_, err := fmt.Fprintf(i.Out, "%s: cannot be inspected: %s\n", cli.Printable(f.Model), cli.Escaped(f.Error.Message))
	return err
}
