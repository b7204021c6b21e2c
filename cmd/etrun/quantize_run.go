package main

import (
	"context"
	"fmt"
	"math"
	"path"
	"slices"
	"sort"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/input"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/internal/collect"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/compile"
)

// quantizing is the work on one program.
type quantizing struct {
	*quantizeCommand
	by      xnnpack.Writer
	name    string // of the program
	samples []sample
	scheme  lowering.Scheme
	budget  float64
	report  quantizeReport
	warn    func(format string, args ...any) // of samples

	float  *stored // the lowered program
	q      *compile.Quantization
	layers []compile.Layer
	tuning tuning // with --scheme auto
	// Random inputs by step, which the float program accepts: those of all runs.
	inputs [][]tensor.Value
	try    int // see session.Options.Attempt
}

// backends returns the backends of this build by ID.
func (w *quantizing) backends() map[string]delegate.Backend {
	all := make(map[string]delegate.Backend)
	for _, b := range w.Backends() {
		all[b.ID()] = b
	}
	return all
}

// methods returns the methods that are changed, nil for all.
func (w *quantizing) methods() []string {
	if w.method == "" {
		return nil
	}
	return []string{w.method}
}

// quantize returns the quantized program.
func (w *quantizing) quantize(ctx context.Context, program *stored) (*stored, error) {
	s, err := session.OpenSource(ctx, w.name, program.source(w.name), &w.Options)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if _, err := s.MetaOf(w.method); err != nil && w.method != "" {
		return nil, err
	}
	if err := w.lower(ctx, s, program); err != nil {
		return nil, err
	}
	defer w.float.close()
	collect.Loaded()
	o := compile.QuantizeOptions{By: w.by, Scheme: w.scheme, Named: s.Named, FileBytes: s.FileBytes(), Methods: w.methods(),
		Operators: etrun.DefaultOperators()}
	var names []string // that --skip may match
	if w.scheme.Name == lowering.Dynamic4 {
		o.Embeds = func(name string) bool {
			names = append(names, name)
			return !w.skips(name)
		}
	}
	w.q, err = compile.OpenQuantization(w.float.data(), o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", w.name, err)
	}
	for _, l := range w.q.Layers() {
		names = append(names, l.Name())
	}
	if err := w.checkSkip(names); err != nil {
		return nil, err
	}
	if err := w.findInputs(ctx); err != nil {
		return nil, err
	}
	if err := w.observe(ctx); err != nil {
		return nil, err
	}
	if w.layers = w.q.Layers(); w.scheme.Name == lowering.Auto && len(w.layers) > 0 {
		if err := w.tune(ctx); err != nil {
			return nil, err
		}
	}
	return w.write(ctx)
}

// findInputs finds random inputs that the program accepts, if there are no samples.
func (w *quantizing) findInputs(ctx context.Context) (err error) {
	if !w.verify || len(w.samples) > 0 {
		return nil
	}
	for w.try = range session.Attempts() {
		w.inputs = nil
		failed := w.measureEach(ctx, "looking for inputs", nil)
		explained := inOriginal(failed, "--calibrate")
		if !isUnfit(failed) {
			return explained
		}
		if err == nil {
			err = explained
		}
	}
	return err
}

// checkSkip returns an error if a pattern of --skip matches none of the names.
func (w *quantizing) checkSkip(names []string) error {
	for _, p := range w.skip {
		if slices.ContainsFunc(names, func(name string) bool { ok, _ := path.Match(p, name); return ok }) {
			continue
		}
		example := "there are none"
		if len(names) > 0 {
			example = "such as " + names[len(names)-1]
		}
		return session.Usage("--skip %.100q matches none of the %s that may be quantized, %s", p, cli.Count(len(names), "layer", "layers"), example)
	}
	return nil
}

// observe runs the program to find the ranges of values, and to measure the layers.
func (w *quantizing) observe(ctx context.Context) error {
	if slices.Contains(calibrated, w.scheme.Name) {
		if err := w.measureEach(ctx, "calibrating", w.q.Calibrating()); err != nil {
			return err
		}
	}
	if !w.verify || len(w.q.Layers()) == 0 || w.scheme.Name == lowering.Auto {
		return nil
	}
	return inOriginal(w.measureEach(ctx, "measuring layers", w.q.Measuring()), "--calibrate")
}

