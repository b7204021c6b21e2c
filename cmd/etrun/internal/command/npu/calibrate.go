package npu

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/etrun-go/etrun/cmd/etrun/internal/calibrate"
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/input"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/ethosu"
)

// npuCalibrate finds the quantization of outputs with a stale type.
type npuCalibrate struct {
	*cli.App
	session.Options
	calls     session.Calls
	reference string
	file      string // for the quantizations, or empty

	values *calibrate.Reference
	report calibrateReport
}

// calibrateReport is the JSON object of npu calibrate.
type calibrateReport struct {
	Schema  string             `json:"schema"`
	Model   string             `json:"model"`
	Outputs []calibratedOutput `json:"outputs"`
	Unused  []string           `json:"unused_arrays,omitempty"`
}

// calibratedOutput is one output with the source of its quantization.
type calibratedOutput struct {
	calibratedEntry
	Array    string  `json:"array,omitempty"` // array of the reference
	By       string  `json:"by,omitempty"`    // caller or operator that states it, if no array was fitted
	Values   int     `json:"values,omitempty"`
	Clipped  int     `json:"clipped,omitempty"`
	MaxError float64 `json:"max_error_steps"`
	RMSError float64 `json:"rms_error_steps"`

	note string
}

// calibratedEntry is an entry of a file for --qparams.
type calibratedEntry struct {
	Method    string  `json:"method"`
	Delegate  int     `json:"delegate"`
	Output    int     `json:"output"`
	Scale     float64 `json:"scale"`
	ZeroPoint int64   `json:"zero_point"`
}

func newNPUCalibrate(a *cli.App) *cobra.Command {
	n := &npuCalibrate{App: a, Options: session.Options{Say: a.Note}}
	c := &cobra.Command{
		Use:   "calibrate MODEL.pte",
		Short: "Find the quantization of outputs with a stale type",
		Long: "Run a program once. For each output of an Ethos-U delegate that the program declares with a stale type, fit scale\n" +
			"and zero point to reference values of the same inputs. The result is a file for --qparams.\n\n" +
			"The reference is an .npz file of eager values: an array for each output, in logical order, with the name\n" +
			"DELEGATE:OUTPUT or METHOD/DELEGATE:OUTPUT. For an output without such an array, the program's own quantization is\n" +
			"used, else the only array of the same sizes that fits, whatever its name.",
		Example: "  etrun npu calibrate model.pte --reference v.npz --input x.npy -o qparams.json\n" +
			"  etrun model.pte --qparams qparams.json --input x.npy",
		Args: cli.OneModel, ValidArgsFunction: cli.CompleteModel,
		RunE: func(c *cobra.Command, args []string) error { return n.run(c.Context(), args[0]) },
	}
	c.Flags().StringVar(&n.reference, "reference", "", "`FILE`.npz with the real values of the outputs")
	c.Flags().StringVarP(&n.file, "output", "o", "", "write the quantizations to `FILE`.json (default: standard output)")
	n.calls.AddFlags(c.Flags())
	n.AddFlags(c.Flags())
	return c
}

func (n *npuCalibrate) run(ctx context.Context, path string) error {
	n.report = calibrateReport{Schema: "etrun.npu-calibrate/1", Model: path}
	if n.reference == "" {
		return session.Usage("--reference is missing")
	}
	var file *output.File // created first, so that an unwritable path fails before the run
	if n.file != "" && n.file != output.Stdout {
		var err error
		if file, err = output.CreateFile(ctx, n.file); err != nil {
			return err
		}
		defer file.Close()
	}
	arrays, err := input.ReadArchive(ctx, n.reference, n.InputLimit())
	if err != nil {
		return fmt.Errorf("--reference: %w", err)
	}
	if n.values, err = calibrate.NewReference(arrays); err != nil {
		return session.Usage("--reference %s: %w", n.reference, err)
	}
	if err := n.measure(ctx, path); err != nil {
		return err
	}
	if len(n.report.Outputs) == 0 {
		return session.Usage("%s: no output of an %s delegate has a stale type", path, ethosu.ID)
	}
	n.report.Unused = n.values.Unused()
	if err := n.check(ctx, path); err != nil {
		return err
	}
	return n.write(file)
}

// measure runs the calls once. output is called for each stale output when the NPU writes
// it; its inputs are already correct.
func (n *npuCalibrate) measure(ctx context.Context, path string) error {
	n.Calibrate = n.output
	s, err := session.Open(ctx, path, &n.Options)
	n.Calibrate = nil
	if err != nil {
		return err
	}
	defer s.Close()
	for _, c := range n.calls {
		meta, err := s.Meta(c.Method)
		if err == nil && len(c.Inputs) == 0 && len(meta.Inputs) > 0 && session.CountCases(s.Bundle()) == 0 {
			return session.Usage("--input is missing: reference values belong to inputs")
		}
	}
	if err := s.Prepare(ctx, n.calls); err != nil {
		return err
	}
	return s.Once(ctx, nil)
}

