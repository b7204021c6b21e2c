// Package ops is the command ops, which lists the operators of this build.
package ops

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/nearest"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
)

// report is the JSON object of ops.
type report struct {
	Schema    string `json:"schema"`
	Operators []row  `json:"operators"`
}

// row is one row of the operator table.
type row struct {
	Name   string `json:"name"`
	Schema string `json:"schema"`
	DTypes string `json:"dtypes"`
	Family string `json:"family"` // numeric contract
	Note   string `json:"note,omitempty"`
}

// New returns the command.
func New(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "ops [PART]",
		Short: "List the operators of this build",
		Long: "List the operators of this build: schema, element types, numeric contract, notes. PART selects those whose name contains it.\n" +
			"The contract bounds the error: exact, arith, pointwise, sum, loose, in order from the strictest.",
		Example: "  etrun ops\n  etrun ops convolution\n  etrun ops --json | jq -r '.operators[].name'",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return session.Usage("%d arguments, want at most one; see %s --help", len(args), c.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return etrun.DefaultOperators().Names(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			part := strings.Join(args, "")
			rows, err := operators(part)
			if err != nil {
				return err
			}
			if len(rows) == 0 {
				return noOperator(part)
			}
			if a.JSON {
				return a.WriteJSON(report{"etrun.ops/1", rows})
			}
			for _, r := range rows {
				r.print(a.Out)
			}
			fmt.Fprintln(a.Out, cli.Count(len(rows), "operator", "operators"))
			return nil
		},
	}
}

// print writes the operator's name with its contract, and below it the arguments as in
// ATen.
func (r *row) print(w io.Writer) {
	fmt.Fprintf(w, "%s  %s; %s\n", r.Name, r.Family, r.DTypes)
	fmt.Fprintf(w, "    %s\n", strings.TrimPrefix(r.Schema, r.Name))
	if r.Note != "" {
		fmt.Fprintf(w, "    note: %s\n", r.Note)
	}
}

// noOperator is the error of a part that no name contains, with the nearest name, if there is one.
func noOperator(part string) error {
	names := etrun.DefaultOperators().Names()
	short := make(map[string]string) // aten::add.out without namespace and overload
	for _, name := range names {
		_, base, _ := strings.Cut(name, "::")
		base, _, _ = strings.Cut(base, ".")
		short[base] = name
	}
	near := cmp.Or(nearest.Name(part, names), short[nearest.Name(part, slices.Sorted(maps.Keys(short)))])
	hint := ""
	if near != "" {
		hint = "; did you mean " + near + "?"
	}
	return session.Usage("no operator with %.100q in its name; etrun ops lists all %d%s", part, len(names), hint)
}

// operators lists the operators whose name contains part, by name.
func operators(part string) ([]row, error) {
	set := etrun.DefaultOperators()
	rows := []row{}
	for _, name := range set.Names() {
		if !strings.Contains(name, part) {
			continue
		}
		op, _, _, err := set.Lookup(name)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row{name, op.Schema, op.DTypes, op.Family.String(), op.Note})
	}
	return rows, nil
}