// sequences lists the calls of each sequence; a call without state is one of its own. Without samples there is a single call of each
// method, of random inputs. With --scheme auto, measured are those by which the outputs are measured, every third one of several: errors
// that cancel by chance in those by which it chooses do not cancel there.
func (w *quantizing) sequences(state bool) (list, measured [][]int) {
	for i := range max(len(w.samples), 1) {
		if state && i > 0 && w.samples[i].follows {
			list[len(list)-1] = append(list[len(list)-1], i)
		} else {
			list = append(list, []int{i})
		}
	}
	if w.scheme.Name != lowering.Auto || len(list) < fewSequences {
		return list, list
	}
	var rest [][]int
	for i, calls := range list {
		if i%3 == 2 {
			measured = append(measured, calls)
		} else {
			rest = append(rest, calls)
		}
	}
	return rest, measured
}

// measureEach runs calls of the program, each sequence from the initial state, with a backend that does what: by default all by which
// the program is chosen.
func (w *quantizing) measureEach(ctx context.Context, what string, by delegate.Backend, calls ...int) error {
	s, err := w.open(ctx, w.float, by)
	if err != nil {
		return err
	}
	defer s.Close()
	w.warnOfState(s)
	if len(calls) == 0 {
		list, _ := w.sequences(s.KeepsState())
		calls = slices.Concat(list...)
	}
	for k, i := range calls {
		w.Progress.Say("%s, sample %d of %d", what, k+1, len(calls))
		if _, err := w.outputs(ctx, s, i); err != nil {
			return err
		}
	}
	return nil
}

// warnOfState warns once of samples that are first calls alone, although the program has state.
func (w *quantizing) warnOfState(s *session.Session) {
	if !s.KeepsState() || len(w.q.Layers()) == 0 {
		return
	}
	w.report.Sequences = sequences(w.samples)
	if w.report.Sequences < len(w.samples) {
		return
	}
	first := "each sample is a first call"
	if len(w.samples) == 0 {
		first = "its random inputs are those of a first call"
	}
	w.Say("warning: the program has state, and %s: ranges and errors of later calls are unknown; "+
		"--calibrate takes a folder for each sequence of calls, or --calibrate FILE --next FILE", first)
}

// random returns a call of each method with layers, of all methods if there are no layers.
func (w *quantizing) random(s *session.Session) (calls session.Calls) {
	if w.method != "" {
		return session.Calls{{Method: w.method}}
	}
	layers := w.q.Layers()
	for _, name := range s.MethodNames() {
		if len(layers) == 0 || slices.ContainsFunc(layers, func(l compile.Layer) bool { return l.Method == name }) {
			calls = append(calls, session.Call{Method: name})
		}
	}
	return calls
}

