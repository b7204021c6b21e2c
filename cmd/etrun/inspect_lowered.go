package main

import (
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/runtime/lower"
)

// loweredReport is the result of lowering a method.
type loweredReport struct {
	Regions      []regionReport      `json:"regions"`
	Instructions []instructionReport `json:"instructions,omitempty"` // with --lowered
}

type regionReport struct {
	Backend         string  `json:"backend"`
	Taken           bool    `json:"taken"`
	Calls           int     `json:"calls"`
	Inputs          int     `json:"inputs"`
	Outputs         int     `json:"outputs"`
	Multiplications float64 `json:"multiplications"`  // of products and convolutions
	Elements        float64 `json:"elements"`         // that other operations compute
	Transposed      float64 `json:"transposed"`       // elements whose order the backend changes
	Share           float64 `json:"share,omitempty"`  // fraction of the declared elements of dynamic inputs below which it runs as operators
	Reason          string  `json:"reason,omitempty"` // why it was not lowered
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
			Multiplications: g.Multiplications, Elements: g.Elements, Transposed: g.Transposed, Share: g.Share, Reason: g.Reason})
	}
	for i := range from.Calls {
		c := &from.Calls[i]
		r.Instructions = append(r.Instructions, instructionReport{Chain: c.Origin.Chain, Index: c.Origin.Index, Name: c.Name,
			Region: c.Region, Reason: c.Reason})
	}
	return r
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
	fmt.Fprintf(t, "    region\tcalls\tinputs\toutputs\tmultiplications\telements\ttransposed\n")
	for i := range r.Regions {
		g := &r.Regions[i]
		if !all && !g.Taken {
			continue
		}
		fmt.Fprintf(t, "    %d\t%d\t%d\t%d\t%.0f\t%.0f\t%.0f\t%s\n", i, g.Calls, g.Inputs, g.Outputs, g.Multiplications, g.Elements, g.Transposed, g.fate())
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
