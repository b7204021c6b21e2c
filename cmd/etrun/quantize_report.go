package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/repair"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/compile"
)

// quantizeReport is the JSON object of quantize.
type quantizeReport struct {
	Schema      string          `json:"schema"`
	Model       string          `json:"model"`
	Output      string          `json:"output"`
	Scheme      string          `json:"scheme"`
	Budget      float64         `json:"budget_db,omitempty"`
	Observer    string          `json:"observer,omitempty"`         // that --scheme auto chose; best: one for each value
	Corrected   bool            `json:"biases_corrected,omitempty"` // with --scheme auto: by the mean errors of their layers
	Bytes       int             `json:"bytes"`                      // of the model
	OutputBytes int             `json:"output_bytes"`
	Samples     int             `json:"samples"`             // files of --calibrate
	Sequences   int             `json:"sequences,omitempty"` // that they are the calls of, if the program has state
	Measured    int             `json:"measured,omitempty"`  // samples, or sequences, that auto measures the outputs by, and does not choose by
	Repairs     []repair.Change `json:"repairs,omitempty"`   // of faults of the exporter
	Layers      []layerReport   `json:"layers"`
	Embeddings  []string        `json:"embeddings,omitempty"`  // with tables of 8 bits
	Unread      []string        `json:"unread,omitempty"`      // parts that cannot be quantized, and why
	NotLowered  []leftReport    `json:"not_lowered,omitempty"` // products and convolutions that are not lowered, and why
	Outputs     []outputReport  `json:"outputs,omitempty"`
}

// layerReport is the outcome of a layer.
type layerReport struct {
	Name      string         `json:"name"`
	Sizes     []int          `json:"sizes,omitempty"` // of its weights
	Quantized bool           `json:"quantized"`
	Reason    string         `json:"reason,omitempty"`   // why it stays as it is
	Scheme    string         `json:"scheme,omitempty"`   // with --scheme auto, if it is quantized
	DB        *output.Number `json:"snr_db,omitempty"`   // signal to noise, on inputs of floats
	Alone     *output.Number `json:"alone_db,omitempty"` // with --scheme auto: that of the outputs if this layer alone is quantized, if it matters
}

// outputReport is the error of an output.
type outputReport struct {
	Method    string        `json:"method,omitempty"` // if several methods run
	Output    int           `json:"output"`
	DB        output.Number `json:"snr_db"`
	Share     output.Number `json:"max"`                  // the largest error, as a share of the largest number
	NotFinite int           `json:"not_finite,omitempty"` // numbers of the model that are not finite, which are not compared
}

func dB(signal, noise float64) output.Number { return output.Number(decibels(signal, noise)) }

func partOf(error, largest float64) output.Number {
	if error == 0 {
		return 0
	}
	return output.Number(error / largest)
}

func (w *quantizing) layerReport(i int, form lowering.SchemeName, overBudget bool, left string) layerReport {
	l := &w.layers[i]
	r := layerReport{Name: l.Name(), Sizes: l.Sizes, Quantized: form != ""}
	if x, ok := w.tuning.alone[i]; ok {
		r.Alone = &x
	}
	if w.scheme.Name == lowering.Auto {
		r.Scheme = string(form)
	}
	if l.Signal+l.Noise > 0 {
		x := dB(l.Signal, l.Noise)
		r.DB = &x
	}
	switch {
	case r.Quantized:
	case l.Reason != "":
		r.Reason = l.Reason
	case w.skipped(i):
		r.Reason = "--skip"
	case overBudget:
		r.Reason = "--budget"
	default:
		r.Reason = cmp.Or(left, "no layer of its part is quantized")
	}
	return r
}

// weighted are the classes of layers.
var weighted = []opclass.Class{opclass.Linear, opclass.AddMM, opclass.MM, opclass.Convolution}

// isWeighted reports whether an operator is one of a layer.
func isWeighted(name string) bool {
	op, _, ok, err := etrun.DefaultOperators().Lookup(name)
	return err == nil && ok && slices.Contains(weighted, op.Class)
}

// notLowered returns the calls of layers that are no part of a payload.
func notLowered(low *compile.Result) (list []leftReport) {
	for i := range low.Methods {
		for _, l := range reportMethod(&low.Methods[i]).Left {
			if isWeighted(l.Name) {
				list = append(list, l)
			}
		}
	}
	return list
}