// open opens a program for the calls. by may replace a backend.
func (w *quantizing) open(ctx context.Context, program *stored, by delegate.Backend) (*session.Session, error) {
	o := w.Options
	o.Indexes, o.Attempt, o.Constants = true, w.try, false
	if o.Replaced = nil; by != nil {
		o.Replaced = []delegate.Backend{by}
	}
	w.float.release()
	if len(w.float.data()) >= collect.Small {
		collect.Loaded() // what earlier runs have left
	}
	s, err := session.OpenSource(ctx, w.name, program.source(w.name), &o)
	if err != nil {
		return nil, err
	}
	if len(w.samples) == 0 {
		err = s.Prepare(ctx, w.random(s))
		for i, st := range s.Steps {
			if i == len(w.inputs) {
				w.inputs = append(w.inputs, st.Values)
			}
			st.Values = w.inputs[i]
		}
	} else {
		err = s.PrepareToFeed(ctx, w.method)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// outputs returns those of call i, which are valid until the next call, without samples those of all methods.
func (w *quantizing) outputs(ctx context.Context, s *session.Session, i int) (outputs []*tensor.Value, err error) {
	run := s.Once
	if len(w.samples) > 0 {
		if w.samples[i].follows {
			run = s.Again
		}
		spec, err := input.ParseFile(w.samples[i].path, w.recipe)
		if err == nil {
			err = s.Feed(ctx, []input.Spec{spec}, w.warn)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.samples[i].path, err)
		}
	}
	err = run(ctx, func(_ int, st *session.Step) error {
		list, err := st.Outputs()
		if len(s.Steps) > 1 {
			list, err = st.CloneOutputs()
		}
		outputs = append(outputs, list...)
		return err
	})
	if err != nil && len(w.samples) > 0 {
		err = fmt.Errorf("%s: %w", w.samples[i].path, err)
		if w.samples[i].follows && s.KeepsState() {
			err = fmt.Errorf("%w; the program has state, and the files of a folder are the calls of one sequence: put each sequence into a folder", err)
		}
	}
	return outputs, err
}

// keep returns copies of the outputs of the first of some calls, until they have more than limit bytes.
func (w *quantizing) keep(ctx context.Context, s *session.Session, calls []int, limit int) (list [][]*tensor.Value, err error) {
	for _, i := range calls {
		if limit < 0 {
			break
		}
		outputs, err := w.outputs(ctx, s, i)
		if err != nil {
			return nil, err
		}
		for k, v := range outputs {
			outputs[k] = session.Clone(v)
			if v.Kind == tensor.KindTensor {
				limit -= v.Tensor.NBytes()
			}
		}
		list = append(list, outputs)
	}
	return list, nil
}

// step leaves a layer as it is, or changes its form to a slower one with less noise.
type step struct {
	layer int
	form  lowering.SchemeName // "" for floats
}

// write returns the program with as many quantized layers as the budget allows.
func (w *quantizing) write(ctx context.Context) (*stored, error) {
	result, err := w.attempt(ctx, nil)
	if err != nil || w.budget == 0 || w.withinBounds() {
		return result, err
	}
	steps, low, more, err := w.steps(ctx)
	if err != nil {
		result.close()
		return nil, err
	}
	last, high := 0, len(steps) // enough; low are too few
	for ; low+1 < high; more *= 2 {
		last = min(low+more, (low+high)/2)
		result.close()
		if result, err = w.attempt(ctx, steps[:last]); err != nil {
			return nil, err
		}
		if w.withinBounds() {
			high = last
		} else {
			low = last
		}
	}
	if last != high {
		result.close()
		if result, err = w.attempt(ctx, steps[:high]); err != nil {
			return nil, err
		}
	}
	if err := w.missed(); err != nil {
		result.close()
		return nil, err
	}
	return result, nil
}

// steps lists those to take until the budget holds, and how many are too few. The first attempt takes more of them.
func (w *quantizing) steps(ctx context.Context) (list []step, low, more int, err error) {
	if w.scheme.Name == lowering.Auto {
		list, enough, err := w.sensitive(ctx)
		return list, max(enough-1, 0), 1, err
	}
	for _, l := range w.byNoise() {
		list = append(list, step{layer: l})
	}
	return list, 0, len(list), nil
}

// withinBounds reports whether all outputs have the ratio of the budget.
func (w *quantizing) withinBounds() bool { return w.worst() >= w.budget }

// byNoise lists the layers, those first that add the most noise relative to their signal.
func (w *quantizing) byNoise() []int {
	var list []int
	for i := range w.layers {
		if w.layers[i].Reason == "" && !w.skipped(i) {
			list = append(list, i)
		}
	}
	ratio := func(k int) float64 { return decibels(w.layers[list[k]].Signal, w.layers[list[k]].Noise) }
	sort.SliceStable(list, func(i, k int) bool { return ratio(i) < ratio(k) })
	return list
}

func (w *quantizing) skipped(layer int) bool { return w.skips(w.layers[layer].Name()) }

// skips reports whether a pattern of --skip matches a name.
func (w *quantizing) skips(name string) bool {
	return slices.ContainsFunc(w.skip, func(p string) bool { ok, _ := path.Match(p, name); return ok })
}

// forms returns the fastest form of each layer, after some steps.
func (w *quantizing) forms(steps []step) []lowering.SchemeName {
	list := make([]lowering.SchemeName, len(w.layers))
	for i := range w.layers {
		if f := w.layers[i].Forms; len(f) > 0 && !w.skipped(i) {
			list[i] = f[0]
		}
	}
	for _, s := range steps {
		list[s.layer] = s.form
	}
	return list
}

// attempt writes the program after some steps, and reports it.
func (w *quantizing) attempt(ctx context.Context, steps []step) (*stored, error) {
	forms, budgeted := w.forms(steps), make(map[int]bool)
	for _, s := range steps {
		budgeted[s.layer] = s.form == ""
	}
	result, err := w.q.Write(func(l int) lowering.SchemeName { return forms[l] })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", w.name, err)
	}
	w.report.Layers = nil
	for i := range w.layers {
		if !result.Layers[i] {
			forms[i] = ""
		}
		w.report.Layers = append(w.report.Layers, w.layerReport(i, forms[i], budgeted[i], result.Left[i]))
	}
	w.report.Schema, w.report.Scheme, w.report.Unread = "etrun.quantize/1", string(w.scheme.Name), w.q.Refused
	w.report.Embeddings, w.report.Budget = w.q.Embeddings, w.budget
	w.report.Samples, w.report.Outputs = len(w.samples), nil
	out, err := store(w.output, result.Data)
	if err != nil || !w.verify {
		return out, err
	}
	w.report.Outputs, err = w.compareOutputs(ctx, out, len(steps))
	if err != nil {
		out.close()
		return nil, err
	}
	if slices.Contains(result.Layers, true) {
		w.tuning.most = max(w.tuning.most, w.worst())
	}
	return out, nil
}

