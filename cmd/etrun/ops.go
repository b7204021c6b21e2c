package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/etrun-go/etrun/runtime"
)

// opReport is one row of the operators' table.
type opReport struct {
	Name   string `json:"name"`
	Schema string `json:"schema"`
	DTypes string `json:"dtypes"`
	Family string `json:"family"` // numeric contract
	Note   string `json:"note,omitempty"`
}

func newOps(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "ops [PART]",
		Short: "List the operators of this build",
		Long: "List the operators of this build: schema, element types, numeric contract, notes. PART keeps those whose name holds it.\n" +
			"The contract bounds the distance from exact results: exact, arith, pointwise, sum, loose, from the strictest.",
		Example: "  etrun ops\n  etrun ops convolution\n  etrun ops --json | jq -r '.operators[].name'",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			rows, err := operators(strings.Join(args, ""))
			if err != nil {
				return err
			}
			if a.json {
				return a.writeJSON(struct {
					Schema    string     `json:"schema"`
					Operators []opReport `json:"operators"`
				}{"etrun.ops/1", rows})
			}
			t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
			for _, r := range rows {
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", r.Schema, r.DTypes, r.Family, r.Note)
			}
			if err := t.Flush(); err != nil {
				return err
			}
			fmt.Fprintln(a.out, count(len(rows), "operator", "operators"))
			return nil
		},
	}
}

// operators lists the operators whose name holds part, by name.
func operators(part string) ([]opReport, error) {
	set := runtime.DefaultOperators()
	names := set.Names()
	slices.Sort(names)
	rows := []opReport{}
	for _, name := range names {
		if !strings.Contains(name, part) {
			continue
		}
		op, _, _, err := set.Lookup(name)
		if err != nil {
			return nil, err
		}
		rows = append(rows, opReport{name, op.Schema, op.DTypes, op.Family.String(), op.Note})
	}
	return rows, nil
}
