package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/compile"
)

// --scheme auto: the schemes of layers are chosen by their errors at the outputs, each measured with one quantized layer. The number of
// runs grows with the number of layers; which are left follows from the sums of their errors, and is measured.

// tuning is the state of --scheme auto.
type tuning struct {
	calls   []int             // that are run to choose
	floats  [][]*tensor.Value // their outputs without quantization
	alone   map[int]output.Number
	most    float64 // the highest ratio of a program with quantized layers
	noise   float64 // with the fastest schemes, relative to the signal of the output where it is largest
	trials  int
	planned int
}

const (
	mostCalls    = 16       // that a trial runs, unless a sequence has more
	trialBytes   = 64 << 20 // of their outputs
	trialLayers  = 512      // that are measured alone: those with the most noise
	fewSequences = 6        // fewer of them both choose and measure
	fewNumbers   = 1000     // of outputs, below which errors often cancel by chance
	leastGain    = 0.99     // a step is taken if the noise is at most this part of what it was
	leastShare   = 200      // a step takes at least this part of the program's time, as the layer's neighbours are converted
)

// tune finds the observer of ranges, and whether to correct biases, with which the fastest schemes have the least noise.
func (w *quantizing) tune(ctx context.Context) error {
	if err := w.prepareTrials(ctx); err != nil {
		return inOriginal(err, "--calibrate")
	}
	fastest, best := w.forms(nil), math.Inf(-1)
	set := func(o lowering.Observer, corrected bool) {
		w.q.Set(o, corrected)
		w.report.Observer, w.report.Corrected = string(o), corrected
	}
	w.tuning.planned = 2 * (len(lowering.Observers) + 1)
	var found quantizeReport
	for _, o := range append(slices.Clone(lowering.Observers), lowering.ObserveBest) {
		w.q.Set(o, false)
		if err := w.measureEach(ctx, "measuring layers", w.q.Measuring(), w.tuning.calls...); err != nil {
			return inOriginal(err, "--calibrate")
		}
		for _, corrected := range []bool{false, true} {
			set(o, corrected)
			noise, err := w.trial(ctx, fastest)
			if err != nil {
				return err
			}
			if ratio := decibels(1, noise); found.Observer == "" || ratio > best {
				best, found, w.tuning.noise = ratio, w.report, noise
			}
		}
	}
	set(lowering.Observer(found.Observer), found.Corrected)
	w.layers = w.q.Layers()
	return nil
}

