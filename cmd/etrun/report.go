package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/graph"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/page"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
)

// reportCommand writes a page about a program.
type reportCommand struct {
	*app
	session.Options
	profileFlags
	calls   session.Calls
	path    string
	run     bool
	lowered bool
	repeat  int
}

// addRun adds the flags of runs, and which form of the program is drawn.
func (r *reportCommand) addRun(flags *pflag.FlagSet, run string) {
	flags.BoolVar(&r.run, "run", false, run)
	flags.BoolVar(&r.lowered, "lowered", false, "show the program as it runs here, after lowering (implied by --run and --lower), instead of as it is in the file")
	flags.IntVar(&r.repeat, "repeat", 30, "run the calls `N` times after the first, each from the initial state")
	r.calls.AddFlags(flags)
	r.AddFlags(flags)
}

// inFile is the form of a program that nothing has changed.
const inFile = "as in the file"

// form chooses what is drawn: the program of the file, or what runs. It returns the words for it.
func (r *reportCommand) form() string {
	if !r.lowered && !r.run {
		r.AsInFile()
		r.Unfused = r.Lower == string(etrun.LowerOff)
	}
	if r.Lower == string(etrun.LowerOff) {
		return inFile
	}
	return fmt.Sprintf("as it runs here, lowered at load (%s)", r.Lower)
}

const reportHelp = `Write one HTML page about a program: the graph that etrun view shows, its memory over
time, its weights by size and, with --run or inputs, a profile of its runs. The page
works offline. It shows the program as it is in the file, with --lowered or --run as it
runs here. A method that does not load here is shown as it is in the file.
`

func newReport(a *app) *cobra.Command {
	r := &reportCommand{app: a, Options: session.Options{Say: a.Note, Constants: true}}
	c := &cobra.Command{
		Use:   "report MODEL.pte",
		Short: "Write an HTML page about a program",
		Long:  reportHelp,
		Example: "  etrun report model.pte\n  etrun report model.pte --run -o page.html\n" +
			"  etrun report model.pte -i x.npy --repeat 100",
		Args:              cli.OneModel,
		ValidArgsFunction: cli.CompleteModel,
		RunE: func(c *cobra.Command, args []string) error {
			for _, flag := range []string{"input", "next", "method", "repeat"} {
				r.run = r.run || c.Flags().Changed(flag)
			}
			return r.make(c.Context(), args[0])
		},
	}
	flags := c.Flags()
	flags.StringVarP(&r.path, "output", "o", "", "write the page to `FILE`.html (default: the model's name, in the current folder)")
	r.addRun(flags, "run the program and show its profile (implied by inputs)")
	return c
}

// pageReport is the JSON object of report.
type pageReport struct {
	Schema  string       `json:"schema"`
	Model   string       `json:"model"`
	Page    string       `json:"page"`
	Methods []pageMethod `json:"methods"`
}

type pageMethod struct {
	Name         string `json:"name"`
	Instructions int    `json:"instructions"`
	Nodes        int    `json:"nodes"`
	Runs         int    `json:"runs"`
	LoadError    string `json:"load_error,omitempty"`
}

func (r *reportCommand) make(ctx context.Context, path string) error {
	if err := checkRepeat(r.repeat); err != nil {
		return err
	}
	place := cmp.Or(r.path, pageName(path))
	if err := r.LeaveStdout(place); err != nil {
		return err
	}
	r.table = r.run // turns the observer on
	form := r.form()
	s, err := session.Open(ctx, path, &r.Options, r.profileFlags.options()...)
	if err != nil {
		return err
	}
	defer s.Close()
	file, err := output.CreateFile(ctx, place)
	if err != nil {
		return err
	}
	defer file.Close()
	p, err := page.New(ctx, s.Program, path, version())
	if err != nil {
		return err
	}
	g, err := graph.New(ctx, s.Program, path, form != inFile)
	if err != nil {
		return err
	}
	if r.run {
		if err := r.time(ctx, s); err != nil {
			return err
		}
		p.Timed(r.profiles())
		g.Timed(r.profiles())
	} else {
		s.Warn()
	}
	g.Form, p.Facts = form, append(p.Facts, page.Fact{Name: "shown", Text: form})
	element, err := graph.Element([]*graph.Program{g}, false)
	if err != nil {
		return err
	}
	p.Graph = page.Markup(element)
	if err := file.Fill(p.Write); err != nil {
		return err
	}
	return r.writeSummary(p, path, place)
}

// pageName is the default file name of the page.
func pageName(model string) string {
	if model == output.Stdout {
		return "stdin.html"
	}
	name := filepath.Base(model)
	return strings.TrimSuffix(name, filepath.Ext(name)) + ".html"
}

// time runs the calls.
func (r *reportCommand) time(ctx context.Context, s *session.Session) error {
	if err := s.Prepare(ctx, r.calls); err != nil {
		return err
	}
	if _, err := s.Time(ctx); err != nil {
		return err
	}
	r.firstRunEnded()
	for i := range r.repeat {
		r.Progress.Say("run %d of %d", i+1, r.repeat)
		if _, err := s.Time(ctx); err != nil {
			return err
		}
	}
	return nil
}

// writeSummary reports the path of the page.
func (r *reportCommand) writeSummary(p *page.Page, model, place string) error {
	report := pageReport{Schema: "etrun.report/1", Model: model, Page: place, Methods: []pageMethod{}}
	for _, m := range p.Methods {
		entry := pageMethod{Name: m.Name, Instructions: m.Instructions, Nodes: m.Nodes, LoadError: m.Fault}
		if m.Profile != nil {
			entry.Runs = m.Profile.Runs
		}
		report.Methods = append(report.Methods, entry)
	}
	if r.JSON {
		return r.WriteJSON(report)
	}
	if place == output.Stdout {
		return nil
	}
	_, err := fmt.Fprintf(r.Out, "%s\n", place)
	return err
}
