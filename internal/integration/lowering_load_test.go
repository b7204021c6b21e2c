//go:build linux

package integration

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/exec/exectest"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
	"github.com/etrun-go/etrun/runtime/trace"
)

// BenchmarkLoweredLoad measures what lowering adds to a load: the rewrites, the search for regions,
// and the packing of their weights, of transformers whose weights grow and of the models below
// CORPUS. The search grows with the instructions, packing with the weights.
func BenchmarkLoweredLoad(b *testing.B) {
	for _, width := range []int{64, 192, 384, 768} {
		b.Run(fmt.Sprintf("transformer/%d", width), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "model.pte")
			program := ptetest.Write(&pte.Program{Methods: []pte.Method{*encoder(2, 64, width)}}, ptetest.Layout{})
			if err := os.WriteFile(path, program, 0o600); err != nil {
				b.Fatal(err)
			}
			loweredLoad(b, path)
		})
	}
	for _, kind := range []string{"models", "fresh"} {
		paths, err := filepath.Glob(filepath.Join(os.Getenv("CORPUS"), kind, "*", "portable*.pte"))
		if err != nil {
			b.Fatal(err)
		}
		for _, path := range paths {
			b.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), func(b *testing.B) {
				loweredLoad(b, path)
			})
		}
	}
}

// loweredLoad loads the first method of a program again and again, and reports the medians.
func loweredLoad(b *testing.B, path string) {
	taken, now, steps := map[string][]float64{}, map[string]float64{}, 0
	stages := trace.Func{Kinds: 1 << trace.Stage, Do: func(e *trace.Event) { now[e.Name] += float64((e.End - e.Start).Nanoseconds()) / 1000 }}
	for b.Loop() {
		clear(now)
		p, err := etrun.Open(path, etrun.WithDelegates(xnnpack.Backend{}), etrun.WithThreads(1), etrun.WithLowering(etrun.LowerAuto), etrun.WithObserver(stages))
		if err != nil {
			b.Fatal(err)
		}
		m, err := p.Load(b.Context(), p.MethodNames()[0])
		if errors.Is(err, etrun.ErrMissing) {
			b.Skip(err)
		} else if err != nil {
			b.Fatal(err)
		}
		for stage, micros := range now {
			taken[stage] = append(taken[stage], micros)
		}
		steps = len(m.Report().Lowered.Calls)
		m.Close()
		p.Close()
	}
	middle := func(stage string) float64 {
		slices.Sort(taken[stage])
		return append(taken[stage], 0)[len(taken[stage])/2]
	}
	search, pack := middle(trace.StageLower), middle(trace.StageCompile)
	b.ReportMetric(float64(steps), "instructions")
	b.ReportMetric(middle(trace.StageRewrite), "rewrite-µs")
	b.ReportMetric(search, "search-µs")
	b.ReportMetric(pack, "packing-µs")
	if pack > 0 {
		b.ReportMetric(100*search/pack, "%search/packing")
	}
}

// network builds a method of float32 operators.
type network struct {
	*exectest.Flow
	tokens, width int
}

// encoder returns layers of a transformer on tokens of this width, as exporters write them.
func encoder(layers, tokens, width int) *pte.Method {
	n := &network{Flow: new(exectest.Flow), tokens: tokens, width: width}
	n.M.Name, n.M.Chains = "forward", make([]pte.Chain, 1)
	x := n.tensor(tokens, width)
	n.M.Inputs = []int{x}
	for range layers {
		x = n.sum(x, n.attention(n.norm(x)))
		y := n.product(n.norm(x), width, 4*width)
		z := n.tensor(tokens, 4*width)
		n.CallNamed("aten::gelu.out", y, n.Put(pte.Value{Kind: tensor.KindString, Long: &pte.Long{Str: "none"}}), z, z)
		x = n.sum(x, n.product(z, 4*width, width))
	}
	n.M.Outputs = []int{x}
	for i := range n.M.Operators {
		o := &n.M.Operators[i]
		o.Name, o.Overload = exectest.SplitName(o.Name)
	}
	return &n.M
}

func (n *network) tensor(sizes ...int) int {
	return n.Put(pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Float32, Sizes: sizes, DimOrder: tensor.ContiguousOrder(len(sizes))}})
}

func (n *network) weights(sizes ...int) int {
	count, _ := tensor.Product(sizes)
	data := tensor.View[float32](tensor.AlignedBytes(4 * count))
	for i := range data {
		data[i] = float32(i%17-8) / 100
	}
	return n.Constant(data, sizes...)
}

func (n *network) product(x, in, out int) int {
	y, one := n.tensor(n.tokens, out), n.Number(1)
	n.CallNamed("aten::addmm.out", n.weights(out), x, n.weights(in, out), one, one, y, y)
	return y
}

func (n *network) sum(a, b int) int {
	y := n.tensor(n.tokens, n.width)
	n.CallNamed("aten::add.out", a, b, n.Number(1), y, y)
	return y
}

func (n *network) norm(x int) int {
	y, mean, scale := n.tensor(n.tokens, n.width), n.tensor(n.tokens, 1), n.tensor(n.tokens, 1)
	eps := n.Put(pte.Value{Kind: tensor.KindDouble, Double: 1e-5})
	outs := n.Put(pte.Value{Kind: tensor.KindTensorList, Items: []int{y, mean, scale}})
	n.CallNamed("aten::native_layer_norm.out", x, n.Numbers(int64(n.width)), n.weights(n.width), n.weights(n.width), eps, y, mean, scale, outs)
	return y
}

// heads is the number of heads of attention.
const heads = 4

func (n *network) attention(x int) int {
	depth := n.width / heads
	q, k, v := n.head(x, 1, 0, 2), n.head(x, 1, 2, 0), n.head(x, 1, 0, 2)
	scores, scaled, shares := n.tensor(heads, n.tokens, n.tokens), n.tensor(heads, n.tokens, n.tokens), n.tensor(heads, n.tokens, n.tokens)
	n.CallNamed("aten::bmm.out", q, k, scores, scores)
	n.CallNamed("aten::mul.Scalar_out", scores, n.Put(pte.Value{Kind: tensor.KindDouble, Double: 0.25}), scaled, scaled)
	n.CallNamed("aten::_softmax.out", scaled, n.Number(-1), n.Truth(false), shares, shares)
	y, turned, flat := n.tensor(heads, n.tokens, depth), n.tensor(n.tokens, heads, depth), n.tensor(n.tokens, n.width)
	n.CallNamed("aten::bmm.out", shares, v, y, y)
	n.CallNamed("aten::permute_copy.out", y, n.Numbers(1, 0, 2), turned, turned)
	n.CallNamed("aten::view_copy.out", turned, n.Numbers(int64(n.tokens), int64(n.width)), flat, flat)
	return n.product(flat, n.width, n.width)
}

// head returns a projection of x by heads, with its dimensions in an order.
func (n *network) head(x int, order ...int64) int {
	sizes := []int{n.tokens, heads, n.width / heads}
	y, z := n.tensor(sizes...), n.tensor(sizes[order[0]], sizes[order[1]], sizes[order[2]])
	n.CallNamed("aten::view_copy.out", n.product(x, n.width, n.width), n.Numbers(int64(sizes[0]), int64(sizes[1]), int64(sizes[2])), y, y)
	n.CallNamed("aten::permute_copy.out", y, n.Numbers(order...), z, z)
	return z
}