// prepareTrials chooses calls of the samples, whole sequences that are evenly spaced, and keeps their outputs.
func (w *quantizing) prepareTrials(ctx context.Context) error {
	s, err := w.open(ctx, w.float, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	w.tuning.alone, w.tuning.most = make(map[int]output.Number), math.Inf(-1)
	list, measured := w.sequences(s.KeepsState())
	w.tuning.calls = trialCalls(list)
	if w.tuning.floats, err = w.keep(ctx, s, w.tuning.calls, trialBytes); err != nil {
		return err
	}
	w.tuning.calls = w.tuning.calls[:len(w.tuning.floats)]
	numbers := 0
	for _, outputs := range w.tuning.floats {
		for _, v := range outputs {
			if v.Kind == tensor.KindTensor {
				numbers += v.Tensor.Numel()
			}
		}
	}
	if numbers < fewNumbers || len(measured) == len(list) {
		w.Say("warning: auto chooses by %d numbers of the outputs of %s: errors may cancel there by chance, and other inputs lose more; measure these, or use more "+
			"files of --calibrate: of %d or more, every third measures and does not choose", numbers, cli.Count(len(w.tuning.calls), "call", "calls"), fewSequences)
	}
	return nil
}

// trialCalls lists the calls of trials: sequences that are evenly spaced.
func trialCalls(sequences [][]int) (list []int) {
	calls := 0
	for _, s := range sequences {
		calls += len(s)
	}
	want := max(1, min(len(sequences), mostCalls*len(sequences)/calls))
	for k := range want {
		list = append(list, sequences[k*len(sequences)/want]...)
	}
	return list
}

// trial runs the program with quantized layers, and returns the noise relative to the signal of the output where it is largest.
func (w *quantizing) trial(ctx context.Context, forms []lowering.SchemeName) (worst float64, err error) {
	w.tuning.trials++
	w.Progress.Say("choosing schemes, trial %d of at most %d", w.tuning.trials, w.tuning.planned)
	s, err := w.open(ctx, w.float, w.q.Trying(func(l int) lowering.SchemeName { return forms[l] }))
	if err != nil {
		return 0, fmt.Errorf("the quantized program: %w", err)
	}
	defer s.Close()
	var sums []noise
	for k, i := range w.tuning.calls {
		got, err := w.outputs(ctx, s, i)
		if err == nil {
			sums, err = addNoise(sums, got, w.tuning.floats[k])
		}
		if err != nil {
			return 0, fmt.Errorf("the quantized program: %w", err)
		}
	}
	for _, n := range sums {
		if n.noise > 0 {
			worst = max(worst, n.noise/n.signal)
		}
	}
	return worst, nil
}

// sensitive lists the steps from the fastest schemes to floats, those first that take the most noise away for the time that they take.
// The first ones keep the budget in trials.
func (w *quantizing) sensitive(ctx context.Context) (steps []step, enough int, err error) {
	fastest, layers := w.forms(nil), w.byNoise()
	layers = slices.DeleteFunc(layers, func(l int) bool { return fastest[l] == "" })
	total := 0.0
	for l := range w.layers {
		total += timeOf(&w.layers[l], fastest[l])
	}
	w.tuning.planned = w.tuning.trials + 2*min(len(layers), trialLayers)
	var list []valued
	for k, l := range layers {
		noise := make([]float64, len(w.layers[l].Forms)+1)
		if k < trialLayers {
			if err := w.noiseOf(ctx, l, noise, w.allowed()/float64(2*len(layers))); err != nil {
				return nil, 0, err
			}
		}
		list = append(list, stepsOf(&w.layers[l], l, noise, total/leastShare)...)
	}
	sort.SliceStable(list, func(i, k int) bool { return cmp.Less(list[k].value, list[i].value) })
	for _, s := range list {
		steps = append(steps, s.step)
	}
	return w.taken(ctx, steps)
}

// allowed returns the noise that the budget allows, relative to the signal.
func (w *quantizing) allowed() float64 { return math.Pow(10, -w.budget/10) }

// noiseOf measures the noise of the outputs due to a layer, by its form, relative to their signal. Less than small is none. A sum or a
// product of values is quantized with its operands alone: its noise is how much more there is with it.
func (w *quantizing) noiseOf(ctx context.Context, l int, noise []float64, small float64) error {
	for f, form := range w.layers[l].Forms {
		forms := make([]lowering.SchemeName, len(w.layers))
		if forms[l] = form; w.layers[l].Products == 0 {
			forms = w.forms([]step{{layer: l}})
		}
		n, err := w.trial(ctx, forms)
		if err != nil {
			return err
		}
		if w.layers[l].Products == 0 {
			n = w.tuning.noise - n
		} else if f == 0 && n > small {
			w.tuning.alone[l] = dB(1, n)
		}
		if n > small {
			noise[f] = n
		} else if f == 0 {
			break
		}
	}
	return nil
}

// taken moves the steps to the front that keep the budget: those without which trials have more noise, in order. Steps that did not
// help are tried a second time behind the others.
func (w *quantizing) taken(ctx context.Context, steps []step) (list []step, enough int, err error) {
	noise, rest := w.tuning.noise, steps
	for range 2 {
		again := rest
		rest = nil
		for i, s := range again {
			if noise <= w.allowed() {
				rest = append(rest, again[i:]...)
				break
			}
			w.tuning.planned = w.tuning.trials + len(again) - i
			with, err := w.trial(ctx, w.forms(append(slices.Clone(list), s)))
			if err != nil {
				return nil, 0, err
			}
			if with > noise*leastGain {
				rest = append(rest, s)
				continue
			}
			list, noise = append(list, s), with
		}
	}
	return append(list, rest...), len(list), nil
}

// valued is a step, and the noise that it takes away by the time that it takes.
type valued struct {
	step
	value float64
}

// stepsOf lists the steps of a layer from its fastest form to floats: each is the one of the highest value from the form before. noise is
// that of the outputs by form, least the time that a step takes at least.
func stepsOf(l *compile.Layer, index int, noise []float64, least float64) (list []valued) {
	forms := append(slices.Clone(l.Forms), "")
	for at := 0; at < len(forms)-1; {
		best, next := math.Inf(-1), at
		for to := at + 1; to < len(forms); to++ {
			more := max(timeOf(l, forms[to])-timeOf(l, forms[at]), 0) + least + 1
			if value := (noise[at] - noise[to]) / more; value > best {
				best, next = value, to
			}
		}
		list = append(list, valued{step{index, forms[next]}, best})
		at = next
	}
	return list
}

// timeOf estimates the time of a layer, in multiplications of floats, beside quantized layers. The shares only order the steps: 8-bit
// products take a third to half of the time of floats, and an element that is converted as long as some of its products.
func timeOf(l *compile.Layer, form lowering.SchemeName) float64 {
	switch form {
	case lowering.Static8:
		return l.Products/3 + l.Moved
	case lowering.Dynamic4:
		return l.Products / 4
	case lowering.Dynamic8:
		return l.Products/2 + 8*l.Moved
	}
	return l.Products + 4*l.Moved
}

// missed returns an error if no layer could be quantized within the budget of auto.
func (w *quantizing) missed() error {
	if w.scheme.Name != lowering.Auto || slices.ContainsFunc(w.report.Layers, func(l layerReport) bool { return l.Quantized }) {
		return nil
	}
	return fmt.Errorf("%w: %s: no layer can be quantized within --budget %.4gdB, and nothing is written; the best program has %.1f dB",
		cli.ErrDiffer, w.name, w.budget, w.tuning.most)
}

// printAuto prints what --scheme auto chose, and what the layers that are left would cost.
func (r *quantizeReport) printAuto(a *app) {
	if r.Observer == "" {
		return
	}
	schemes := make(map[string]int)
	for _, l := range r.Layers {
		if l.Quantized {
			schemes[l.Scheme]++
		}
	}
	for _, s := range sortedKeys(schemes) {
		fmt.Fprintf(a.Out, "  %s: %s\n", s, cli.Count(schemes[s], "layer", "layers"))
	}
	corrected := "not corrected"
	if r.Corrected {
		corrected = "corrected"
	}
	fmt.Fprintf(a.Out, "  ranges by %s, biases %s\n", r.Observer, corrected)
	if r.Measured > 0 {
		what := [2]string{"input", "inputs"}
		if r.Sequences > 0 {
			what = [2]string{"sequence", "sequences"}
		}
		fmt.Fprintf(a.Out, "  outputs measured on %s that did not choose\n", cli.Count(r.Measured, what[0], what[1]))
	}
	var left []*layerReport
	for i := range r.Layers {
		if l := &r.Layers[i]; l.Alone != nil && !l.Quantized {
			left = append(left, l)
		}
	}
	sort.SliceStable(left, func(i, k int) bool { return cmp.Less(*left[i].Alone, *left[k].Alone) })
	for _, l := range left[:min(len(left), shownLayers)] {
		fmt.Fprintf(a.Out, "  in floats: %s: quantized alone it leaves the outputs %.1f dB\n", cli.Printable(l.Name), float64(*l.Alone))
	}
}
