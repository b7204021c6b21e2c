package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/graph"
	"github.com/etrun-go/etrun/cmd/etrun/internal/layers"
	"github.com/etrun-go/etrun/cmd/etrun/internal/loopback"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/page"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/spf13/cobra"
)

// viewCommand shows the graph of a program, or of two.
type viewCommand struct {
	reportCommand
	noOpen     bool
	difference bool
	shown      string             // the form of the programs
	kept       []*layers.Recorder // by program, with difference
	specs      []*pte.Program
}

const viewHelp = `Show the graph of a program in the browser: its dataflow with aliases joined, jumps,
the operations inside delegates, constants with their distribution, and the memory
plan. It is the program of the file; with --lowered the one that runs here, as lowering
made it. With --run or inputs that one runs, and nodes are coloured by time. Two programs
are shown side by side, with their differences marked. The page is served on this machine
only, until an interrupt; with -o it is written to a file that works offline.

With --difference both programs run on the same inputs, and the nodes whose values both
have are coloured by the largest difference.
`

func newView(a *app) *cobra.Command {
	v := &viewCommand{reportCommand: reportCommand{app: a, Options: session.Options{Say: a.Note, Constants: true}}}
	c := &cobra.Command{
		Use:   "view MODEL.pte [OTHER.pte]",
		Short: "Show the graph of a program in the browser",
		Long:  viewHelp,
		Example: "  etrun view model.pte\n  etrun view model.pte --run -o graph.html\n" +
			"  etrun view a.pte b.pte --difference",
		Args:              cli.OneOrTwo,
		ValidArgsFunction: cli.CompletePrograms,
		RunE: func(c *cobra.Command, args []string) error {
			for _, flag := range []string{"input", "next", "method", "repeat"} {
				v.run = v.run || c.Flags().Changed(flag)
			}
			return v.show(c.Context(), args)
		},
	}
	flags := c.Flags()
	flags.StringVarP(&v.path, "output", "o", "", "write the page to `FILE`.html instead of showing it")
	flags.BoolVar(&v.noOpen, "no-open", false, "print the address of the page without opening a browser")
	flags.BoolVar(&v.difference, "difference", false, "run two programs on the same inputs, and colour nodes by the difference of their results")
	v.addRun(flags, "run the program and show its times (implied by inputs)")
	return c
}

// viewReport is the JSON object of view.
type viewReport struct {
	Schema  string         `json:"schema"`
	Models  []string       `json:"models"`
	Page    string         `json:"page"`
	Methods []viewedMethod `json:"methods"`
}

// viewedMethod counts the nodes of a method's graph, those inside delegates included, and, in a comparison, those that differ.
type viewedMethod struct {
	Model     string `json:"model"`
	Name      string `json:"name"`
	Nodes     int    `json:"nodes"`
	Changed   int    `json:"changed"`
	OnlyHere  int    `json:"only_here"`
	LoadError string `json:"load_error,omitempty"`
}

func (v *viewCommand) show(ctx context.Context, paths []string) error {
	if err := checkRepeat(v.repeat); err != nil {
		return err
	}
	if v.JSON && v.path == "" {
		return session.Usage("--json: the page is shown until an interrupt; write it to a file with -o")
	}
	if v.difference && len(paths) != 2 {
		return session.Usage("--difference, want two programs")
	}
	if err := v.LeaveStdout(v.path); err != nil {
		return err
	}
	v.Values, v.run = v.difference, v.run && !v.difference
	v.shown = v.form()
	out := &page.View{Version: version()}
	var programs []*graph.Program
	for _, path := range paths {
		p, g, err := v.describe(ctx, path)
		if err != nil {
			return err
		}
		g.Form = v.shown
		out.Pages, programs = append(out.Pages, p), append(programs, g)
	}
	if len(programs) == 2 {
		graph.Compare(programs[0], programs[1])
	}
	if v.difference {
		v.differences(ctx, programs)
	}
	element, err := graph.Element(programs, true)
	if err != nil {
		return err
	}
	out.Graph = page.Markup(element)
	if v.path == "" {
		return v.serve(ctx, out)
	}
	if err := output.WriteFile(ctx, v.path, out.Write); err != nil {
		return err
	}
	return v.summary(paths, programs)
}

