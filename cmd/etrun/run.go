package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/input"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// runCommand is etrun MODEL: it runs calls and hands out what they return.
type runCommand struct {
	*app
	openFlags
	profileFlags
	calls     callList
	outputDir string
	outputNPZ string
	repeat    int
	timeout   time.Duration
	fvpELF    string
}

const runExamples = `  etrun model.pte                                    random inputs, outputs in words
  etrun model.pte --input x.bin --output-dir out     raw elements in, raw elements out
  etrun model.pte --input x.npy --input int:5        a NumPy array and a number
  etrun model.pte --input x.bin:float32:1x3x64x64    sizes of an input that varies
  etrun model.pte --input cat.png:size=256,mean=imagenet,std=imagenet
  etrun kv.pte --input a.bin --next --input b.bin    two calls; state persists
  etrun model.pte --repeat 100 --threads 2           latency
  etrun model.pte --profile --trace trace.json       where the time goes`

const runHelp = `Run an ExecuTorch program: a .pte file, or the program in a .bpte file.

Inputs are given in the order of the method, or by index or name as 0=x.bin:
  x.bin                      raw little-endian elements in the model's memory order
  x.bin:float32:1x3x224x224  the same with its type and sizes ("scalar" for rank 0)
  x.npy, x.npz               NumPy arrays; an archive's by name (arr_0, …) or in order
  x.png, x.jpg               a picture, with :size=224,mean=…,std=…,layout=auto|nchw|nhwc
  int:5 float:0.5 bool:true str:text none
  zeros ones rand            each also with :dtype:sizes
`

func newRun(a *app) *cobra.Command {
	r := &runCommand{app: a}
	c := &cobra.Command{
		Use:               "etrun MODEL.pte",
		Short:             "Run ExecuTorch programs",
		Long:              runHelp + "\nExit codes:\n" + exitHelp(),
		Example:           runExamples,
		Args:              oneModel,
		ValidArgsFunction: completeModel,
		RunE:              func(c *cobra.Command, args []string) error { return r.run(c.Context(), args[0]) },
	}
	flags := c.Flags()
	flags.SortFlags = false
	r.calls.addFlags(flags)
	r.openFlags.add(flags)
	flags.StringVar(&r.fvpELF, "fvp-elf", "", "run the whole program on Arm's model, in the executor_runner `ELF` built for its board")
	flags.StringVar(&r.outputDir, "output-dir", "", "write out0.bin, out1.bin, … and outputs.json into `DIR`, further calls' into DIR/call1, …")
	flags.StringVar(&r.outputNPZ, "output-npz", "", "write the outputs as NumPy arrays in logical order into `FILE`.npz")
	flags.IntVar(&r.repeat, "repeat", 1, "run the calls `N` times, each from fresh state, and report latency")
	flags.DurationVar(&r.timeout, "timeout", 0, "give up after this `TIME`, such as 30s")
	r.profileFlags.add(flags)
	_ = c.RegisterFlagCompletionFunc("method", completeMethod)
	return c
}

// completeMethod offers the methods of the program on the line.
func completeMethod(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	prog, err := etrun.OpenSource(c.Context(), etrun.File(args[0]))
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	defer prog.Close()
	return prog.MethodNames(), cobra.ShellCompDirectiveNoFileComp
}

func (r *runCommand) run(ctx context.Context, path string) error {
	if r.repeat < 1 {
		return usage("--repeat %d", r.repeat)
	}
	if r.timeout < 0 {
		return usage("--timeout %v", r.timeout)
	}
	if r.fvpELF != "" && r.profiles() {
		return usage("--fvp-elf with --profile, --trace or --etdump: the model runs the program out of sight")
	}
	if r.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.timeout, fmt.Errorf("time-out of %v: %w", r.timeout, context.DeadlineExceeded))
		defer cancel()
	}
	begun := time.Now()
	prog, err := r.open(ctx, path, r.profileFlags.options()...)
	if err != nil {
		return err
	}
	defer prog.Close()
	s := &session{runCommand: r, prog: prog, path: path, methods: make(map[string]callee), inputBytes: r.inputLimit()}
	defer s.close()
	r.calls.inherit()
	for i := range r.calls {
		if err := s.prepare(ctx, r.calls[i]); err != nil {
			return err
		}
	}
	s.loaded = time.Since(begun)
	s.warn(prog)
	return s.run(ctx, path)
}

// session is the loaded program with what its calls need.
type session struct {
	*runCommand
	prog    *etrun.Program
	path    string
	methods map[string]callee
	order   []callee      // as loaded
	state   *etrun.Method // the first method, whose state the others share
	steps   []step
	folder  *output.Folder
	archive *output.Archive
	loaded  time.Duration

	inputBytes int64 // that further inputs may take
}

