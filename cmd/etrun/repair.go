package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/input"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/repair"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/internal/openfile"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/tree"
)

const repairHelp = `Write a program without the faults of exporters that etrun repairs at load, so that it
also runs correctly on ExecuTorch's own runtime:

  payload     mixed, misplaced or missing values in XNNPACK payloads
  view        missing views of values in channels-last order
  update      updates of state that are copied onto an argument of the same name
  state       initial contents of states that are looked up among the constants
  stale type  outputs of Ethos-U delegates that are declared with another type
  plan        memory plans in which live values share bytes, also because
              ExecuTorch's runtime relocates tensors by their address

Everything else is unchanged. Changes are listed; a program without faults is copied.
If a repair cannot be expressed in the file, the command fails and writes nothing.
`

// repairCommand writes programs without the faults of exporters.
type repairCommand struct {
	*app
	session.Options
	to   string   // the output
	left []string // faults that are only reported
}

func newRepair(a *app) *cobra.Command {
	r := &repairCommand{app: a, Options: session.Options{Say: a.NoteOnce(), Static: true, Lower: string(etrun.LowerOff)}}
	c := &cobra.Command{
		Use:     "repair IN.pte OUT.pte",
		Short:   "Write a program without the faults of its exporter",
		Long:    repairHelp,
		Example: "  etrun repair model.pte fixed.pte\n  etrun repair stale.pte fixed.pte --qparams 0:0=0.018,-3",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 2 {
				return session.Usage("%s, want IN.pte OUT.pte; see %s --help", cli.Count(len(args), "argument", "arguments"), c.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: cli.CompletePrograms,
		RunE:              func(c *cobra.Command, args []string) error { return r.run(c.Context(), args[0], args[1]) },
	}
	r.AddFileFlags(c.Flags())
	cli.Hide(c.Flags(), "threads", "strict-plan", "repair")
	return c
}

// repairReport is the JSON object of repair.
type repairReport struct {
	Schema  string          `json:"schema"`
	Model   string          `json:"model"`
	Output  string          `json:"output"`
	Changes []repair.Change `json:"changes"`
}

func (r *repairCommand) run(ctx context.Context, from, to string) error {
	if err := r.LeaveStdout(to); err != nil {
		return err
	}
	path := input.Stdin(from)
	r.to = to
	data, err := r.readProgram(ctx, path, to, &r.Options)
	if err != nil {
		return err
	}
	defer data.close()
	fixed, changes, err := r.repaired(ctx, path, data)
	if err != nil {
		return err
	}
	defer fixed.close()
	for _, text := range r.left {
		r.Say("warning: %s", text)
	}
	if err := output.WriteAll(ctx, output.Content{Path: to, From: fixed}); err != nil {
		return err
	}
	if r.JSON {
		return r.WriteJSON(&repairReport{"etrun.repair/1", from, to, append([]repair.Change{}, changes...)})
	}
	to = output.Name(to)
	if len(changes) == 0 {
		fmt.Fprintf(r.Out, "%s: nothing to repair; copied to %s\n", from, to)
		return nil
	}
	fmt.Fprintf(r.Out, "%s: %s, written to %s\n", from, cli.Count(len(changes), "repair", "repairs"), to)
	for _, c := range changes {
		fmt.Fprintf(r.Out, "  %s, %s: %s\n", cli.Printable(c.Method), c.Kind, cli.Legible(c.Text))
	}
	return nil
}

// repaired returns a file without faults, which may be the same one. In a bundle, the program is repaired; its test
// cases are unchanged.
func (r *repairCommand) repaired(ctx context.Context, path string, data *stored) (*stored, []repair.Change, error) {
	if pte.Sniff(data.data()) != pte.FormatBPTE {
		return r.program(ctx, path, data)
	}
	bundle, err := tree.Decode(data.data())
	if err != nil {
		s, fault := session.OpenSource(ctx, path, data.source(path), &r.Options)
		if fault != nil { // the same error as of other commands
			return nil, nil, fault
		}
		_ = s.Close()
		return nil, nil, fmt.Errorf("%s: %w: %w", path, repair.ErrBeyond, err) // in a field that nothing else reads
	}
	bytes, _ := bundle.Root.Fields["program"].([]byte)
	inner, err := store(r.to, tree.Pieces{bytes})
	if err != nil {
		return nil, nil, err
	}
	defer inner.close()
	fixed, changes, err := r.program(ctx, path, inner)
	if err != nil || len(changes) == 0 {
		return data, changes, err
	}
	defer fixed.close()
	if len(bundle.Unknown) > 0 {
		return nil, nil, fmt.Errorf("%s: %w: the bundle has a field that this version does not support: %s", path, repair.ErrBeyond,
			bundle.Unknown[0])
	}
	bundle.Root.With("program", fixed.data())
	file, err := store(r.to, bundle.Pieces())
	return file, changes, err
}

// readRepaired reads a program, and returns it without the faults of its exporter: what is written must not have those that are
// repaired at load. If they are not found or cannot be repaired in the file, it says why; some reports whether the command is for some
// methods, so that others need not load. size is that of the program as it was.
func (a *app) readRepaired(ctx context.Context, path, to string, o session.Options, some bool) (size int, fixed *stored, changes []repair.Change, err error) {
	data, err := a.readProgram(ctx, path, to, &o)
	if err != nil {
		return 0, nil, nil, err
	}
	say := o.Say
	o.Static, o.Say = true, func(string, ...any) {} // the same as of the runs
	r := &repairCommand{app: a, Options: o, to: to}
	fixed, changes, err = r.repaired(ctx, path, data)
	for _, text := range r.left {
		say("warning: %s", text)
	}
	size = len(data.data())
	if err != nil {
		if !some && (errors.Is(err, etrun.ErrMissing) || errors.Is(err, etrun.ErrFormat)) {
			return size, data, nil, err
		}
		what := "it is unknown whether the file has faults of its exporter"
		if errors.Is(err, repair.ErrBeyond) {
			what = "faults of the exporter are not repaired in the file"
		}
		say("warning: %s: %v", what, err)
		return size, data, nil, context.Cause(ctx)
	}
	if fixed != data {
		data.close()
	}
	if len(changes) > 0 {
		say("%s of the exporter repaired in the file, the first in method %q, %s: %s", cli.Count(len(changes), "fault", "faults"),
			changes[0].Method, changes[0].Kind, changes[0].Text)
	}
	return size, fixed, changes, nil
}

// program repairs a program, and checks the result like the original.
func (r *repairCommand) program(ctx context.Context, path string, data *stored) (*stored, []repair.Change, error) {
	p, err := r.repairOnce(ctx, path, data)
	if err != nil {
		return nil, nil, err
	}
	if len(p.Changes) == 0 {
		return data, nil, nil
	}
	fixed, err := store(r.to, p.Pieces())
	if err != nil {
		return nil, nil, err
	}
	again, err := r.repairOnce(ctx, path, fixed)
	switch {
	case err != nil:
		err = fmt.Errorf("after the repair: %w", err)
	case len(again.Changes) > 0:
		err = fmt.Errorf("%s: %w: after the repair: %s", path, repair.ErrBeyond, again.Changes[0].Text)
	}
	if err != nil {
		fixed.close()
		return nil, nil, err
	}
	return fixed, p.Changes, nil
}

// repairOnce finds and repairs the faults of a program.
func (r *repairCommand) repairOnce(ctx context.Context, path string, data *stored) (*repair.Program, error) {
	faults, err := r.faults(ctx, path, data)
	if err != nil {
		return nil, err
	}
	p, err := r.repairFaults(data.data(), faults)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// faults finds the faults of each method.
func (r *repairCommand) faults(ctx context.Context, path string, data *stored) (list []*repair.Faults, err error) {
	s, err := session.OpenSource(ctx, path, data.source(path), &r.Options)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	spec, err := pte.Parse(data.data(), pte.Limits{}) // that of the session is not readable any more when it is closed
	if err != nil {
		return nil, err
	}
	for i, name := range s.MethodNames() {
		m, err := s.LoadOwn(ctx, name)
		if err != nil {
			return nil, err
		}
		list = append(list, &repair.Faults{Method: i, Spec: &spec.Methods[i], Delegates: m.Delegates(), Views: m.Report().Plan.Method.Relaid,
			Copies: m.Report().Plan.Method.Redirected})
	}
	r.left = nil
	for _, w := range s.Warnings() {
		if w.Class == delegate.WarnFault {
			r.left = append(r.left, w.Text)
		}
	}
	return list, nil
}

// repairFaults repairs faults, those of memory plans last: by then new values have offsets.
func (r *repairCommand) repairFaults(data []byte, faults []*repair.Faults) (*repair.Program, error) {
	p, err := repair.Open(data)
	if err != nil {
		return nil, err
	}
	var specs []*pte.Method
	for _, f := range faults {
		specs = append(specs, f.Spec)
	}
	if err := p.States(specs); err != nil {
		return nil, err
	}
	for _, f := range faults {
		if err := p.Repair(f); err != nil {
			return nil, err
		}
	}
	if len(p.Changes) > 0 {
		changed, err := store(r.to, p.Pieces())
		if err != nil {
			return nil, err
		}
		defer changed.close()
		data = changed.data()
	}
	spec, err := pte.Parse(data, pte.Limits{})
	if err != nil {
		return nil, err
	}
	for i, f := range faults {
		var inputs []int
		for k := range f.Delegates {
			inputs = append(inputs, f.Delegates[k].Inputs)
		}
		if err := p.Plan(i, &spec.Methods[i], inputs); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// readProgram reads a program for a command that writes to an output. Its first bytes are checked before the rest is read.
func (a *app) readProgram(ctx context.Context, path, to string, o *session.Options) (*stored, error) {
	var wrong error
	check := func(start []byte) error {
		if wrong = pte.CheckStart(start, pte.FormatPTE, pte.FormatBPTE); wrong != nil {
			_, wrong = session.OpenSource(ctx, path, etrun.Bytes(path, start), o) // the same error as of other commands
		}
		return wrong
	}
	f, err := openfile.Open(ctx, path, openfile.Rules{Kinds: openfile.Pipes, Limit: o.ProgramLimit(), Start: pte.StartBytes, Check: check})
	if err != nil {
		return nil, cmp.Or(wrong, err)
	}
	defer f.Close()
	return store(to, f)
}
