package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/command/npu"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/delegate/ethosu"
	"github.com/spf13/cobra"
)

// addTrace adds npu trace to the other commands for Ethos-U delegates: it writes outputs as run does.
func addTrace(a *app) *cobra.Command {
	c := npu.New(&a.App)
	c.AddCommand(newNPUTrace(a))
	return c
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
	t := &npuTrace{outcome: outcome{app: a}, Options: session.Options{Say: a.Note}}
	c := &cobra.Command{
		Use:   "trace MODEL.pte",
		Short: "Run a program on the software NPU and show each operation",
		Long: "Run a program once on the software NPU and show a checksum (CRC-32) of the memory that each operation of its Ethos-U\n" +
			"delegates wrote. Two runs diverge at the first line that differs.",
		Example: "  etrun npu trace model.pte --input x.bin\n  etrun npu trace model.pte --input x.bin --dump bytes",
		Args:    cli.OneModel, ValidArgsFunction: cli.CompleteModel,
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
	if err := npu.Each(s, func(string, int, []byte) error { return nil }); err != nil {
		return err
	}
	if err := s.Prepare(ctx, t.calls); err != nil {
		return err
	}
	if err := s.Once(ctx, func(k int, st *session.Step) error { return t.keep(ctx, s, k, st) }); err != nil || !t.JSON {
		return err
	}
	return t.WriteJSON(newRunReport(s, &t.outcome, t.Seed))
}

// event prints one operation; with --json its line goes to stderr.
func (t *npuTrace) event(e *ethosu.TraceEvent) {
	w := t.Out
	if t.JSON {
		w = t.Notes
	}
	op := e.Operation
	fmt.Fprintf(w, "delegate %d  %4d  word %5d  crc32 %08x  %s%s\n", e.Delegate, e.Index, op.Word, op.Checksum(e.Memory), op.Name, op.Detail)
	if t.dump == "" {
		return
	}
	for i, r := range op.Writes {
		name := fmt.Sprintf("delegate%d-%04d-%d.bin", e.Delegate, e.Index, i)
		if err := output.WriteBytes(t.ctx, filepath.Join(t.dump, name), e.Memory[r.Region][r.Lo:r.Hi]); err != nil {
			t.Note("%v", err)
		}
	}
}
