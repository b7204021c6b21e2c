package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/input"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/internal/collect"
	"github.com/etrun-go/etrun/runtime/compile"
)

const lowerHelp = `Write a program whose parts run on XNNPACK, without the model's source, Python or PyTorch. The
file runs on ExecuTorch's runtimes from 1.0 on that have the XNNPACK backend, and on etrun.

By default the file is for ExecuTorch's runtime: all that XNNPACK runs is lowered if it has
more work than the call of a delegate, since the portable operators are slow loops. With
--for etrun the parts are those that etrun lowers when it loads the program with --lower auto.
What XNNPACK does not have, or not in all these runtimes, stays as it is, and the command
prints why.
Memory is planned again. Names, inputs, outputs, state and control flow are unchanged. In a
bundled program (.bpte) the test cases stay.

Before the file is written, both programs run on the same random inputs, or those of
--input. If an output differs by more than the tolerance, nothing is written, and the exit
code is 6. Floats pass if |got-want| <= atol * max(1, largest |want|) + rtol*|want|.
`

// The runtimes whose times decide what is lowered.
const (
	forExecuTorch = "executorch"
	forETRun      = "etrun"
)

func newLower(a *app) *cobra.Command {
	l := &lowerCommand{app: a, Options: session.Options{Say: a.NoteOnce(), Lower: string(etrun.LowerOff)}}
	c := &cobra.Command{
		Use:               "lower IN.pte -o OUT.pte",
		Short:             "Write a program whose parts run on XNNPACK",
		Long:              lowerHelp,
		Example:           "  etrun lower model.pte -o model_xnnpack.pte\n  etrun lower model.pte -o out.pte --method forward --input x.npy",
		Args:              cli.OneTo(&l.output),
		ValidArgsFunction: cli.CompleteModel,
		RunE:              func(c *cobra.Command, args []string) error { return l.run(c.Context(), args[0]) },
	}
	flags := c.Flags()
	flags.StringVarP(&l.output, "output", "o", "", "write the program to `FILE`, - for standard output")
	flags.StringVar(&l.backend, "backend", "xnnpack", "`BACKEND` of the lowered parts; there is only xnnpack")
	flags.StringVar(&l.runtime, "for", forExecuTorch, "`RUNTIME` that is to be fast: executorch or etrun, whose operators are faster")
	flags.BoolVar(&l.all, "all", false, "lower every part, also small ones")
	flags.BoolVar(&l.external, "external-constants", false, "write the larger constants to a .ptd file beside the output")
	addTarget(flags, &l.target)
	flags.BoolVar(&l.verify, "verify", true, "run both programs, and write nothing if their outputs differ")
	flags.Float64Var(&l.tolerance.Abs, "atol", 1e-5, "absolute tolerance `TOL` for floats")
	flags.Float64Var(&l.tolerance.Rel, "rtol", 1e-3, "relative tolerance `TOL` for floats")
	flags.Uint64Var(&l.Seed, "seed", 0, "seed `N` for random inputs")
	l.calls.AddFlags(flags)
	flags.Lookup("method").Usage = "lower only the method `NAME`, and verify it; with --next further ones (default: all methods)"
	l.AddFileFlags(flags)
	cli.Hide(flags, "strict-plan", "repair", "qparams", "mmap")
	return c
}

func (l *lowerCommand) run(ctx context.Context, from string) error {
	if l.backend != "xnnpack" {
		return session.Usage("--backend %q, want xnnpack", l.backend)
	}
	if l.runtime != forExecuTorch && l.runtime != forETRun {
		return session.Usage("--for %.100q, want %s or %s", l.runtime, forExecuTorch, forETRun)
	}
	by, err := writerFor(l.target)
	if err != nil {
		return err
	}
	if err := l.checkExternal(from); err != nil {
		return err
	}
	if !(l.tolerance.Abs >= 0 && l.tolerance.Rel >= 0) {
		return session.Usage("--atol %v --rtol %v, want 0 or more", l.tolerance.Abs, l.tolerance.Rel)
	}
	if err := l.LeaveStdout(l.output); err != nil {
		return err
	}
	path := input.Stdin(from)
	defer collect.Often(append(l.DataFiles(), path)...)()
	size, data, changes, err := l.readRepaired(ctx, path, l.output, l.Options, l.calls[0].Method != "")
	defer data.close()
	if err != nil {
		return err
	}
	s, err := session.OpenSource(ctx, path, data.source(path), &l.Options)
	if err != nil {
		return err
	}
	defer s.Close()
	methods, err := l.methods(s)
	if err != nil {
		return err
	}
	result, err := l.lower(ctx, s, data, methods, by)
	if err != nil {
		return err
	}
	defer result.program.close()
	defer result.constants.close()
	report := l.report(from, size, result)
	report.Repairs = changes
	if err := s.Close(); err != nil { // verification opens one program at a time
		return err
	}
	collect.Loaded()
	if l.verify && result.Lowered() {
		if report.Verified, err = l.compare(ctx, s, data, result); err != nil {
			return err
		}
	}
	if err := l.write(ctx, result); err != nil {
		return err
	}
	if l.JSON {
		return l.WriteJSON(report)
	}
	report.print(l.app)
	return nil
}

