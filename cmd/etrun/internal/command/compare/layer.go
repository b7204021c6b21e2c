package compare

import (
	"context"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/layers"
	"github.com/etrun-go/etrun/cmd/etrun/internal/npy"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// layerReport is the result of --layer.
type layerReport struct {
	*layers.Result
	other   bool           // the programs have different instructions
	Traced  *layers.Traced `json:"by_value,omitempty"` // for programs with different instructions
	Nearest []layers.Near  `json:"nearest,omitempty"`  // values of a quantized program beside those of one of floats, in order
	Note    string         `json:"note,omitempty"`     // values that were not compared
}

// layers compares the results of all instructions of two programs.
func (p *compareCommand) layers(ctx context.Context, a, b *side) *layerReport {
	r := &layerReport{other: !layers.Same(a.Spec(), b.Spec())}
	pairs, traced := layers.Counterparts(ctx, a.kept, b.kept, r.other, r.other || p.vs != "", p.tolerance)
	r.Result = layers.Find(ctx, pairs, p.tolerance)
	if r.Values, r.Traced = len(b.kept.List), traced; traced != nil {
		r.Add(traced)
		r.Earlier(traced, b.kept.List)
	}
	r.quantized(ctx, a, b)
	r.name(p, a, b)
	r.hide(b.kept.List)
	if left := r.Values - r.Compared; r.other && left > 0 && ctx.Err() == nil {
		r.Note = fmt.Sprintf("%s no counterpart in the other program: neither one of the same operator and type, nor one with equal elements "+
			"that is computed from the same values", cli.Count(left, "value has", "values have"))
	}
	return r
}

// quantized finds the nearest values if one of the programs has quantized layers, and the other one has none.
func (r *layerReport) quantized(ctx context.Context, a, b *side) {
	scales, is := [2]layers.Scales{{}, {}}, [2]bool{}
	for i, of := range []*side{a, b} {
		for _, st := range of.Steps {
			if m, ok := st.Callee.(*etrun.Method); ok {
				is[i] = scales[i].Add(m) || is[i]
			}
		}
	}
	switch {
	case !r.other || is[0] == is[1]:
	case is[0]: // it has fewer results: those before bounds are not among them
		r.Nearest = layers.Nearest(ctx, b.kept, a.kept, scales[1], scales[0])
	default:
		r.Nearest = layers.Nearest(ctx, a.kept, b.kept, scales[0], scales[1])
	}
	r.Compared = max(r.Compared, len(r.Nearest))
}

// name adds the layers of the places that are reported.
func (r *layerReport) name(p *compareCommand, a, b *side) {
	for _, d := range []*layers.Difference{r.First, r.Unequal} {
		if d != nil {
			p.names.AddToPlace(&d.Place, b.Session)
		}
	}
	if t := r.Traced; t != nil {
		p.names.AddToPlace(t.Last, b.Session)
		p.names.AddToPlace(t.First, b.Session)
		if t.Closest != nil {
			p.namesA.AddToPlace(&t.Closest.Place, a.Session)
		}
	}
}

// outlook notes before the runs what two programs with different instructions have in common.
func (p *compareCommand) outlook(a, b *side) {
	if layers.Same(a.Spec(), b.Spec()) {
		return
	}
	x, y := a.inventory(), b.inventory()
	p.Note("the programs have different instructions: the first computes %s, the second %s; %s the same operator and type in both, "+
		"the others are found by their elements among values of the same sizes", x, y, cli.Count(layers.Common(x, y), "value has", "values have"))
}

// inventory counts the values of the called methods.
func (a *side) inventory() *layers.Inventory {
	inv := layers.NewInventory()
	for _, st := range a.Steps {
		if m, ok := st.Callee.(*etrun.Method); ok {
			inv.Add(m)
		}
	}
	return inv
}

// keptLayers compares the results of instructions with stored arrays.
func (p *compareCommand) keptLayers(ctx context.Context, a *side, named map[string]*npy.Array) *layerReport {
	kept, arrays := make([]layers.Written, 0, len(named)), make([]*npy.Array, 0, len(named))
	for name, x := range named {
		w, _ := layers.ParseFileName(name)
		kept, arrays = append(kept, w), append(arrays, x)
	}
	of := make(map[*layers.Written]*npy.Array, len(kept))
	for i := range kept {
		of[&kept[i]] = arrays[i]
	}
	pairs := slices.DeleteFunc(layers.AlignKept(kept, a.kept.List), func(pair layers.Pair) bool {
		pair.A.Value = wanted(of[pair.A], pair.B.Value)
		want, got := pair.A.Value, pair.B.Value
		return want.Kind != got.Kind || want.Kind == tensor.KindTensor && want.Tensor.Numel() != got.Tensor.Numel()
	})
	r := &layerReport{Result: layers.Find(ctx, pairs, p.tolerance)}
	r.Values = len(a.kept.List)
	r.name(p, a, a)
	if n := len(named) - len(pairs); n > 0 {
		r.Note = fmt.Sprintf("no instruction writes as many elements as %s of %s", cli.Count(n, "array", "arrays"), p.against)
	}
	r.hide(a.kept.List)
	return r
}

// hide notes that the nodes of the first different delegate are not visible.
func (r *layerReport) hide(list []layers.Written) {
	if r.First == nil || r.First.Delegate < 0 || r.First.Node >= 0 {
		return
	}
	for i := range list {
		if list[i].Delegate == r.First.Delegate && list[i].Node >= 0 && list[i].Method == r.First.Method {
			return
		}
	}
	r.Note = fmt.Sprintf("the nodes of delegate %d are not visible on this device", r.First.Delegate)
}

// maxNearest is how many values are printed beside their nearest ones; --json has all.
const maxNearest = 200

func (r *layerReport) print(a *cli.App) {
	fmt.Fprintf(a.Out, "layer: %d of %s compared, %d equal", r.Compared, cli.Count(r.Values, "value", "values"), r.Equal)
	if r.First == nil && r.Compared > 0 && (r.Traced == nil || r.Traced.First == nil) {
		fmt.Fprint(a.Out, ", all within the tolerance")
	}
	fmt.Fprintln(a.Out)
	if r.Note != "" {
		a.Note("%s", r.Note)
	}
	for i, n := range r.Nearest {
		if i == maxNearest {
			fmt.Fprintf(a.Out, "  … %d more, see --json\n", len(r.Nearest)-i)
			break
		}
		fmt.Fprintf(a.Out, "  %5.1f dB  %s, output %d %s\n            beside %s\n", float64(n.DB), cli.Printable(n.Place.String()), n.Output, n.Type,
			cli.Printable(n.To.String()))
	}
	if len(r.Nearest) > 0 {
		return
	}
	if r.Unequal != nil && (r.First == nil || r.Unequal.Place != r.First.Place || r.Unequal.Output != r.First.Output) {
		printDifference(a, "first not equal", r.Unequal)
	}
	if r.First != nil {
		printDifference(a, "first beyond the tolerance", r.First)
	}
	if r.Traced != nil && r.Traced.Looked > 0 {
		r.printTraced(a)
	}
}

// printTraced reports which values of one program occur in the other.
func (r *layerReport) printTraced(a *cli.App) {
	t := r.Traced
	fmt.Fprintf(a.Out, "  by value: %d of %s also occur in the other program\n", t.Found, cli.Count(t.Looked, "value", "values"))
	if t.First == nil {
		return
	}
	fmt.Fprintf(a.Out, "    first one that does not: %s\n", cli.Printable(t.First.String()))
	if t.Last != nil {
		fmt.Fprintf(a.Out, "      computed from one that does: %s\n", cli.Printable(t.Last.String()))
	}
	if c := t.Closest; c != nil {
		fmt.Fprintf(a.Out, "      closest to it: %s, output %d %s; %s\n", cli.Printable(c.Place.String()), c.Output, c.Type,
			distanceText(&c.Distance))
	}
}

func printDifference(a *cli.App, what string, d *layers.Difference) {
	fmt.Fprintf(a.Out, "  %s: %s, output %d %s\n    %s\n", what, cli.Printable(d.Place.String()), d.Output, d.Type, distanceText(&d.Distance))
	if d.Differs != "" {
		fmt.Fprintf(a.Out, "    %s\n", d.Differs)
	}
}
