package main

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/etrun-go/etrun/runtime/lower"
)

// loweredReport is what lowering decided about a method. Times are estimates of one
// execute, on one thread.
type loweredReport struct {
	Regions      []regionReport      `json:"regions"`
	Instructions []instructionReport `json:"instructions"`
}

type regionReport struct {
	Backend    string  `json:"backend"`
	Taken      bool    `json:"taken"`
	Calls      int     `json:"calls"`
	Inputs     int     `json:"inputs"`
	Outputs    int     `json:"outputs"`
	PortableUS float64 `json:"portable_us"`
	LoweredUS  float64 `json:"lowered_us"`
	Reason     string  `json:"reason,omitempty"` // why it was not taken
}

type instructionReport struct {
	Chain  int    `json:"chain"`
	Index  int    `json:"index"`
	Name   string `json:"name"`
	Region int    `json:"region"`           // index, -1 for none
	Reason string `json:"reason,omitempty"` // why no region has it, or its region was not taken
}

func reportLowered(from *lower.Report) *loweredReport {
	r := &loweredReport{Regions: []regionReport{}, Instructions: []instructionReport{}}
	for i := range from.Regions {
		g := &from.Regions[i]
		r.Regions = append(r.Regions, regionReport{Backend: g.Backend, Taken: g.Delegate >= 0,
			Calls: len(g.Calls), Inputs: g.Inputs, Outputs: g.Outputs,
			PortableUS: microseconds(g.Portable), LoweredUS: microseconds(g.Lowered), Reason: g.Reason})
	}
	for i := range from.Calls {
		c := &from.Calls[i]
		r.Instructions = append(r.Instructions, instructionReport{Chain: c.Origin.Chain, Index: c.Origin.Index, Name: c.Name,
			Region: c.Region, Reason: c.Reason})
	}
	return r
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func (r *loweredReport) print(t *tabwriter.Writer) {
	fmt.Fprintf(t, "  regions\tcalls\tinputs\toutputs\tas operators\tlowered\n")
	for i, g := range r.Regions {
		taken := "taken by " + printable(g.Backend)
		if !g.Taken {
			taken = "not taken: " + printable(g.Reason)
		}
		fmt.Fprintf(t, "    %d\t%d\t%d\t%d\tabout %.1f µs\tabout %.1f µs\t%s\n",
			i, g.Calls, g.Inputs, g.Outputs, g.PortableUS, g.LoweredUS, taken)
	}
	fmt.Fprintf(t, "  instructions\tregion\n")
	for _, c := range r.Instructions {
		region := "none: " + printable(c.Reason)
		if c.Region >= 0 {
			region = fmt.Sprint(c.Region)
		}
		fmt.Fprintf(t, "    chain %d, %d  %s\t%s\n", c.Chain, c.Index, printable(c.Name), region)
	}
}
