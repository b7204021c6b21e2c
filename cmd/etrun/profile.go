package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/layernames"
	"github.com/etrun-go/etrun/cmd/etrun/internal/profile"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/cmd/etrun/internal/stats"
	"github.com/etrun-go/etrun/internal/duration"
)

// profileCommand shows the time of runs by operator.
type profileCommand struct {
	*app
	session.Options
	profileFlags
	calls  session.Calls
	repeat int
	by     string
	names  layernames.Names
}

const profileHelp = `Run a program several times and show the time of each operator, with the nodes of each
delegate below it, or of each instruction. Times are medians and maxima over the runs
after the first; repeated executions in one run are added up. Shares add up to 100 %,
those of nodes to the share of their delegate. Instructions and nodes have the types and
sizes of their results, and the module of the model that they come from: from the
ETRecord of the export (--etrecord), else the line of the model's source, if the file
has stack traces. Profiling has a cost, so a run takes a
little longer than in bench. An interrupt ends the runs: the profile so far is shown
and written, if the first run has not ended, of what it has executed.
`

func newProfile(a *app) *cobra.Command {
	p := &profileCommand{app: a, Options: session.Options{Say: a.Note}}
	c := &cobra.Command{
		Use:   "profile MODEL.pte",
		Short: "Show the time of each operator or instruction",
		Long:  profileHelp,
		Example: "  etrun profile model.pte\n  etrun profile model.pte --by instruction --repeat 200\n" +
			"  etrun profile model.pte --by instruction --etrecord etrecord.bin --lower off\n" +
			"  etrun profile model.pte --trace trace.json --flame model.svg\n" +
			"  etrun profile model.pte --json | jq '.methods[].operators[0]'",
		Args:              cli.OneModel,
		ValidArgsFunction: cli.CompleteModel,
		RunE:              func(c *cobra.Command, args []string) error { return p.run(c.Context(), args[0]) },
	}
	flags := c.Flags()
	flags.StringVar(&p.by, "by", "operator", "table `ROWS`: operator or instruction")
	flags.IntVar(&p.repeat, "repeat", 30, "run the calls `N` times after the first, each from the initial state")
	p.names.AddFlag(flags)
	p.addFiles(flags)
	p.calls.AddFlags(flags)
	p.AddFlags(flags)
	return c
}

func (p *profileCommand) run(ctx context.Context, path string) error {
	if err := checkRepeat(p.repeat); err != nil {
		return err
	}
	if p.by != "operator" && p.by != "instruction" {
		return session.Usage("--by %q, want one of operator, instruction", p.by)
	}
	if err := p.LeaveStdout(p.paths[:]...); err != nil {
		return err
	}
	if err := p.showValues(&p.Options); err != nil {
		return err
	}
	p.table = true // turns the observer on
	s, err := session.Open(ctx, path, &p.Options, p.options()...)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := p.names.Read(ctx, s, &p.App); err != nil {
		return err
	}
	if err := s.Prepare(ctx, p.calls); err != nil {
		return err
	}
	defer p.close()
	if err := p.create(ctx); err != nil {
		return err
	}
	first, err := p.runs(ctx, s)
	if err != nil && !cli.Cancelled(err) {
		return err
	}
	p.table = false // write prints the table of run only
	return errors.Join(err, p.write(p.app), p.report(s, first, err != nil))
}

// runs runs the calls, and returns the time of the first run.
func (p *profileCommand) runs(ctx context.Context, s *session.Session) (time.Duration, error) {
	begun := time.Now()
	first, err := s.Time(ctx)
	if err != nil {
		return time.Since(begun), err
	}
	p.firstRunEnded()
	for i := range p.repeat {
		p.Progress.Say("run %d of %d", i+1, p.repeat)
		if _, err := s.Time(ctx); err != nil {
			return first, err
		}
	}
	return first, nil
}

// profileReport is the JSON object of profile.
type profileReport struct {
	Schema  string          `json:"schema"`
	Model   string          `json:"model"`
	Threads int             `json:"threads"`
	LoadMS  float64         `json:"load_ms"`
	FirstMS float64         `json:"first_run_ms"`
	Methods []methodProfile `json:"methods"`
	// By a signal or the time limit; a method with 0 runs shows what its incomplete first run has executed.
	Interrupted bool `json:"interrupted,omitempty"`
}

type methodProfile struct {
	Method       string       `json:"method"`
	Runs         int          `json:"runs"`
	MedianMS     float64      `json:"median_ms"`
	MaxMS        float64      `json:"max_ms"`
	Operators    []profileRow `json:"operators"`
	Instructions []profileRow `json:"instructions"`
}

type profileRow struct {
	Kind     string       `json:"kind"`
	Name     string       `json:"name"`
	At       string       `json:"at,omitempty"`     // instruction, chain:instruction, or node N
	Layer    string       `json:"layer,omitempty"`  // module of the model, or the line of its source
	Result   string       `json:"result,omitempty"` // types and sizes of results, at the declared sizes
	Calls    int          `json:"calls"`
	MedianMS float64      `json:"median_ms"`
	MaxMS    float64      `json:"max_ms"`
	Share    float64      `json:"share"`
	Parts    []profileRow `json:"parts,omitempty"`
}

func (p *profileCommand) report(s *session.Session, first time.Duration, interrupted bool) error {
	profiles := p.profiles()
	for _, m := range profiles {
		p.names.AddTo(m, s)
	}
	if p.JSON {
		r := profileReport{"etrun.profile/1", s.Path, s.Threads(), stats.MS(s.Loaded), stats.MS(first), []methodProfile{}, interrupted}
		for _, m := range profiles {
			r.Methods = append(r.Methods, methodProfile{m.Method, m.Runs, stats.MS(m.Median), stats.MS(m.Max),
				profileRows(m.ByOperator()), profileRows(m.Rows)})
		}
		return p.WriteJSON(r)
	}
	fmt.Fprintf(p.Out, "load %s, first run %s, %s\n", duration.Format(s.Loaded), duration.Format(first),
		cli.Count(s.Threads(), "thread", "threads"))
	for _, m := range profiles {
		rows := m.Rows
		if p.by == "operator" {
			rows = m.ByOperator()
		}
		if err := m.WriteTable(p.Out, rows, cli.Printable); err != nil {
			return err
		}
	}
	return nil
}

func profileRows(rows []profile.Row) []profileRow {
	list := slices.Grow([]profileRow{}, len(rows))
	for i := range rows {
		r := &rows[i]
		list = append(list, profileRow{r.Kind, r.Name, r.Place(), r.Layer, r.Result, r.Calls, stats.MS(r.Median), stats.MS(r.Max), r.Share, nil})
		if len(r.Parts) > 0 {
			list[i].Parts = profileRows(r.Parts)
		}
	}
	return list
}