// worst returns the lowest ratio of the outputs.
func (w *quantizing) worst() float64 {
	worst := math.Inf(1)
	for _, o := range w.report.Outputs {
		worst = min(worst, float64(o.DB))
	}
	return worst
}

// keptShare is the part of a program that outputs of its calls have which are kept until the other one runs.
const keptShare = 8

// compareOutputs measures the outputs of the quantized program against those of the lowered one, by some calls at a time: the outputs of
// all may not fit into memory.
func (w *quantizing) compareOutputs(ctx context.Context, data *stored, steps int) ([]outputReport, error) {
	float, err := w.open(ctx, w.float, nil)
	if err != nil {
		return nil, inOriginal(err, "--calibrate")
	}
	defer float.Close()
	var quantized *session.Session
	var sums []noise
	chosen, measured := w.sequences(float.KeepsState())
	if len(chosen) > len(measured) {
		w.report.Measured = len(measured)
	}
	all := slices.Concat(measured...)
	for rest := all; len(rest) > 0; {
		wants, err := w.keep(ctx, float, rest, len(w.float.data())/keptShare)
		if err != nil {
			return nil, inOriginal(err, "--calibrate")
		}
		if w.float.release(); len(wants) == len(rest) { // the weights of one program are in memory at a time
			float.Close()
		}
		if quantized == nil {
			if quantized, err = w.open(ctx, data, nil); err != nil {
				return nil, fmt.Errorf("the quantized program: %w", err)
			}
			defer quantized.Close()
		}
		for _, want := range wants {
			w.Progress.Say("measuring outputs, after %d steps, sample %d of %d", steps, len(all)-len(rest)+1, len(w.samples))
			got, err := w.outputs(ctx, quantized, rest[0])
			if err == nil {
				sums, err = addNoise(sums, got, want)
			}
			if err != nil {
				return nil, fmt.Errorf("the quantized program: %w", err)
			}
			rest = rest[1:]
		}
		data.release()
	}
	return outputReports(quantized, sums), nil
}

// outputReports returns the errors of the outputs of all steps, which have been summed up.
func outputReports(of *session.Session, sums []noise) (list []outputReport) {
	for _, st := range of.Steps {
		n := min(st.NumOutputs(), len(sums))
		for i, s := range sums[:n] {
			r := outputReport{Output: i, DB: dB(s.signal, s.noise), Share: partOf(s.most, s.largest), NotFinite: s.notFinite}
			if len(of.Steps) > 1 {
				r.Method = st.Name()
			}
			list = append(list, r)
		}
		sums = sums[n:]
	}
	return list
}

// addNoise adds the outputs of one call.
func addNoise(sums []noise, got, wants []*tensor.Value) ([]noise, error) {
	for i, v := range got {
		if i == len(sums) {
			sums = append(sums, noise{})
		}
		if err := sums[i].add(v, wants[i]); err != nil {
			return nil, fmt.Errorf("output %d: %w", i, err)
		}
	}
	return sums, nil
}

// decibels returns a ratio of powers, +Inf without noise.
func decibels(signal, noise float64) float64 {
	if noise == 0 {
		return math.Inf(1)
	}
	return 10 * math.Log10(signal/noise)
}
