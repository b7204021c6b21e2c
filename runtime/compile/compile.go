// Package compile (no compatibility promise) writes programs whose methods are lowered to delegates, by the passes that
// lower methods at load.
package compile

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/lower"
	"github.com/etrun-go/etrun/runtime/prepare"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/tree"
)

// Method is the outcome of one method.
type Method struct {
	Name   string
	Report *lower.Report // nil if the method is unchanged
	Why    string        // why the method is unchanged, "" if it is not
	Err    error         // if it is unchanged because it has a fault, or needs what is missing here
	// Bytes of its planned memory, before and after.
	Before, After int64
}

// Result is a lowered program.
type Result struct {
	Data    tree.Pieces // which share the memory of what was read
	Methods []Method
	// External is the .ptd file with the constants that are not in the program; nil without any.
	External tree.Pieces
}

// Lowered reports whether a method was changed.
func (r *Result) Lowered() bool {
	return slices.ContainsFunc(r.Methods, func(m Method) bool { return m.Why == "" })
}

// ErrUnsupported is the class of programs that cannot be written.
var ErrUnsupported = errors.New("cannot be written")

// Lower returns a program whose methods are lowered. Its bytes depend only on those of the program and on the options. A
// method without regions is unchanged, as are names, inputs, outputs and state. The result shares the memory
// of data and of its data files, so that it is best written before these are closed.
func Lower(ctx context.Context, data []byte, o Options) (*Result, error) {
	w, err := newWriter(data, &o)
	if err != nil {
		return nil, err
	}
	w.pool = cpu.NewPool(1)
	defer w.pool.Close()
	out := &Result{}
	for i := range w.spec.Methods {
		m, low, err := w.method(ctx, i)
		if err != nil {
			return nil, err
		}
		out.Methods, w.lowered = append(out.Methods, m), append(w.lowered, low)
	}
	w.share()
	for i, low := range w.lowered {
		m := &out.Methods[i]
		if low != nil {
			m.After = w.replace(i, low)
		} else if err := w.keep(i); err != nil {
			return nil, fmt.Errorf("method %q: %w", m.Name, err)
		}
	}
	if w.constants.err != nil {
		return nil, w.constants.err
	}
	if !out.Lowered() {
		out.Data = tree.Pieces{data}
		return out, nil
	}
	out.Data, out.External = w.program(), w.external.file()
	return out, nil
}

// newWriter reads the program that is to be changed.
func newWriter(data []byte, o *Options) (*writer, error) {
	spec, err := pte.Parse(data, pte.Limits{})
	if err != nil {
		return nil, err
	}
	file, err := tree.Decode(data)
	if err != nil {
		return nil, err
	}
	if len(file.Unknown) > 0 {
		return nil, fmt.Errorf("the program has a field that this version does not know: %s: %w", file.Unknown[0], ErrUnsupported)
	}
	w := &writer{spec: spec, file: file, options: o, bytesIn: data, fileBytes: max(int64(len(data)), o.FileBytes)}
	w.constants = newConstants(w.fileBytes)
	if o.External {
		w.external = &external{digest: w.constants.digest, known: make(map[string]bool), stored: make(map[digest]int), named: o.Named}
	}
	return w, w.readSegments()
}

// method lowers method i. It returns nil for a method that is to be kept.
func (w *writer) method(ctx context.Context, i int) (Method, *prepare.InFile, error) {
	from := &w.spec.Methods[i]
	out := Method{Name: from.Name, Before: arenaBytes(from), After: arenaBytes(from)}
	if out.Why = w.unfit(from); out.Why != "" {
		if !w.isLeft(from) {
			out.Err = from.Err
		}
		return out, nil, nil
	}
	low, err := w.lower(ctx, i)
	switch {
	case ctx.Err() != nil:
		return out, nil, context.Cause(ctx)
	case err != nil:
		out.Why, out.Err = err.Error(), err
		return out, nil, nil
	}
	out.Report = low.Report
	if low.Report.Accepted() == 0 {
		out.Why = whyUnchanged(low.IR)
	} else {
		out.Why = w.newMethod(i, low).refusal()
	}
	if out.Why != "" {
		low = nil
	}
	return out, low, nil
}