// checkExternal refuses names that have no place for a data file beside them, and data files that are read: the lowered program
// may need them, too.
func (l *lowerCommand) checkExternal(from string) error {
	if !l.external {
		return nil
	}
	info, err := os.Stat(l.output)
	if l.output == output.Stdout || strings.EqualFold(filepath.Ext(l.output), ".ptd") || err == nil && !info.Mode().IsRegular() {
		return session.Usage("--external-constants -o %s, want the name of a .pte file: the constants are written beside it", l.output)
	}
	to, err := os.Stat(siblingName(l.output))
	if err != nil {
		return nil // a new file, or the error of writing it
	}
	for _, path := range append(l.DataFiles(), from) {
		if read, err := os.Stat(path); err == nil && os.SameFile(to, read) {
			return session.Usage("--external-constants -o %s would replace %s, which the command reads: choose another name", l.output, path)
		}
	}
	return nil
}

// write writes the program, and before it its constants, if they are in a file of their own.
func (l *lowerCommand) write(ctx context.Context, result *loweredFile) error {
	program := output.Content{Path: l.output, From: result.program}
	if result.constants == nil {
		if l.external {
			l.Say("--external-constants: no lowered program with a constant of 512 bytes or more: no data file is written")
		}
		return output.WriteAll(ctx, program)
	}
	return output.WriteAll(ctx, output.Content{Path: siblingName(l.output), From: result.constants}, program)
}

// loweredFile is a lowered program in its file, which is that of the original if nothing is lowered.
type loweredFile struct {
	*compile.Result
	program   *stored
	constants *stored // nil without any
}

// lower lowers a program.
func (l *lowerCommand) lower(ctx context.Context, s *session.Session, data *stored, methods []string, by lowering.Writer,
) (*loweredFile, error) {
	backends := make(map[string]delegate.Backend)
	for _, b := range l.Backends() {
		backends[b.ID()] = b
	}
	o := compile.Options{Backends: backends, Writers: []lowering.Writer{by}, Operators: etrun.DefaultOperators(),
		Named: s.Named, FileBytes: s.FileBytes(),
		Methods: methods, All: l.all, Portable: l.runtime == forExecuTorch, Planned: cmp.Or(l.MaxMemory(), math.MaxInt64),
		External: l.external}
	program, wrap, err := unbundled(data.data())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Path, err)
	}
	result, err := compile.Lower(ctx, program, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Path, err)
	}
	out := &loweredFile{Result: result, program: data}
	if err := loads(ctx, s, result); err != nil || !result.Lowered() {
		return out, err
	}
	if out.program, err = store(l.output, wrap(result.Data)); err == nil && result.External != nil {
		out.constants, err = store(l.output, result.External)
	}
	result.Data, result.External = nil, nil // constants that were computed are not needed any more
	data.release()
	return out, err
}

// addTarget adds the flag of the oldest release that runs the file.
func addTarget(flags *pflag.FlagSet, target *string) {
	flags.StringVar(target, "target-version", xnnpack.Target(0).String(), "the file runs on `RELEASE` of ExecuTorch and later ones: 1.0 to 1.5")
}

// writerFor returns what writes payloads for a release.
func writerFor(target string) (w xnnpack.Writer, err error) {
	if w.Target, err = xnnpack.ParseTarget(target); err != nil {
		err = session.Usage("--target-version: %v", err)
	}
	return w, err
}

// loads returns the error of a method that was not lowered because it does not load here: something that it needs is missing.
func loads(ctx context.Context, s *session.Session, result *compile.Result) error {
	for i := range result.Methods {
		if result.Methods[i].Err == nil {
			continue
		}
		m, err := s.Load(ctx, result.Methods[i].Name)
		if err != nil {
			return err
		}
		m.Close()
	}
	return nil
}

// methods returns the methods that the command line names, nil for all.
func (l *lowerCommand) methods(s *session.Session) (names []string, err error) {
	for i := range l.calls {
		if l.calls[i].Method == "" {
			continue
		}
		if _, err := s.MetaOf(l.calls[i].Method); err != nil {
			return nil, err
		}
		names = append(names, l.calls[i].Method)
	}
	return names, nil
}
