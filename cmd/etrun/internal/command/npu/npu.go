// Package npu has the commands for Ethos-U delegates that do not run them.
package npu

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/delegate/ethosu"
)

// New groups the commands for Ethos-U delegates.
func New(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "npu",
		Short: "Inspect Ethos-U delegates",
		RunE:  cli.NeedsCommand,
	}
	c.AddCommand(newNPUDisasm(a), newNPUCycles(a), newNPUCalibrate(a))
	return c
}

func newNPUDisasm(a *cli.App) *cobra.Command {
	o := session.Options{Say: a.Note, Static: true}
	summary := false
	c := &cobra.Command{
		Use:   "disasm MODEL.pte",
		Short: "Show the command streams of Ethos-U delegates",
		Long: "Show the command stream of every Ethos-U delegate as text, and below each operation its feature maps,\n" +
			"weights and memory accesses. Invalid operations do not end the listing.",
		Example: "  etrun npu disasm model.pte\n  etrun npu disasm model.pte | grep -A3 NPU_OP_\n" +
			"  etrun npu disasm model.pte --summary",
		Args:              cli.OneModel,
		ValidArgsFunction: cli.CompleteModel,
		RunE: func(c *cobra.Command, args []string) error {
			if summary {
				return summarize(c.Context(), a, &o, args[0])
			}
			return disasm(c.Context(), a, &o, args[0])
		},
	}
	c.Flags().BoolVar(&summary, "summary", false, "show only the kinds of operations and which of them dominate, by the estimates of npu cycles")
	o.AddFlags(c.Flags())
	return c
}

// disasm prints all Ethos-U delegates of a program and returns the first error.
func disasm(ctx context.Context, a *cli.App, o *session.Options, path string) error {
	s, err := session.Open(ctx, path, o)
	if err != nil {
		return err
	}
	defer s.Close()
	var first error
	listings := []npuListing{}
	err = Each(s, func(method string, k int, payload []byte) error {
		var text strings.Builder
		if err := ethosu.Disassemble(&text, payload, s); err != nil && first == nil {
			first = fmt.Errorf("method %q: delegate %d: %w", method, k, err)
		}
		listings = append(listings, npuListing{method, k, strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")})
		return nil
	})
	if err != nil {
		return err
	}
	return errors.Join(first, writeListings(a, path, listings))
}

// summarize prints what dominates in all Ethos-U delegates of a program.
func summarize(ctx context.Context, a *cli.App, o *session.Options, path string) error {
	s, err := session.Open(ctx, path, o)
	if err != nil {
		return err
	}
	defer s.Close()
	n := npuCycles{App: a}
	list := []delegateSummary{}
	err = Each(s, func(method string, k int, payload []byte) error {
		d, err := n.estimate(payload, s)
		list = append(list, delegateSummary{method, k, d.NPU, len(d.Operations), d.Cycles, d.dominant(), d.Kinds})
		return err
	})
	if err != nil {
		return err
	}
	if a.JSON {
		return a.WriteJSON(summaryReport{"etrun.disasm.summary/1", path, list})
	}
	for _, d := range list {
		fmt.Fprintf(a.Out, "method %s, delegate %d, %s: %s, about %.0f cycles\n%s\n", cli.Printable(d.Method), d.Delegate, d.NPU,
			cli.Count(d.Operations, "operation", "operations"), d.Cycles, d.Dominant)
		if err := printKinds(a.Out, d.Kinds); err != nil {
			return err
		}
	}
	return nil
}

// npuListing is the command stream of a delegate as text.
type npuListing struct {
	Method   string   `json:"method"`
	Delegate int      `json:"delegate"`
	Lines    []string `json:"lines"`
}

// disasmReport is the JSON object of npu disasm.
type disasmReport struct {
	Schema    string       `json:"schema"`
	Model     string       `json:"model"`
	Delegates []npuListing `json:"delegates"`
}

// summaryReport is the JSON object of npu disasm --summary.
type summaryReport struct {
	Schema    string            `json:"schema"`
	Model     string            `json:"model"`
	Delegates []delegateSummary `json:"delegates"`
}

func writeListings(a *cli.App, path string, listings []npuListing) error {
	if a.JSON {
		return a.WriteJSON(disasmReport{"etrun.disasm/1", path, listings})
	}
	out := bufio.NewWriter(a.Out)
	for _, l := range listings {
		fmt.Fprintf(out, "; method %q, delegate %d\n%s\n", l.Method, l.Delegate, strings.Join(l.Lines, "\n"))
	}
	return out.Flush()
}
