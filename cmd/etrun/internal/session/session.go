// Package session opens programs with the flags of a command line, and runs their calls.
package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/input"
	"github.com/etrun-go/etrun/cmd/etrun/internal/nearest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/ethosu/fvp"
	"github.com/etrun-go/etrun/internal/openfile"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Session is an open program with its calls. It is not safe for concurrent use.
type Session struct {
	*etrun.Program
	Path   string
	Steps  []*Step       // prepared calls, in order
	Loaded time.Duration // from Open to the end of the last Prepare
	Fed    []Fed         // outputs that are inputs of the next run; set before Prepare

	options    *Options
	begun      time.Time
	methods    map[string]Callee
	order      []Callee      // in load order
	state      *etrun.Method // first method, whose state the others share
	fresh      bool          // no call has run since the state was reset
	inputBytes int64         // limit for further inputs
	random     bool          // inputs are random
	warned     []string
}

// Open opens a program with the flags of o and further options.
func Open(ctx context.Context, path string, o *Options, more ...etrun.Option) (*Session, error) {
	path = input.Stdin(path)
	return OpenSource(ctx, path, etrun.File(path), o, more...)
}

// OpenSource is Open for any source; path is its name in messages.
func OpenSource(ctx context.Context, path string, from etrun.Source, o *Options, more ...etrun.Option) (*Session, error) {
	s := &Session{Path: path, options: o, begun: time.Now(), methods: make(map[string]Callee), fresh: true, inputBytes: o.InputLimit()}
	return s, s.openFrom(ctx, from, more)
}

func (s *Session) openFrom(ctx context.Context, from etrun.Source, more []etrun.Option) (err error) {
	if s.Program, err = s.options.open(ctx, from, more); err != nil {
		return WithHint(s.options.nameForeign(ctx, s.Path, err))
	}
	s.Loaded = time.Since(s.begun)
	return nil
}

// LoadOwn loads a method with its own state; empty means "forward". Close closes it.
func (s *Session) LoadOwn(ctx context.Context, name string) (*etrun.Method, error) {
	if _, err := s.meta(name); err != nil {
		return nil, err
	}
	m, err := s.Load(ctx, name)
	if err != nil {
		return nil, WithHint(err)
	}
	s.order = append(s.order, m)
	return m, nil
}

// InputLimit is the maximum memory of all value files and their conversion.
func (s *Session) InputLimit() int64 { return s.options.InputLimit() }

// MetaOf returns the description of a method; an unknown name is a usage error.
func (s *Session) MetaOf(name string) (*etrun.MethodMeta, error) { return s.meta(name) }

// meta returns the description of a method; an unknown name is a usage error.
func (s *Session) meta(name string) (*etrun.MethodMeta, error) {
	names := s.MethodNames()
	if want := cmp.Or(name, "forward"); !slices.Contains(names, want) {
		hint := ""
		if other := nearest.Name(want, names); other != "" {
			hint = fmt.Sprintf("; did you mean %.100q?", other)
		} else if name == "" {
			hint = "; choose one with --method"
		}
		return nil, Usage("%s: no method %q; the program has %.200q%s", s.Path, want, names, hint)
	}
	return s.Meta(name)
}

// Prepare loads the methods of calls, each once, makes the inputs, and reports what the
// program did not use.
func (s *Session) Prepare(ctx context.Context, calls Calls) error {
	if n := s.stdinReaders(calls); n > 1 {
		return Usage("%d arguments read standard input, want at most one", n)
	}
	calls.inherit()
	for i := range calls {
		if err := s.prepare(ctx, &calls[i], calls.HasInputs()); err != nil {
			if i > 0 {
				err = fmt.Errorf("call %d: %w", i, err)
			}
			return err
		}
	}
	s.Loaded = time.Since(s.begun)
	s.Warn()
	return nil
}

// stdinReaders counts the arguments that read standard input.
func (s *Session) stdinReaders(calls Calls) (n int) {
	for _, path := range append([]string{s.Path}, s.options.data...) {
		if input.Stdin(path) == input.Stdin("-") {
			n++
		}
	}
	for i := range calls {
		for k := range calls[i].Inputs {
			if calls[i].Inputs[k].ReadsStdin() {
				n++
			}
		}
	}
	return n
}

