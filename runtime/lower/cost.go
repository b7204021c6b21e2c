package lower

import (
	"strings"
	"time"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// All figures are in nanoseconds of one thread, on float32. They are fitted to LowerTune's
// measurements of about five hundred regions of models, on a processor with AVX-512 at 3 GHz.
// BenchmarkEstimate compares them with measured operators.

// callTime is the overhead of an operator call.
const callTime = 22

// timeOf returns the time of a call without its overhead.
type timeOf func(o *operation) float64

// each charges a time per unit of work.
func each(work func(o *operation) float64, time float64) timeOf {
	return func(o *operation) float64 {
		n := work(o)
		return n * near(n, time) * speed.element
	}
}

// near charges a time per element for n elements, half of it if they fit the first-level cache,
// unless computing them takes longer.
func near(n, time float64) float64 {
	if n <= 1<<12 && time < 0.25 {
		return time / 2
	}
	return time
}

// rates are the rates of the operators that dominate the time of models, by name without overload.
var rates = map[string]timeOf{
	"aten::convolution":                 convolution,
	"aten::linear":                      product,
	"aten::addmm":                       product,
	"aten::mm":                          product,
	"aten::bmm":                         product,
	"aten::permute_copy":                permuted,
	"aten::transpose_copy":              permuted,
	"aten::_softmax":                    softmax,
	"aten::add":                         broadcast,
	"aten::sub":                         broadcast,
	"aten::mul":                         broadcast,
	"aten::div":                         broadcast,
	"aten::maximum":                     broadcast,
	"aten::minimum":                     broadcast,
	"aten::max_pool2d_with_indices":     each(windows, 0.2),
	"aten::avg_pool2d":                  each(windows, 0.25),
	"aten::mean":                        mean,
	"aten::gelu":                        each(written, 0.7),
	"aten::silu":                        each(written, 0.38),
	"aten::tanh":                        each(written, 0.12),
	"aten::upsample_bilinear2d":         each(written, 1.7),
	"aten::pow":                         each(written, 0.12),
	"aten::cat":                         joined,
	"aten::slice_copy":                  each(written, 0.07),
	"aten::split_with_sizes_copy":       each(written, 0.1),
	"aten::split_copy":                  each(written, 0.1),
	"aten::constant_pad_nd":             each(written, 0.2),
	"quantized_decomposed::quantize":    each(written, 0.23),
	"quantized_decomposed::dequantize":  each(written, 0.08),
	"aten::native_layer_norm":           each(written, 0.22),
	"aten::_native_batch_norm_legit_no": each(written, 0.35),
	"dim_order_ops::_clone_dim_order":   each(written, 0.05),
	"dim_order_ops::_to_dim_order_copy": each(written, 0.05),
}

// families are the rates of all other operators.
var families = [...]timeOf{
	kernels.Exact:     each(written, 0.15),
	kernels.Arith:     each(written, 0.18),
	kernels.Pointwise: each(written, 0.45),
	kernels.Sum:       each(reduced, 0.2),
	kernels.Loose:     each(reduced, 0.8),
}

// slowdown is the time relative to the rates' processor, for products and for elementwise work. The rates are of a processor
// that computes products at half the speed of the one on which the rates of XNNPACK's engines for AVX-512 were measured;
// the estimates of both are compared.
type slowdown struct{ product, element float64 }

var speed = map[string]slowdown{"avx512": {0.5, 0.75}, "avx2": {1, 1}, "neon": {2, 1.5}, "go": {5, 3}}[simd.Level()]

// operation is a call and its graph.
type operation struct {
	g     *delegate.Graph
	c     *delegate.GraphCall
	share float64 // of the elements of tensors with varying sizes
}

// Estimate returns the approximate time of a run of a graph on operators, on one thread. share is
// the fraction of the declared elements that tensors of varying sizes have. Views cost nothing.
func Estimate(g *delegate.Graph, share float64) time.Duration {
	sum, o := 0.0, operation{g: g, share: share}
	for i := range g.Calls {
		if o.c = &g.Calls[i]; o.c.Op != nil {
			sum += callTime + rateOf(o.c.Op)(&o)
		}
	}
	return time.Duration(min(sum, float64(1<<60)))
}

// callOfDelegate is the overhead of a delegate call.
const callOfDelegate = 20 * time.Nanosecond

// asTheyAre estimates the time of a graph's calls on one thread, one by one, on operators and as
// separate delegates.
func asTheyAre(g *delegate.Graph, share float64) time.Duration {
	return Estimate(g, share) + inPayloads(g)
}

// inPayloads returns the part of that time spent in payloads.
func inPayloads(g *delegate.Graph) (t time.Duration) {
	for i := range g.Calls {
		if p := g.Calls[i].Payload; p != nil {
			t += callOfDelegate + p.Estimate()
		}
	}
	return t
}

// rateOf returns the rate of an operator or of its family.
func rateOf(op *kernels.Op) timeOf {
	name, _, _ := strings.Cut(op.Name(), ".")
	for _, suffix := range [...]string{"", "_per_tensor", "_per_channel", "_per_token", "_training"} {
		if short, ok := strings.CutSuffix(name, suffix); ok {
			if r, ok := rates[short]; ok {
				return r
			}
		}
	}
	return families[op.Family]
}

// absent is an argument that a call does not have: an application's operator can have the name of
// another one and other arguments.
var absent delegate.GraphValue

// value returns an argument.
func (o *operation) value(k int) *delegate.GraphValue {
	if k < 0 || k >= len(o.c.Args) || o.c.Args[k] < 0 {
		return &absent
	}
	return &o.g.Values[o.c.Args[k]]
}

// argument returns a tensor argument, nil if it is none.
func (o *operation) argument(k int) *delegate.GraphValue {
	if v := o.value(k); v.Kind == tensor.KindTensor {
		return v
	}
	return nil
}

// out returns the last tensor that the call writes, nil if that is a list.
func (o *operation) out() *delegate.GraphValue { return o.argument(len(o.c.Sig.Args) - 1) }

// ints returns a list argument.
func (o *operation) ints(k int) (list []int) {
	for _, v := range o.value(k).Items {
		list = append(list, int(o.g.Values[v].Int))
	}
	return list
}

// elements returns the number of elements of a tensor.
func (o *operation) elements(v *delegate.GraphValue) float64 {
	n, _ := tensor.Product(v.Sizes)
	if v.Dynamism != tensor.Static {
		return float64(n) * o.share
	}
	return float64(n)
}

// written counts the elements of the results.
func written(o *operation) (n float64) {
	for k := range o.c.Sig.Args {
		if !o.c.Sig.Args[k].Out {
			continue
		}
		if t := o.argument(k); t != nil {
			n += o.elements(t)
		}
		for _, item := range o.value(k).Items {
			if item >= 0 {
				n += o.elements(&o.g.Values[item])
			}
		}
	}
	return n
}

// reduced counts the elements of the first argument, or of the results if they have more.
func reduced(o *operation) float64 {
	if t := o.argument(0); t != nil {
		return max(o.elements(t), written(o))
	}
	return written(o)
}

// windows counts the elements in all windows of a pool.
func windows(o *operation) float64 {
	area, list := 1.0, o.ints(1)
	for _, n := range list {
		area *= float64(max(n, 1))
	}
	if len(list) == 1 {
		area *= area
	}
	if t := o.out(); t != nil {
		return o.elements(t) * area
	}
	return written(o) * area
}

// last returns a tensor's innermost size, at least 1.
func last(v *delegate.GraphValue) int {
	if len(v.Sizes) == 0 {
		return 1
	}
	return max(v.Sizes[len(v.Sizes)-1], 1)
}

// scaled scales an estimate by the ratio of another measurement to its estimate.
func scaled(d, measured, estimated time.Duration) time.Duration {
	return time.Duration(float64(d) * float64(measured) / float64(max(estimated, 1)))
}