// step is a call with everything at hand.
type step struct {
	method  callee
	values  []tensor.Value
	took    []time.Duration
	entries []output.Entry
}

// prepare loads a call's method, unless an earlier call did, and makes its inputs.
func (s *session) prepare(ctx context.Context, c call) error {
	meta, err := s.prog.Meta(c.method)
	if err != nil {
		return err
	}
	m := s.methods[meta.Name]
	if m == nil {
		if m, err = s.load(ctx, meta); err != nil {
			return err
		}
		s.methods[meta.Name] = m
		s.order = append(s.order, m)
	}
	index := len(s.steps)
	resolver := &input.Resolver{Seed: s.seed + uint64(index), Limit: s.inputBytes, Say: s.note}
	values, err := s.values(ctx, resolver, c, meta)
	s.inputBytes = resolver.Limit
	if err != nil {
		if index > 0 {
			err = fmt.Errorf("call %d: %w", index, err)
		}
		return err
	}
	s.steps = append(s.steps, step{method: m, values: values})
	return nil
}

// load makes what runs a method. Methods after the first share its state, as programs
// with several methods over one cache mean it.
func (s *session) load(ctx context.Context, meta *etrun.MethodMeta) (callee, error) {
	if s.fvpELF != "" {
		return s.openOnModel(ctx, s.path, meta)
	}
	var options []etrun.MethodOption
	if s.state != nil {
		options = append(options, etrun.WithStateOf(s.state))
	}
	m, err := s.prog.Load(ctx, meta.Name, options...)
	if err != nil {
		return nil, err
	}
	if s.state == nil {
		s.state = m
	}
	return m, nil
}

// values makes a call's inputs: what the command line says; where it says nothing at
// all, a bundle's first test case or random elements.
func (s *session) values(ctx context.Context, r *input.Resolver, c call, meta *etrun.MethodMeta) ([]tensor.Value, error) {
	if len(c.inputs) > 0 || s.calls.given() || len(meta.Inputs) == 0 {
		return r.Resolve(ctx, c.inputs, meta.Inputs)
	}
	if values := bundledInputs(s.prog.Bundle(), meta.Name); values != nil {
		s.note("no --input: the inputs of the first bundled test case")
		return values, nil
	}
	s.note("no --input: random elements, seed %d", s.seed)
	return r.Resolve(ctx, input.Random(meta.Inputs), meta.Inputs)
}

// close ends the methods, the one whose state others use last.
func (s *session) close() {
	for i := len(s.order) - 1; i >= 0; i-- {
		s.order[i].Close()
	}
}

func (s *session) run(ctx context.Context, path string) error {
	defer s.closeOutputs()
	if err := s.openOutputs(ctx); err != nil {
		return err
	}
	for round := range s.repeat {
		if round > 0 {
			if err := s.reset(); err != nil {
				return err
			}
		}
		for k := range s.steps {
			if err := s.execute(ctx, k, round == 0); err != nil {
				return err
			}
		}
	}
	if err := s.commitOutputs(); err != nil {
		return err
	}
	if err := s.profileFlags.write(s.app); err != nil {
		return err
	}
	return s.report(path)
}

func (s *session) reset() error {
	for _, m := range s.order {
		if err := m.Reset(); err != nil {
			return err
		}
	}
	return nil
}

// execute runs call k; its outputs are kept where they are wanted.
func (s *session) execute(ctx context.Context, k int, keep bool) error {
	st := &s.steps[k]
	for i, v := range st.values {
		if err := st.method.SetValue(i, v); err != nil {
			return s.inCall(k, err)
		}
	}
	begun := time.Now()
	err := st.method.Execute(ctx)
	st.took = append(st.took, time.Since(begun))
	if err != nil {
		return s.inCall(k, err)
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if !keep {
		return nil
	}
	if m, ok := st.method.(*etrun.Method); ok {
		s.sayDistances(m)
	}
	return s.keep(k, st)
}

// sayDistances tells how far lowering moved the outputs, with --lower=verify.
func (a *app) sayDistances(m *etrun.Method) {
	for _, d := range m.Distances() {
		if d.Index < 0 && d.Absolute == 0 {
			a.note("lowering: output %d is the same", d.Output)
			continue
		}
		a.note("lowering: output %d differs by at most %.3g, %.3g of what it is without (index %d)", d.Output, d.Absolute, d.Relative, d.Index)
	}
}

// inCall names the call in an error, where there are several.
func (s *session) inCall(k int, err error) error {
	if len(s.steps) == 1 {
		return err
	}
	return fmt.Errorf("call %d: %w", k, err)
}