// output finds the quantization of a stale output, once.
func (n *npuCalibrate) output(c *ethosu.Calibration) (delegate.Quantization, error) {
	entry := calibratedEntry{Method: c.Method, Delegate: c.Delegate, Output: c.Output}
	if i := slices.IndexFunc(n.report.Outputs, func(o calibratedOutput) bool {
		return o.Method == c.Method && o.Delegate == c.Delegate && o.Output == c.Output
	}); i >= 0 {
		return n.report.Outputs[i].quantization(), nil
	}
	out := calibratedOutput{calibratedEntry: entry}
	fit, name, found, err := n.values.Fit(c)
	if !found && c.Known == nil {
		fit, name, err = n.values.Search(c)
	}
	switch {
	case err != nil:
		return delegate.Quantization{}, session.Usage("%s: %w", n.reference, err)
	case name != "":
		out.fitted(c, fit, name)
	default:
		out.By, out.Scale, out.ZeroPoint = c.Known.By, c.Known.Scale, c.Known.ZeroPoint
	}
	n.report.Outputs = append(n.report.Outputs, out)
	return out.quantization(), nil
}

func (o *calibratedOutput) quantization() delegate.Quantization {
	return delegate.Quantization{Scale: o.Scale, ZeroPoint: o.ZeroPoint}
}

// fitted records a fit to an array, and notes a different quantization in the program.
func (o *calibratedOutput) fitted(c *ethosu.Calibration, f calibrate.Fit, name string) {
	o.Scale, o.ZeroPoint, o.Values, o.Clipped, o.MaxError, o.RMSError = f.Scale, f.ZeroPoint, f.Values, f.Clipped, f.Max, f.RMS
	o.Array = name
	if k := c.Known; k != nil && (float32(k.Scale) != float32(f.Scale) || k.ZeroPoint != f.ZeroPoint) {
		o.note = fmt.Sprintf("%s states scale %v and zero point %d", k.By, k.Scale, k.ZeroPoint)
	}
	if c.Err != nil {
		o.note = c.Err.Error()
	}
}

// check loads the methods with the quantizations found. Outputs that the run did not reach
// are still missing.
func (n *npuCalibrate) check(ctx context.Context, path string) error {
	for _, o := range n.report.Outputs {
		q := ethosu.Quantization{Method: o.Method, Delegate: o.Delegate, Output: o.Output, Quantization: o.quantization()}
		n.QParams = append(n.QParams, q)
	}
	s, err := session.Open(ctx, path, &n.Options)
	if err != nil {
		return err
	}
	defer s.Close()
	for _, c := range n.calls {
		if _, err := s.LoadOwn(ctx, c.Method); err != nil {
			return fmt.Errorf("with the quantizations found: %w", err)
		}
	}
	return nil
}

// write writes the file, or to standard output without one, and reports the results.
func (n *npuCalibrate) write(file *output.File) error {
	entries := make([]calibratedEntry, len(n.report.Outputs))
	for i, o := range n.report.Outputs {
		entries[i] = o.calibratedEntry
	}
	text, err := json.MarshalIndent(entries, "", " ")
	if err != nil {
		return err
	}
	put := func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	}
	report := n.Out
	switch {
	case file != nil:
		err = file.Fill(put)
	case !n.JSON:
		report, err = n.Notes, put(n.Out)
	}
	if err != nil {
		return err
	}
	if n.JSON {
		return n.WriteJSON(n.report)
	}
	n.report.print(report)
	return nil
}

func (r *calibrateReport) print(w io.Writer) {
	for i := range r.Outputs {
		o := &r.Outputs[i]
		fmt.Fprintf(w, "%s/%d:%d: scale %v, zero point %d, ", cli.Printable(o.Method), o.Delegate, o.Output, o.Scale, o.ZeroPoint)
		if o.Array == "" {
			fmt.Fprintf(w, "stated by %s\n", cli.Printable(o.By))
		} else {
			fmt.Fprintf(w, "from array %q: %d values, error at most %.2f steps (root mean square %.2f), %d clipped\n",
				o.Array, o.Values, o.MaxError, o.RMSError, o.Clipped)
		}
		if o.note != "" {
			fmt.Fprintf(w, "  but %s\n", o.note)
		}
	}
	if len(r.Unused) > 0 {
		fmt.Fprintf(w, "arrays that match no output: %.200q\n", r.Unused)
	}
}