// describe opens one of the programs, runs it if that is requested, and describes it.
func (v *viewCommand) describe(ctx context.Context, path string) (*page.Page, *graph.Program, error) {
	v.profileFlags = profileFlags{table: v.run} // of this program
	options := v.profileFlags.options()
	if v.difference {
		v.kept = append(v.kept, &layers.Recorder{Limit: v.InputLimit()})
		options = append(options, etrun.WithObserver(v.kept[len(v.kept)-1]))
	}
	s, err := session.Open(ctx, path, &v.Options, options...)
	if err != nil {
		return nil, nil, err
	}
	defer s.Close()
	g, err := graph.New(ctx, s.Program, path, v.shown != inFile)
	if err != nil {
		return nil, nil, err
	}
	p, err := page.New(ctx, s.Program, path, version())
	if err != nil {
		return nil, nil, err
	}
	switch {
	case v.difference:
		v.specs = append(v.specs, s.Spec())
		return p, g, v.values(ctx, s)
	case !v.run:
		s.Warn()
		return p, g, nil
	}
	if err := v.time(ctx, s); err != nil {
		return nil, nil, err
	}
	g.Timed(v.profiles())
	return p, g, nil
}

// serve shows the page until ctx ends.
func (v *viewCommand) serve(ctx context.Context, p *page.View) error {
	var text bytes.Buffer
	if err := p.Write(&text); err != nil {
		return err
	}
	s, err := loopback.Listen(ctx, text.Bytes())
	if err != nil {
		return err
	}
	fmt.Fprintln(v.Out, s.URL)
	if !v.noOpen {
		if err := loopback.Open(s.URL); err != nil {
			v.Note("open the address in a browser: %v", err)
		}
	}
	v.Note("the page is shown until an interrupt (Ctrl+C)")
	return s.Serve(ctx)
}

// summary reports the file of the page.
func (v *viewCommand) summary(paths []string, programs []*graph.Program) error {
	r := viewReport{Schema: "etrun.view/1", Models: paths, Page: v.path, Methods: []viewedMethod{}}
	for i, p := range programs {
		for _, m := range p.Methods {
			changed, only := m.Marks()
			r.Methods = append(r.Methods, viewedMethod{paths[i], m.Name, len(m.Nodes), changed, only, m.Fault})
		}
	}
	if v.JSON {
		return v.WriteJSON(r)
	}
	if cmp.Or(v.path, output.Stdout) == output.Stdout {
		return nil
	}
	_, err := fmt.Fprintln(v.Out, strings.TrimSpace(v.path))
	return err
}

// values runs the calls once, for the values of all instructions.
func (v *viewCommand) values(ctx context.Context, s *session.Session) error {
	if err := s.Prepare(ctx, v.calls); err != nil {
		return err
	}
	if _, err := s.Time(ctx); err != nil {
		return err
	}
	return v.kept[len(v.kept)-1].Err()
}

// differences sets the numeric difference of the nodes whose values both programs have.
func (v *viewCommand) differences(ctx context.Context, programs []*graph.Program) {
	other := !layers.Same(v.specs[0], v.specs[1])
	pairs, traced := layers.Counterparts(ctx, v.kept[0], v.kept[1], other, other, kernels.Tolerance{Abs: 1e-3, Rel: 1e-3})
	if traced != nil {
		pairs = append(pairs, traced.Pairs(v.kept[1].List)...)
	}
	for _, p := range pairs {
		if p.A.Value.Kind != tensor.KindTensor || p.B.Value.Kind != tensor.KindTensor || ctx.Err() != nil {
			continue
		}
		d := p.Distance(kernels.Tolerance{})
		for i, w := range []*layers.Written{p.A, p.B} {
			programs[i].Differs(w.Method, w.Chain, w.Instruction, w.Node, float64(d.MaxAbs))
		}
	}
}