// prepare adds the step of one call. given reports whether any call has inputs.
func (s *Session) prepare(ctx context.Context, c *Call, given bool) error {
	meta, err := s.meta(c.Method)
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
	if err := s.checkFed(c, m, len(meta.Inputs)); err != nil {
		return err
	}
	resolver := &input.Resolver{Seed: s.options.Seed + uint64(len(s.Steps)), Limit: s.inputBytes, Say: s.options.Say}
	if s.options.Indexes {
		resolver.Integers = s.integers(m)
	}
	values, err := s.values(ctx, resolver, c, meta, given)
	s.inputBytes = resolver.Limit
	if err != nil {
		return err
	}
	st := &Step{Callee: m, fed: s.Fed}
	if n := len(s.Steps); n > 0 {
		st.before = s.Steps[n-1]
	}
	st.keeps(resolver, values)
	s.Steps = append(s.Steps, st)
	return nil
}

// load loads a method. Methods after the first share its state, as programs with several
// methods over one cache expect.
func (s *Session) load(ctx context.Context, meta *etrun.MethodMeta) (Callee, error) {
	if s.options.ELF != "" {
		return s.openOnModel(ctx, meta)
	}
	var options []etrun.MethodOption
	if s.state != nil {
		options = append(options, etrun.WithStateOf(s.state))
	}
	m, err := s.Load(ctx, meta.Name, options...)
	if err != nil {
		return nil, WithHint(err)
	}
	if s.state == nil {
		s.state = m
	}
	return m, nil
}

// values returns a call's inputs: those of the command line; if it has none for any call,
// those of a bundle's first test case, or random elements.
func (s *Session) values(ctx context.Context, r *input.Resolver, c *Call, meta *etrun.MethodMeta, given bool) ([]tensor.Value, error) {
	s.random = s.random || slices.ContainsFunc(c.Inputs, func(in input.Spec) bool { return in.Fill == "rand" })
	if given || len(meta.Inputs) == 0 {
		return r.Resolve(ctx, c.Inputs, meta.Inputs)
	}
	if values := bundledInputs(s.Bundle(), meta.Name); values != nil {
		s.options.Say("no --input: using the inputs of the first bundled test case")
		return values, nil
	}
	s.random = true
	sizes := ""
	if slices.ContainsFunc(meta.Inputs, func(in etrun.ValueMeta) bool { return in.Dynamism == tensor.DynamicBound }) {
		sizes = ", of the largest sizes" // which take a language model minutes
	}
	s.options.Say("no --input: using random elements%s, seed %d", sizes, s.options.Seed)
	specs := input.Random(meta.Inputs)
	for i, in := range meta.Inputs {
		if in.Kind == tensor.None && s.options.Attempt > 0 { // the program may have no number for it
			specs[i].Value = tensor.IntValue(int64(attempts[s.options.Attempt].most))
		}
	}
	return r.Resolve(ctx, specs, meta.Inputs)
}

// Warn reports, each once, what the program did not use.
func (s *Session) Warn() {
	s.warnOfFlags()
	for _, w := range s.Warnings() {
		if w.Class != delegate.WarnBackend { // flags are already reported
			s.warn(w.Text)
		}
	}
}

func (s *Session) warn(text string) {
	if !slices.Contains(s.warned, text) {
		s.warned = append(s.warned, text)
		s.options.Say("warning: %s", text)
	}
}

// Once runs all calls, from the initial state, and passes each to keep while its outputs
// are valid; keep may be nil. Times are added to the steps.
func (s *Session) Once(ctx context.Context, keep func(k int, st *Step) error) error {
	if err := s.reset(); err != nil {
		return err
	}
	return s.Again(ctx, keep)
}

// Again is Once from the present state.
func (s *Session) Again(ctx context.Context, keep func(k int, st *Step) error) error {
	s.fresh = false
	for k, st := range s.Steps {
		err := st.Execute(ctx)
		if err != nil {
			return s.inCall(k, err)
		}
		if keep == nil {
			continue
		}
		if err := keep(k, st); err != nil {
			return err
		}
	}
	return nil
}

