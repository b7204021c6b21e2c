package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/delegate/ethosu"
)

// newNPU groups the commands that look inside Ethos-U delegates.
func newNPU(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "npu",
		Short: "Look inside Ethos-U delegates",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return usage("a command is missing; see %s --help", c.CommandPath())
		},
	}
	c.AddCommand(newNPUDisasm(a), newNPUTrace(a))
	return c
}

func newNPUDisasm(a *app) *cobra.Command {
	var flags openFlags
	c := &cobra.Command{
		Use:   "disasm MODEL.pte",
		Short: "Show the command streams of Ethos-U delegates",
		Long: "Show the command stream of every Ethos-U delegate in words, and below each operation the feature maps,\n" +
			"weights and memory that it works on. It goes on after operations that would be refused.",
		Example:           "  etrun npu disasm model.pte\n  etrun npu disasm model.pte | grep -A3 NPU_OP_",
		Args:              oneModel,
		ValidArgsFunction: completeModel,
		RunE:              func(c *cobra.Command, args []string) error { return a.disasm(c.Context(), &flags, args[0]) },
	}
	flags.add(c.Flags())
	return c
}

// disasm prints all Ethos-U delegates of a program and returns the first error.
func (a *app) disasm(ctx context.Context, flags *openFlags, path string) error {
	prog, err := flags.open(ctx, path)
	if err != nil {
		return err
	}
	defer prog.Close()
	out := bufio.NewWriter(a.out)
	defer out.Flush()
	var first error
	found := false
	for i := range prog.Spec().Methods {
		m := &prog.Spec().Methods[i]
		for k, d := range m.Delegates {
			if d.ID != ethosu.ID {
				continue
			}
			found = true
			fmt.Fprintf(out, "; method %q, delegate %d\n", m.Name, k)
			if err := ethosu.Disassemble(out, d.Data, prog); err != nil && first == nil {
				first = fmt.Errorf("method %q: delegate %d: %w", m.Name, k, err)
			}
		}
	}
	if !found {
		return usage("%s: no delegate of %s", path, ethosu.ID)
	}
	return first
}

// npuTrace prints the operations of a run.
type npuTrace struct {
	*runCommand
	ctx  context.Context // of the run
	dump string
}

func newNPUTrace(a *app) *cobra.Command {
	t := &npuTrace{runCommand: &runCommand{app: a, repeat: 1}}
	c := &cobra.Command{
		Use:   "trace MODEL.pte",
		Short: "Run a program on the software NPU and show each operation",
		Long: "Run a program once on the software NPU and show, after each operation of its Ethos-U delegates, a checksum\n" +
			"(CRC-32) of the memory that it wrote: the first line that differs between two runs is where they part.",
		Example: "  etrun npu trace model.pte --input x.bin\n  etrun npu trace model.pte --input x.bin --dump bytes",
		Args:    oneModel, ValidArgsFunction: completeModel,
		RunE: func(c *cobra.Command, args []string) error {
			if t.dump != "" {
				if err := os.MkdirAll(t.dump, 0o777); err != nil {
					return err
				}
			}
			t.ctx, t.npuTrace, t.device = c.Context(), t.event, "npu"
			return t.run(c.Context(), args[0])
		},
	}
	t.calls.addFlags(c.Flags())
	t.openFlags.add(c.Flags())
	_ = c.Flags().MarkHidden("device") // it is the software NPU
	c.Flags().StringVar(&t.dump, "dump", "", "write the bytes that each operation wrote to a file in `DIR`")
	return c
}

// event prints one operation; with --json its line goes to people.
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
