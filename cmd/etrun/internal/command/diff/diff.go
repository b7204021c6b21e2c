// Package diff is the command diff, which shows the differences between two files.
package diff

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
)

const diffHelp = `Show the differences between two programs: methods, inputs and outputs, instructions
with operators and arguments, the memory plan, constants by name and value, and
delegates with the nodes and constants of their payloads. The programs do not run. As
with diff(1), the exit code is 0 if the programs are equal, and 1 if they differ.
`

// New returns the command.
func New(a *cli.App) *cobra.Command {
	d := &differ{App: a, Options: session.Options{Say: a.NoteOnce(), Static: true, Describe: true}}
	c := &cobra.Command{
		Use:               "diff A.pte B.pte",
		Short:             "Show the differences between two programs",
		Long:              diffHelp,
		Example:           "  etrun diff old.pte new.pte\n  etrun diff old.pte new.pte --json | jq '.differences[].section'",
		Args:              twoPrograms,
		ValidArgsFunction: cli.CompletePrograms,
		RunE:              func(c *cobra.Command, args []string) error { return d.run(c.Context(), args) },
	}
	d.AddFileFlags(c.Flags())
	cli.Hide(c.Flags(), "threads", "strict-plan", "qparams")
	return c
}

func twoPrograms(c *cobra.Command, args []string) error {
	if len(args) != 2 {
		return session.Usage("%s, want A.pte B.pte; see %s --help", cli.Count(len(args), "argument", "arguments"), c.CommandPath())
	}
	return nil
}

// differ collects differences.
type differ struct {
	*cli.App
	session.Options
	report report
	method string // current method, empty for the program
}

// report is the JSON object of diff.
type report struct {
	Schema      string       `json:"schema"`
	A           string       `json:"a"`
	B           string       `json:"b"`
	Same        bool         `json:"same"`
	Differences []difference `json:"differences"`
}

// difference is one item in two programs; an empty side means that it is missing there.
type difference struct {
	Section string `json:"section"`
	Method  string `json:"method,omitempty"`
	Item    string `json:"item"`
	A       string `json:"a,omitempty"`
	B       string `json:"b,omitempty"`
	Detail  string `json:"detail,omitempty"`
}

// Sections of a report, in order.
const (
	inFile         = "file"
	inMethods      = "methods"
	inInputs       = "inputs"
	inOutputs      = "outputs"
	inOperators    = "operators"
	inInstructions = "instructions"
	inPlan         = "plan"
	inConstants    = "constants"
	inDelegates    = "delegates"
)

func (d *differ) add(section, item, a, b, detail string) {
	d.report.Differences = append(d.report.Differences, difference{section, d.method, item, a, b, detail})
}

// texts adds a difference unless two texts are equal.
func (d *differ) texts(section, item, a, b string) {
	if a != b {
		d.add(section, item, a, b, "")
	}
}

func (d *differ) run(ctx context.Context, paths []string) error {
	d.report = report{Schema: "etrun.diff/1", A: paths[0], B: paths[1], Differences: []difference{}}
	var programs [2]*session.Session
	for i, path := range paths {
		s, err := session.Open(ctx, path, &d.Options)
		if err != nil {
			return err
		}
		defer s.Close()
		programs[i] = s
	}
	if err := d.programs(ctx, programs[0], programs[1]); err != nil {
		return err
	}
	d.report.Same = len(d.report.Differences) == 0
	if d.JSON {
		if err := d.WriteJSON(&d.report); err != nil {
			return err
		}
	} else {
		d.print()
	}
	if !d.report.Same {
		return cli.ErrUnlike
	}
	return nil
}

// programs compares the programs, then their methods by name.
func (d *differ) programs(ctx context.Context, a, b *session.Session) error {
	d.texts(inFile, "program version", fmt.Sprint(a.Spec().Version), fmt.Sprint(b.Spec().Version))
	d.texts(inFile, "bundled test cases", fmt.Sprint(session.CountCases(a.Bundle())), fmt.Sprint(session.CountCases(b.Bundle())))
	names := a.MethodNames()
	for _, name := range b.MethodNames() {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		inA, inB := slices.Contains(a.MethodNames(), name), slices.Contains(b.MethodNames(), name)
		if !inA || !inB {
			d.add(inMethods, name, there(inA), there(inB), "")
			continue
		}
		x, err := newMethodFacts(ctx, a, name, d.Note)
		if err != nil {
			return err
		}
		y, err := newMethodFacts(ctx, b, name, d.Note)
		if err != nil {
			x.close()
			return err
		}
		d.method = name
		d.methods(x, y)
		d.method = ""
		x.close()
		y.close()
	}
	return nil
}

func there(yes bool) string {
	if yes {
		return "present"
	}
	return ""
}

// print writes a heading for each section of a method, and one or two lines for each
// difference.
func (d *differ) print() {
	heading := ""
	for _, x := range d.report.Differences {
		text := x.Section
		if x.Method != "" {
			text = cli.Printable(x.Method) + ", " + x.Section
		}
		if text != heading {
			fmt.Fprintf(d.Out, "%s\n", text)
			heading = text
		}
		switch {
		case x.Detail != "":
			fmt.Fprintf(d.Out, "  %s: %s\n", cli.Printable(x.Item), x.Detail)
		case x.A == "":
			fmt.Fprintf(d.Out, "  + %s: %s\n", cli.Printable(x.Item), cli.Legible(x.B))
		case x.B == "":
			fmt.Fprintf(d.Out, "  - %s: %s\n", cli.Printable(x.Item), cli.Legible(x.A))
		default:
			fmt.Fprintf(d.Out, "  - %s: %s\n  + %s: %s\n", cli.Printable(x.Item), cli.Legible(x.A), cli.Printable(x.Item), cli.Legible(x.B))
		}
	}
}
