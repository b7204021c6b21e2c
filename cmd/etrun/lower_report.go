package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/repair"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/runtime/compile"
)

// lowerCommand writes programs with lowered parts.
type lowerCommand struct {
	*app
	session.Options
	calls     session.Calls
	output    string
	backend   string
	all       bool
	runtime   string
	verify    bool
	external  bool
	target    string
	tolerance kernels.Tolerance
}

// lowerReport is the JSON object of lower.
type lowerReport struct {
	Schema      string              `json:"schema"`
	Model       string              `json:"model"`
	Output      string              `json:"output"`
	Bytes       int                 `json:"bytes"` // of the model
	OutputBytes int                 `json:"output_bytes"`
	Data        string              `json:"data,omitempty"`       // the file of the constants
	DataBytes   int                 `json:"data_bytes,omitempty"` // of it
	Repairs     []repair.Change     `json:"repairs,omitempty"`    // of faults of the exporter
	Methods     []lowerMethodReport `json:"methods"`
	Verified    *verifiedReport     `json:"verified,omitempty"`
}

// lowerMethodReport is the outcome of a method.
type lowerMethodReport struct {
	Method             string         `json:"method"`
	Unchanged          string         `json:"unchanged,omitempty"` // why the method is unchanged
	PlannedBytes       int64          `json:"planned_bytes"`       // of the model
	OutputPlannedBytes int64          `json:"output_planned_bytes"`
	Regions            []regionReport `json:"regions,omitempty"`
	Instructions       int            `json:"instructions"` // of the model
	Lowered            int            `json:"lowered"`      // instructions in lowered regions
	Left               []leftReport   `json:"left,omitempty"`
}

// leftReport counts calls that stay as they are, for one reason.
type leftReport struct {
	Name   string `json:"name"`
	Calls  int    `json:"calls"`
	Reason string `json:"reason"`
}

// siblingName is the name of a program's data file: model.pte's is model.ptd, model.v2's model.v2.ptd.
func siblingName(program string) string {
	if ext := strings.ToLower(filepath.Ext(program)); ext == ".pte" || ext == ".bpte" {
		program = program[:len(program)-len(ext)]
	}
	return program + ".ptd"
}

func (l *lowerCommand) report(from string, size int, result *loweredFile) *lowerReport {
	r := &lowerReport{Schema: "etrun.lower/1", Model: from, Output: l.output, Bytes: size, OutputBytes: len(result.program.data())}
	if result.constants != nil {
		r.Data, r.DataBytes = siblingName(l.output), len(result.constants.data())
	}
	for i := range result.Methods {
		r.Methods = append(r.Methods, reportMethod(&result.Methods[i]))
	}
	return r
}

func reportMethod(m *compile.Method) lowerMethodReport {
	r := lowerMethodReport{Method: m.Name, Unchanged: m.Why, PlannedBytes: m.Before, OutputPlannedBytes: m.After}
	if m.Report == nil {
		return r
	}
	all := reportLowered(m.Report)
	for _, g := range all.Regions {
		if g.Taken {
			r.Regions = append(r.Regions, g)
		}
	}
	r.Instructions = len(all.Instructions)
	for _, c := range all.Instructions {
		if c.Region >= 0 && all.Regions[c.Region].Taken && m.Why == "" {
			r.Lowered++
			continue
		}
		if c.Reason == "" {
			c.Reason = "the method stays unchanged"
		}
		same := func(l leftReport) bool { return l.Name == c.Name && l.Reason == c.Reason }
		if at := slices.IndexFunc(r.Left, same); at >= 0 {
			r.Left[at].Calls++
		} else {
			r.Left = append(r.Left, leftReport{c.Name, 1, c.Reason})
		}
	}
	return r
}

// shownReasons is the largest number of reasons that are printed for a method; --json has all of them.
const shownReasons = 12

// written prints where a program was written to.
func (a *app) written(model string, bytes int, to string, written int) {
	fmt.Fprintf(a.Out, "%s: %d bytes; written to %s: %d bytes\n", model, bytes, output.Name(to), written)
}

func (r *lowerReport) print(a *app) {
	a.written(r.Model, r.Bytes, r.Output, r.OutputBytes)
	if r.Data != "" {
		fmt.Fprintf(a.Out, "constants written to %s: %d bytes; it belongs to the program: --data %s\n", r.Data, r.DataBytes, r.Data)
	}
	for i := range r.Methods {
		r.Methods[i].print(a)
	}
	if v := r.Verified; v != nil {
		fmt.Fprintf(a.Out, "verified: %s, %s, %d of them equal, largest difference %.3g\n", cli.Count(v.Calls, "call", "calls"),
			cli.Count(v.Outputs, "output", "outputs"), v.Equal, float64(v.MaxAbs))
	}
}

func (m *lowerMethodReport) print(a *app) {
	name := cli.Printable(m.Method)
	if m.Unchanged != "" {
		fmt.Fprintf(a.Out, "%s: unchanged: %s\n", name, cli.Legible(m.Unchanged))
	} else {
		fmt.Fprintf(a.Out, "%s: %d of %s lowered, in %s; planned memory %d bytes, before %d\n", name, m.Lowered,
			cli.Count(m.Instructions, "instruction", "instructions"), cli.Count(len(m.Regions), "part", "parts"), m.OutputPlannedBytes, m.PlannedBytes)
	}
	for i := range m.Regions {
		if g := &m.Regions[i]; m.Unchanged == "" {
			fmt.Fprintf(a.Out, "  part %d: %s, %.0f multiplications\n", i, cli.Count(g.Calls, "call", "calls"), g.Multiplications)
		}
	}
	for i, l := range m.Left {
		if i == shownReasons {
			fmt.Fprintf(a.Out, "  %s\n", cli.Count(len(m.Left)-i, "more reason", "more reasons"))
			break
		}
		reason := strings.TrimSpace(cli.Legible(l.Reason))
		fmt.Fprintf(a.Out, "  left: %s, %s: %s\n", cli.Count(l.Calls, "call", "calls"), cli.Printable(l.Name), reason)
	}
}
