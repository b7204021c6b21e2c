package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/spf13/cobra"
)

// checkReport is the JSON object of check.
type checkReport struct {
	Schema string      `json:"schema"`
	Exit   int         `json:"exit"`
	Files  []fileCheck `json:"files"`
}

// fileCheck is the result for one program.
type fileCheck struct {
	Model     string    `json:"model"`
	Verdict   string    `json:"verdict"` // name of this file's own exit code
	Exit      int       `json:"exit"`
	Version   uint32    `json:"program_version"`
	Methods   int       `json:"methods"`
	Operators int       `json:"operators"` // distinct
	Delegates int       `json:"delegates"`
	Findings  []finding `json:"findings"`

	err error // first error that prevents a run
}

// finding is something a program lacks, or a fault. A finding with Note set does not
// prevent a run.
type finding struct {
	Kind    string `json:"kind"` // operator, backend, data, load, model, language model, plan, repair, fault, stale type, or surplus
	Note    bool   `json:"note,omitempty"`
	Method  string `json:"method,omitempty"`
	Name    string `json:"name,omitempty"`
	Nearest string `json:"nearest,omitempty"` // nearest available name
	Calls   int    `json:"calls,omitempty"`
	First   string `json:"first,omitempty"` // location of the first call
	Text    string `json:"text"`
}

func newCheck(a *app) *cobra.Command {
	o := session.Options{Say: a.Note, Static: true, Describe: true}
	c := &cobra.Command{
		Use:   "check FILE.pte...",
		Short: "Report everything that keeps programs from running here",
		Long: "Check programs without running them. check lists missing operators, backends and external data, each with the nearest\n" +
			"available name, and every error of a load. Notes report what a load corrects (memory plans with overlapping live\n" +
			"values, faults of the exporter, stale types) and data that no program uses.\n" +
			"The exit code is 0 if all programs run, 4 if something is missing, 3 if a program is invalid.",
		Example: "  etrun check model.pte\n  etrun check model.pte --data weights.ptd\n" +
			"  etrun check *.pte --json | jq '.files[] | select(.exit != 0) | .model'",
		Args:              someFiles,
		ValidArgsFunction: cli.CompletePrograms,
		RunE:              func(c *cobra.Command, args []string) error { return a.check(c.Context(), &o, args) },
	}
	o.AddFileFlags(c.Flags())
	return c
}

// check checks all files. The error it returns has the worst class, in the order of
// verdicts.
func (a *app) check(ctx context.Context, o *session.Options, paths []string) error {
	report := &checkReport{Schema: "etrun.check/1"}
	for _, path := range paths {
		f, err := checkFile(ctx, o, path)
		if err != nil {
			return err
		}
		report.Files = append(report.Files, *f)
		if !a.JSON {
			f.print(a.Out)
		}
	}
	err := verdict(report.Files)
	if err != nil {
		report.Exit = exitOf(err).code
	}
	if a.JSON {
		if err := a.WriteJSON(report); err != nil {
			return err
		}
	}
	return err
}

// verdicts are the error classes, the worst first.
var verdicts = []error{errFile, etrun.ErrMemory, etrun.ErrFormat, etrun.ErrDevice, etrun.ErrMissing}

// verdict returns the worst error, nil if all programs run.
func verdict(files []fileCheck) error {
	errs := make([]error, len(files))
	for i := range files {
		errs[i] = files[i].err
	}
	n, class := worst(errs)
	switch {
	case n == 0:
		return class
	case len(files) == 1:
		return fmt.Errorf("%s does not run here: %w", files[0].Model, class)
	}
	return fmt.Errorf("%w: %d of %s", class, n, cli.Count(len(files), "file", "files"))
}

// worst returns how many errors are of the worst class, and that class; 0 and the first error if they have none of the classes.
func worst(errs []error) (n int, class error) {
	for _, class := range verdicts {
		for _, err := range errs {
			if err != nil && exitOf(err).code == exitOf(class).code {
				n++
			}
		}
		if n > 0 {
			return n, class
		}
	}
	at := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	if at < 0 {
		return 0, nil
	}
	return 0, errs[at]
}

// checkFile checks one program. An error ends the whole check.
func checkFile(ctx context.Context, o *session.Options, path string) (*fileCheck, error) {
	f := &fileCheck{Model: path, Findings: []finding{}}
	s, err := session.Open(ctx, path, o)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, session.ErrUsage):
		return nil, err
	case err != nil:
		f.fail(finding{Kind: "model", Text: err.Error()}, err)
	default:
		defer s.Close()
		if err := f.program(ctx, s); err != nil {
			return nil, err
		}
	}
	end := exitOf(f.err)
	f.Verdict, f.Exit = end.name, end.code
	return f, nil
}

// fail adds a finding that prevents a run.
func (f *fileCheck) fail(what finding, err error) {
	f.Findings = append(f.Findings, what)
	if f.err == nil || exitOf(f.err).code == exitOf(etrun.ErrMissing).code {
		f.err = err // an invalid program is worse than an incomplete one
	}
}

// someFiles accepts one program or more.
func someFiles(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return session.Usage("no arguments, want FILE.pte...; see %s --help", c.CommandPath())
	}
	return nil
}
