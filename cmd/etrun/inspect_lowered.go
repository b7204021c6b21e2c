package main

import (
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/internal/duration"
	"github.com/etrun-go/etrun/runtime/lower"
)

// loweredReport is the result of lowering a method. Times are estimates for one run on
// one thread.
type loweredReport struct {
	Regions      []regionReport      `json:"regions"`
	Instructions []instructionReport `json:"instructions,omitempty"` // with --lowered
}

type regionReport struct {
	Backend    string  `json:"backend"`
	Taken      bool    `json:"taken"`
	Calls      int     `json:"calls"`
	Inputs     int     `json:"inputs"`
	Outputs    int     `json:"outputs"`
	PortableUS float64 `json:"portable_us"`
	LoweredUS  float64 `json:"lowered_us"`
	// with --lower=tune
	MeasuredPortableUS float64 `json:"measured_portable_us,omitempty"`
	MeasuredLoweredUS  float64 `json:"measured_lowered_us,omitempty"`
	Share              float64 `json:"share,omitempty"`  // fraction of the declared elements of dynamic inputs below which it runs as operators
	Reason             string  `json:"reason,omitempty"` // why it was not lowered
}

type instructionReport struct {
	Chain  int    `json:"chain"`
	Index  int    `json:"index"`
	Name   string `json:"name"`
	Region int    `json:"region"`           // index, -1 for none
	Reason string `json:"reason,omitempty"` // why it has no region, or why its region was not lowered
}

func reportLowered(from *lower.Report) *loweredReport {
	r := &loweredReport{Regions: []regionReport{}}
	for i := range from.Regions {
		g := &from.Regions[i]
		r.Regions = append(r.Regions, regionReport{Backend: g.Backend, Taken: g.Delegate >= 0,
			Calls: len(g.Calls), Inputs: g.Inputs, Outputs: g.Outputs,
			PortableUS: microseconds(g.Portable), LoweredUS: microseconds(g.Lowered), Share: g.Share, Reason: g.Reason,
			MeasuredPortableUS: microseconds(g.Measured.Portable), MeasuredLoweredUS: microseconds(g.Measured.Lowered)})
	}
	for i := range from.Calls {
		c := &from.Calls[i]
		r.Instructions = append(r.Instructions, instructionReport{Chain: c.Origin.Chain, Index: c.Origin.Index, Name: c.Name,
			Region: c.Region, Reason: c.Reason})
	}
	return r
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// took formats an estimate in microseconds, and the measured time if there is one.
func took(estimated, measured float64) string {
	text := "about " + duration.FormatMS(estimated/1e3)
	if measured > 0 {
		text += ", measured " + duration.FormatMS(measured/1e3)
	}
	return text
}

// fate describes the decision about a region.
func (g *regionReport) fate() string {
	switch {
	case !g.Taken:
		return "not lowered: " + cli.Printable(g.Reason)
	case g.Share > 0:
		return fmt.Sprintf("lowered to %s from %.3g of the declared elements", cli.Printable(g.Backend), g.Share)
	}
	return "lowered to " + cli.Printable(g.Backend)
}

// print writes the regions, without instructions only those that were lowered.
func (r *loweredReport) print(t *tabwriter.Writer) {
	all := len(r.Instructions) > 0
	if !all && !slices.ContainsFunc(r.Regions, func(g regionReport) bool { return g.Taken }) {
		return
	}
	fmt.Fprintf(t, "  regions of lowering\n")
	fmt.Fprintf(t, "    region\tcalls\tinputs\toutputs\tas operators\tlowered\n")
	for i := range r.Regions {
		g := &r.Regions[i]
		if !all && !g.Taken {
			continue
		}
		fmt.Fprintf(t, "    %d\t%d\t%d\t%d\t%s\t%s\t%s\n", i, g.Calls, g.Inputs, g.Outputs,
			took(g.PortableUS, g.MeasuredPortableUS), took(g.LoweredUS, g.MeasuredLoweredUS), g.fate())
	}
	if !all {
		return
	}
	fmt.Fprintf(t, "  instructions\tregion\n")
	for _, c := range r.Instructions {
		region := "none: " + cli.Printable(c.Reason)
		if c.Region >= 0 {
			region = fmt.Sprint(c.Region)
		}
		fmt.Fprintf(t, "    chain %d, %d  %s\t%s\n", c.Chain, c.Index, cli.Printable(c.Name), region)
	}
}
