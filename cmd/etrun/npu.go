package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/delegate/ethosu"
)

// newNPU groups the commands for Ethos-U delegates.
func newNPU(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "npu",
		Short: "Inspect Ethos-U delegates",
		RunE:  needsCommand,
	}
	c.AddCommand(newNPUDisasm(a), newNPUCycles(a), newNPUTrace(a), newNPUCalibrate(a))
	return c
}

func newNPUDisasm(a *app) *cobra.Command {
	o := session.Options{Say: a.note, Static: true}
	summary := false
	c := &cobra.Command{
		Use:   "disasm MODEL.pte",
		Short: "Show the command streams of Ethos-U delegates",
		Long: "Show the command stream of every Ethos-U delegate as text, and below each operation its feature maps,\n" +
			"weights and memory accesses. Invalid operations do not end the listing.",
		Example: "  etrun npu disasm model.pte\n  etrun npu disasm model.pte | grep -A3 NPU_OP_\n" +
			"  etrun npu disasm model.pte --summary",
		Args:              oneModel,
		ValidArgsFunction: completeModel,
		RunE: func(c *cobra.Command, args []string) error {
			if summary {
				return a.summarize(c.Context(), &o, args[0])
			}
			return a.disasm(c.Context(), &o, args[0])
		},
	}
	c.Flags().BoolVar(&summary, "summary", false, "show only the kinds of operations and which of them dominate, by the estimates of npu cycles")
	o.AddFlags(c.Flags())
	return c
}

// disasm prints all Ethos-U delegates of a program and returns the first error.
func (a *app) disasm(ctx context.Context, o *session.Options, path string) error {
	s, err := session.Open(ctx, path, o)
	if err != nil {
		return err
	}
	defer s.Close()
	var first error
	listings := []npuListing{}
	err = eachNPU(s, func(method string, k int, payload []byte) error {
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
	return errors.Join(first, a.writeListings(path, listings))
}

// summarize prints what dominates in all Ethos-U delegates of a program.
func (a *app) summarize(ctx context.Context, o *session.Options, path string) error {
	s, err := session.Open(ctx, path, o)
	if err != nil {
		return err
	}
	defer s.Close()
	n := npuCycles{app: a}
	list := []delegateSummary{}
	err = eachNPU(s, func(method string, k int, payload []byte) error {
		d, err := n.estimate(payload, s)
		list = append(list, delegateSummary{method, k, d.NPU, len(d.Operations), d.Cycles, d.dominant(), d.Kinds})
		return err
	})
	if err != nil {
		return err
	}
	if a.json {
		return a.writeJSON(summaryReport{"etrun.disasm.summary/1", path, list})
	}
	for _, d := range list {
		fmt.Fprintf(a.out, "method %s, delegate %d, %s: %s, about %.0f cycles\n%s\n", printable(d.Method), d.Delegate, d.NPU,
			count(d.Operations, "operation", "operations"), d.Cycles, d.Dominant)
		if err := printKinds(a.out, d.Kinds); err != nil {
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

func (a *app) writeListings(path string, listings []npuListing) error {
	if a.json {
		return a.writeJSON(disasmReport{"etrun.disasm/1", path, listings})
	}
	out := bufio.NewWriter(a.out)
	for _, l := range listings {
		fmt.Fprintf(out, "; method %q, delegate %d\n%s\n", l.Method, l.Delegate, strings.Join(l.Lines, "\n"))
	}
	return out.Flush()
}

// npuTrace prints the operations of one run.
type npuTrace struct {
	outcome
	session.Options
	calls session.Calls
	ctx   context.Context // of the run
	dump  string
}

func newNPUTrace(a *app) *cobra.Command {
	t := &npuTrace{outcome: outcome{app: a}, Options: session.Options{Say: a.note}}
	c := &cobra.Command{
		Use:   "trace MODEL.pte",
		Short: "Run a program on the software NPU and show each operation",
		Long: "Run a program once on the software NPU and show a checksum (CRC-32) of the memory that each operation of its Ethos-U\n" +
			"delegates wrote. Two runs diverge at the first line that differs.",
		Example: "  etrun npu trace model.pte --input x.bin\n  etrun npu trace model.pte --input x.bin --dump bytes",
		Args:    oneModel, ValidArgsFunction: completeModel,
		RunE: func(c *cobra.Command, args []string) error { return t.run(c.Context(), args[0]) },
	}
	c.Flags().StringVar(&t.dump, "dump", "", "write the bytes that each operation writes to a file in `DIR`")
	t.calls.AddFlags(c.Flags())
	t.AddFlags(c.Flags())
	_ = c.Flags().MarkHidden("device") // always the software NPU
	return c
}

func (t *npuTrace) run(ctx context.Context, path string) error {
	if t.dump != "" {
		if err := os.MkdirAll(t.dump, 0o777); err != nil {
			return err
		}
	}
	t.ctx, t.NPUTrace, t.Device = ctx, t.event, "npu"
	s, err := session.Open(ctx, path, &t.Options)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := eachNPU(s, func(string, int, []byte) error { return nil }); err != nil {
		return err
	}
	if err := s.Prepare(ctx, t.calls); err != nil {
		return err
	}
	if err := s.Once(ctx, func(k int, st *session.Step) error { return t.keep(s, k, st) }); err != nil || !t.json {
		return err
	}
	return t.writeJSON(newRunReport(s, &t.outcome, t.Seed))
}

// event prints one operation; with --json its line goes to stderr.
func (t *npuTrace) event(e *ethosu.TraceEvent) {
	w := t.out
	if t.json {
		w = t.notes
	}
	op := e.Operation
	fmt.Fprintf(w, "delegate %d  %4d  word %5d  crc32 %08x  %s%s\n", e.Delegate, e.Index, op.Word, op.Checksum(e.Memory), op.Name, op.Detail)
	if t.dump == "" {
		return
	}
	for i, r := range op.Writes {
		name := fmt.Sprintf("delegate%d-%04d-%d.bin", e.Delegate, e.Index, i)
		err := output.WriteFile(t.ctx, filepath.Join(t.dump, name), func(w io.Writer) error {
			_, err := w.Write(e.Memory[r.Region][r.Lo:r.Hi])
			return err
		})
		if err != nil {
			t.note("%v", err)
		}
	}
}