// KeepsState reports whether a call depends on those before it.
func (s *Session) KeepsState() bool { return s.state != nil && len(s.state.StateTensors()) > 0 }

// reset resets the state of all methods.
func (s *Session) reset() error {
	if s.fresh {
		return nil
	}
	for _, m := range s.order {
		if err := m.Reset(); err != nil {
			return err
		}
	}
	return nil
}

// inCall adds the call to an error, if there are several.
func (s *Session) inCall(k int, err error) error {
	if len(s.Steps) == 1 {
		return err
	}
	return fmt.Errorf("call %d: %w", k, err)
}

// CallName is the prefix of a line about call k, if there are several.
func (s *Session) CallName(k int) string {
	if len(s.Steps) == 1 {
		return ""
	}
	return fmt.Sprintf("call %d: ", k)
}

// Close closes the methods, the owner of shared state last, and the program.
func (s *Session) Close() error {
	for _, m := range slices.Backward(s.order) {
		_ = m.Close() // the outputs are already read
	}
	return s.Program.Close()
}

// Time runs all calls once, from the initial state, and returns their total time.
func (s *Session) Time(ctx context.Context) (took time.Duration, err error) {
	if err := s.Once(ctx, nil); err != nil {
		return 0, err
	}
	for _, st := range s.Steps {
		took += st.Took[len(st.Took)-1]
		st.Took = st.Took[:0]
	}
	return took, nil
}

// nameForeign replaces err by one with the format of the file, if it is not a program or
// data file and its format is known.
func (o *Options) nameForeign(ctx context.Context, program string, err error) error {
	fault, ok := errors.AsType[*etrun.LoadError](err)
	if !ok || fault.Class != etrun.ErrFormat {
		return err
	}
	for i, path := range append([]string{program}, o.data...) {
		if fault.File != path && !strings.HasPrefix(fault.Err.Error(), path+": ") {
			continue
		}
		name, hint := readForeign(ctx, path)
		if name == "" {
			return err
		}
		want := ".ptd"
		if i == 0 {
			want = ".pte program"
		}
		hint = cmp.Or(hint, "export the model from PyTorch with ExecuTorch, see docs/export.md")
		return &foreignError{fmt.Sprintf("%s: %s, not a %s; %s", path, name, want, hint), err}
	}
	return err
}

// openOnModel does not start the model: the first call does.
func (s *Session) openOnModel(ctx context.Context, meta *etrun.MethodMeta) (*onModel, error) {
	if meta.Name != "forward" {
		return nil, Usage("--fvp-elf runs the method forward, not %q", meta.Name)
	}
	m := &onModel{meta: meta, inputs: make([][]byte, len(meta.Inputs))}
	for _, list := range [][]etrun.ValueMeta{meta.Inputs, meta.Outputs} {
		for i := range list {
			if list[i].Kind != tensor.KindTensor {
				return nil, Usage("--fvp-elf supports only tensors; %q has a value of kind %v", meta.Name, list[i].Kind)
			}
		}
	}
	for _, o := range meta.Outputs {
		t := o.NewTensor()
		m.outputs = append(m.outputs, tensor.TensorValue(t))
		m.sizes = append(m.sizes, t.NBytes())
	}
	c, err := compiledFor(s.Program)
	if err != nil {
		return nil, err
	}
	program, err := openfile.ReadFile(ctx, s.Path, openfile.Rules{Limit: maxProgramOnModel, Start: pte.StartBytes,
		Check: func(start []byte) error { return pte.CheckStart(start, pte.FormatPTE) }})
	if err != nil {
		return nil, err
	}
	model, err := fvp.Find(s.options.fvp, c.Family)
	if err != nil {
		return nil, modelError(err)
	}
	if m.runner, err = fvp.NewRunner(model, s.options.ELF, program, len(m.inputs), fvp.RunnerOptions{Config: c}); err != nil {
		return nil, modelError(err)
	}
	return m, nil
}
