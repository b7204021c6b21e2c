package prepare

import (
	"context"
	"errors"

	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/lower"
)

// InFile is a lowered method for a file.
type InFile struct {
	IR      *ir.Method
	Regions []*lowering.Written // by delegate, behind those of the file
	Report  *lower.Report
	// Unmade are calls that rewrites dropped, as their results have the bytes of other values, although steps outside of
	// regions still use the results: a file has no such views.
	Unmade []ir.Origin
}

// A file may use a constant in many places, and each payload contains its own copy: all payloads together are bounded by
// payloadsPerByte times the program's bytes, plus payloadsMore.
const (
	payloadsPerByte = 4
	payloadsMore    = 64 << 20
)

// LowerInFile lowers a method for a file, with compilers that write graphs. It compiles nothing and does not change
// the preparation. Options.InFile is set.
func (p *Preparation) LowerInFile(ctx context.Context, r Reporter, by []lowering.Writer) (*InFile, error) {
	l := &load{p, r}
	base, err := l.describe(ctx)
	if err != nil {
		return nil, err
	}
	out, left := &InFile{}, payloadsPerByte*l.FileBytes+payloadsMore
	b := lower.Backends{All: l.LowerAll, Portable: l.Portable, Payloads: l.payloads(), Dataflow: base.flow, InFile: true,
		Contradiction: base.contradiction,
		Compile: func(_ context.Context, c lowering.Compiler, g *lowering.Graph) error {
			w, err := c.(lowering.Writer).Write(g)
			if err != nil {
				return err
			}
			for i := range w.Weights {
				left -= int64(len(w.Weights[i].Data))
			}
			if left < 0 {
				return errors.New("the payloads would be much larger than the program")
			}
			out.Regions = append(out.Regions, w)
			return nil
		}}
	for _, c := range by {
		b.Compilers = append(b.Compilers, c)
	}
	if out.IR, out.Report, err = lower.Regions(ctx, base.ir, b); err != nil {
		return nil, err
	}
	out.Unmade = unmade(base.built.ir, out.IR)
	return out, nil
}

// unmade returns the calls of a method whose results the changed method uses, but no longer computes.
func unmade(from, to *ir.Method) (list []ir.Origin) {
	makers := make(map[int]ir.Origin)
	for i := range from.Steps {
		for _, v := range from.Steps[i].Writes {
			makers[v] = from.Steps[i].Origin
		}
	}
	for i := range to.Steps {
		for _, v := range to.Steps[i].Writes {
			delete(makers, v)
		}
	}
	var use func(values []int)
	use = func(values []int) {
		for _, v := range values {
			if v < 0 {
				continue
			}
			use(to.Values[v].Items())
			if t := to.Values[v].Tensor; t == nil || t.Const {
				continue
			}
			if at, ok := makers[v]; ok {
				list = append(list, at)
			}
		}
	}
	use(to.Outputs)
	for i := range to.Steps {
		use(to.Steps[i].Args)
	}
	return list
}
