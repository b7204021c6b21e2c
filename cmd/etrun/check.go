package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
)

// checkReport is the JSON object of check.
type checkReport struct {
	Schema string      `json:"schema"`
	Exit   int         `json:"exit"`
	Files  []fileCheck `json:"files"`
}

// fileCheck is what is to say of one program.
type fileCheck struct {
	Model     string    `json:"model"`
	Verdict   string    `json:"verdict"` // the name of the exit code that it would have alone
	Exit      int       `json:"exit"`
	Version   uint32    `json:"program_version"`
	Methods   int       `json:"methods"`
	Operators int       `json:"operators"` // different ones
	Delegates int       `json:"delegates"`
	Findings  []finding `json:"findings"`

	err error // the first that keeps the program from running
}

// finding is one thing that a program lacks, or that is wrong or odd with it. A note
// keeps no program from running.
type finding struct {
	Kind    string `json:"kind"` // operator, backend, data, load, model, plan, repair, stale type, or surplus
	Note    bool   `json:"note,omitempty"`
	Method  string `json:"method,omitempty"`
	Name    string `json:"name,omitempty"`
	Nearest string `json:"nearest,omitempty"` // that there is
	Calls   int    `json:"calls,omitempty"`
	First   string `json:"first,omitempty"` // place of the first call
	Text    string `json:"text"`
}

func newCheck(a *app) *cobra.Command {
	o := session.Options{Say: a.note, Static: true}
	c := &cobra.Command{
		Use:   "check FILE.pte…",
		Short: "Say what keeps programs from running here, all at once",
		Long: "Check programs without running them: operators, backends and external data that are missing, each with the nearest name\n" +
			"that there is, and whatever a load would refuse. Notes tell of what is put right at load: memory plans that let live\n" +
			"values overlap, memory orders that do not go together, stale types; and of data that nothing asks for.\n" +
			"The exit code is 0 where all programs run, 4 where something is missing, 3 where one is invalid.",
		Example: "  etrun check model.pte\n  etrun check model.pte --data weights.ptd\n" +
			"  etrun check *.pte --json | jq '.files[] | select(.exit != 0) | .model'",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return session.Usage("no arguments, want FILE.pte…; see %s --help", c.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: completePrograms,
		RunE:              func(c *cobra.Command, args []string) error { return a.check(c.Context(), &o, args) },
	}
	o.AddFileFlags(c.Flags())
	return c
}

// check reports on all files. Its error is of the class that is worst, in the order of
// verdicts.
func (a *app) check(ctx context.Context, o *session.Options, paths []string) error {
	report := &checkReport{Schema: "etrun.check/1"}
	for _, path := range paths {
		f, err := checkFile(ctx, o, path)
		if err != nil {
			return err
		}
		report.Files = append(report.Files, *f)
		if !a.json {
			f.print(a.out)
		}
	}
	err := verdict(report.Files)
	if err != nil {
		report.Exit = exitOf(err).code
	}
	if a.json {
		if err := a.writeJSON(report); err != nil {
			return err
		}
	}
	return err
}

// verdicts are the classes of faults, the worst first.
var verdicts = []error{errFile, etrun.ErrMemory, etrun.ErrFormat, etrun.ErrDevice, etrun.ErrMissing}

// verdict is nil where all programs run.
func verdict(files []fileCheck) error {
	for _, class := range verdicts {
		n := 0
		for i := range files {
			if err := files[i].err; err != nil && exitOf(err).code == exitOf(class).code {
				n++
			}
		}
		if n > 0 && len(files) == 1 {
			return fmt.Errorf("%s: %w", files[0].Model, class)
		}
		if n > 0 {
			return fmt.Errorf("%w: %d of %s", class, n, count(len(files), "file", "files"))
		}
	}
	for i := range files {
		if files[i].err != nil {
			return files[i].err
		}
	}
	return nil
}

// checkFile looks at one program. Its error is the end of the whole check.
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

// fail adds a finding that keeps the program from running.
func (f *fileCheck) fail(what finding, err error) {
	f.Findings = append(f.Findings, what)
	if f.err == nil || exitOf(f.err).code == exitOf(etrun.ErrMissing).code {
		f.err = err // an invalid program is worse than one that lacks something
	}
}