// whyUnchanged returns why no region of a method is lowered.
func whyUnchanged(m *ir.Method) string {
	calls := make(map[ir.StepKind]bool)
	for i := range m.Steps {
		calls[m.Steps[i].Kind] = true
	}
	if calls[ir.DelegateCall] && !calls[ir.KernelCall] {
		return "the exporter lowered all its operators already"
	}
	return "no region of it is lowered"
}

// arenaBytes returns the size of a method's planned memory.
func arenaBytes(m *pte.Method) (n int64) {
	for _, a := range m.Arenas {
		n += a.Size
	}
	return n
}

// isLeft reports whether a method is not among those of the options.
func (w *writer) isLeft(m *pte.Method) bool {
	return w.options.Methods != nil && !slices.Contains(w.options.Methods, m.Name)
}

// unfit returns why a method is not to be lowered, "" if it is.
func (w *writer) unfit(m *pte.Method) string {
	if w.isLeft(m) {
		return "it is not among the chosen methods"
	}
	if m.Err != nil {
		return m.Err.Error()
	}
	if len(m.Initial) > 0 {
		return m.Initial[0].String() + "; etrun repair corrects that"
	}
	for _, a := range m.Arenas {
		if a.Device != 0 {
			return "it has memory of a device"
		}
	}
	for v := range m.Values {
		if t := m.Values[v].Tensor; t != nil && t.Dynamism == tensor.DynamicUnbound {
			return fmt.Sprintf("value %d has no upper bound", v)
		}
	}
	return ""
}

// maxLowerings bounds how often a method is lowered, each time with fewer rewrites.
const maxLowerings = 6

// lower lowers method i. Rewrites that a file cannot express outside of payloads are left out if their results are there:
// operators that the program does not call, and views that no step makes.
func (w *writer) lower(ctx context.Context, i int) (low *prepare.InFile, err error) {
	left := make(map[ir.Origin]bool)
	for n := range maxLowerings {
		leave := func(at ir.Origin) bool { return n == maxLowerings-1 || left[at] }
		if low, err = w.lowerOnce(ctx, &w.spec.Methods[i], &lower.File{Leave: leave}); err != nil {
			return nil, err
		}
		before := len(left)
		m := w.newMethod(i, low)
		for k := range m.m.Steps {
			if s := &m.m.Steps[k]; m.isForeign(s) {
				left[s.Origin] = true
			}
		}
		for _, at := range low.Unmade {
			left[at] = true
		}
		if len(left) == before {
			break
		}
	}
	return low, nil
}

// lowerOnce lowers a method.
func (w *writer) lowerOnce(ctx context.Context, from *pte.Method, file *lower.File) (*prepare.InFile, error) {
	o := w.options
	p := &prepare.Preparation{Source: prepare.Source{File: w.spec, Method: from, Data: &data{o.Named, w.spec.Named}, Pool: w.pool, Size: w.spec.Size,
		FileBytes: w.fileBytes,
		Options: prepare.Options{Backends: o.Backends, Operators: o.Operators, Known: o.Operators, Limits: prepare.Limits{Planned: o.Planned},
			Rewrite: true, LowerAll: o.All, Portable: o.Portable, KeepConstants: true, InFile: file, AsWritten: o.AsWritten}}}
	defer p.Close(silent{})
	return p.LowerInFile(ctx, silent{}, o.Writers)
}

// silent reports to nobody.
type silent struct{}

func (silent) Stage(_ string, _ int64, err error) error           { return err }
func (silent) Compiled(_ int, _ string, _ int64, err error) error { return err }
func (silent) Memory(string, int64)                               {}
func (silent) Folded(*ir.Method, *ir.Method, []lower.Folded)      {}
