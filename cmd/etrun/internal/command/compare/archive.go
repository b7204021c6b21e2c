package compare

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/input"
	"github.com/etrun-go/etrun/cmd/etrun/internal/layers"
	"github.com/etrun-go/etrun/cmd/etrun/internal/npy"
	"github.com/etrun-go/etrun/cmd/etrun/internal/output"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// withArchive compares outputs, and with --layer the results of instructions, with the
// arrays of --against. Outputs that are not arrays, such as text, are skipped, with a note.
func (p *compareCommand) withArchive(ctx context.Context, r *report, a *side) error {
	arrays, err := p.readKept(ctx, a.InputLimit())
	if err != nil {
		return err
	}
	named, inner := make(map[string]*npy.Array), make(map[string]*npy.Array)
	for _, x := range arrays {
		if _, ok := layers.ParseFileName(x.Name); ok {
			inner[x.Name] = x
		} else {
			named[x.Name] = x
		}
	}
	if p.layer && len(inner) == 0 {
		return session.Usage("%s: no array has the name of an instruction, such as \"0_0012_0\" for output 0 of instruction 12 of chain 0",
			p.against)
	}
	if err := p.readNames(ctx, a, a); err != nil {
		return err
	}
	partial := p.layer && len(named) == 0
	err = a.once(func(k int, st *session.Step) error {
		outputs, err := st.Outputs()
		if err != nil || partial {
			return err
		}
		return p.addNamed(r, k, st, outputs, named)
	})
	if err == nil && len(named) > 0 {
		p.Note("warning: %s: no output for %s: %.200q", p.against, cli.Count(len(named), "array", "arrays"), slices.Sorted(maps.Keys(named)))
	}
	if err == nil && p.layer {
		later, stop := delayed(ctx, ending)
		defer stop()
		r.Layer, err = p.keptLayers(later, a, inner), context.Cause(ctx)
	}
	return err
}

// readKept reads an archive, or the .npy files of a folder.
func (p *compareCommand) readKept(ctx context.Context, limit int64) ([]*npy.Array, error) {
	if info, err := os.Stat(p.against); err == nil && info.IsDir() {
		return input.ReadFolder(ctx, p.against, limit)
	}
	return input.ReadArchive(ctx, input.Stdin(p.against), limit)
}

// addNamed compares the outputs of a call with their arrays, and deletes these from named.
func (p *compareCommand) addNamed(r *report, k int, st *session.Step, outputs []*tensor.Value, named map[string]*npy.Array) error {
	wants := make([]*tensor.Value, len(outputs))
	for i, got := range outputs {
		name := output.ArrayName(k, i)
		if a := named[name]; a != nil {
			wants[i] = wanted(a, got)
			delete(named, name)
			continue
		}
		if got.Kind == tensor.KindTensor {
			return fmt.Errorf("%w: %s: no array %q", cli.ErrDiffer, p.against, name)
		}
		p.Note("warning: %s: no array %q: the output, %v, is not compared", p.against, name, got.Kind)
	}
	return p.add(r, k, st, wants)
}