// printNotLowered prints how many calls of layers are not lowered, by operator.
func (r *quantizeReport) printNotLowered(a *app) {
	calls := make(map[string]int)
	for _, l := range r.NotLowered {
		calls[l.Name] += l.Calls
	}
	for _, name := range sortedKeys(calls) {
		fmt.Fprintf(a.Out, "  left: %s of %s: not lowered; etrun lower --all has the reasons\n",
			cli.Count(calls[name], "call", "calls"), cli.Printable(name))
	}
}

// shownLayers is how many layers are printed; --json has all.
const shownLayers = 10

func (r *quantizeReport) print(a *app) {
	a.written(r.Model, r.Bytes, r.Output, r.OutputBytes)
	var worst []layerReport
	quantized, reasons := 0, map[string]int{}
	for _, l := range r.Layers {
		if l.Quantized {
			quantized++
		} else {
			reasons[l.Reason]++
		}
		if l.DB != nil && l.Quantized {
			worst = append(worst, l)
		}
	}
	fmt.Fprintf(a.Out, "%s: %d of %s quantized\n", r.Scheme, quantized, cli.Count(len(r.Layers), "layer", "layers"))
	if quantized+len(r.Embeddings) == 0 {
		fmt.Fprintln(a.Out, "  the program is only lowered")
	}
	r.printAuto(a)
	if n := len(r.Embeddings); n > 0 {
		fmt.Fprintf(a.Out, "  %s with 8 bits\n", cli.Count(n, "embedding", "embeddings"))
	}
	for _, reason := range sortedKeys(reasons) {
		fmt.Fprintf(a.Out, "  left: %s: %s\n", cli.Count(reasons[reason], "layer", "layers"), reason)
	}
	for _, why := range r.Unread {
		fmt.Fprintf(a.Out, "  left: %s\n", cli.Legible(why))
	}
	r.printNotLowered(a)
	sort.SliceStable(worst, func(i, k int) bool { return cmp.Less(*worst[i].DB, *worst[k].DB) })
	for _, l := range worst[:min(len(worst), shownLayers)] {
		fmt.Fprintf(a.Out, "  %s: %.1f dB\n", cli.Printable(l.Name), float64(*l.DB))
	}
	for _, o := range r.Outputs {
		if o.Method != "" {
			fmt.Fprintf(a.Out, "%s ", cli.Printable(o.Method))
		}
		fmt.Fprintf(a.Out, "output %d: %.1f dB, largest error %.2g %% of the largest number\n", o.Output, float64(o.DB), 100*float64(o.Share))
		if o.NotFinite > 0 {
			fmt.Fprintf(a.Out, "  without %s of the model that are NaN or infinite\n", cli.Count(o.NotFinite, "number", "numbers"))
		}
	}
}

// noisy is the ratio of signal to noise in dB below which an output is rarely of use.
const noisy = 25

// warnOfNoise warns of the output with the most noise, if it has much.
func (w *quantizing) warnOfNoise() {
	if worst := w.worst(); worst < noisy {
		w.Say("warning: an output has %.1f dB of signal to noise, less than %d: measure the application's results; --budget %ddB leaves the layers with the "+
			"most noise in floats, other schemes and observers lose less with some models", worst, noisy, noisy)
	}
}

func sortedKeys(m map[string]int) []string {
	var list []string
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

// noise sums up the errors of an output.
type noise struct {
	signal, noise, most, largest float64
	notFinite                    int
}

// add adds the elements of an output. Those of the model that are not finite are only counted. If only the other one is not finite, the
// noise is infinite.
func (n *noise) add(got, want *tensor.Value) error {
	if want.Kind != tensor.KindTensor || got.Kind != tensor.KindTensor {
		return nil
	}
	g, w := got.Tensor, want.Tensor
	if g.DType != w.DType || g.Numel() != w.Numel() {
		return fmt.Errorf("%v of %v, want %v of %v", g.DType, g.Sizes, w.DType, w.Sizes)
	}
	load := tensor.Loader[float64](w.DType)
	if load == nil {
		return nil
	}
	x, y := make([]float64, g.Numel()), make([]float64, g.Numel())
	load(x, g.Logical())
	load(y, w.Logical())
	for i := range y {
		d := math.Abs(x[i] - y[i])
		switch {
		case y[i]-y[i] != 0:
			n.notFinite++
			continue
		case math.IsNaN(d):
			d = math.Inf(1)
		}
		n.signal, n.noise = n.signal+y[i]*y[i], n.noise+d*d
		n.most, n.largest = max(n.most, d), max(n.largest, math.Abs(y[i]))
	}
	return nil
}
