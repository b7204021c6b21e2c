package lower

import (
	"strings"
	"time"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// callTime is what a call of an operator takes beside its work, in nanoseconds.
const callTime = 100

// rate is what an operator does, and how long a unit of that takes in float32 on one
// thread, in nanoseconds. The figures were measured by BenchmarkEstimate, which compares
// them with the operators as they are.
type rate struct {
	work func(o *operation) float64
	time float64
}

// rates are those of the operators that take most of the time of models, by name without
// overload.
var rates = map[string]rate{
	"aten::convolution":                 {convolved, 0.025},
	"aten::linear":                      {inner, 0.025},
	"aten::addmm":                       {inner, 0.02},
	"aten::mm":                          {inner, 0.025},
	"aten::bmm":                         {inner, 0.025},
	"aten::max_pool2d_with_indices":     {windows, 0.4},
	"aten::avg_pool2d":                  {windows, 0.6},
	"aten::mean":                        {reduced, 0.6},
	"aten::permute_copy":                {written, 0.25},
	"aten::transpose_copy":              {written, 0.25},
	"aten::gelu":                        {written, 0.8},
	"aten::upsample_bilinear2d":         {written, 1.5},
	"aten::_softmax":                    {written, 0.8},
	"aten::constant_pad_nd":             {written, 0.22},
	"aten::pow":                         {written, 0.3},
	"quantized_decomposed::quantize":    {written, 1.3},
	"quantized_decomposed::dequantize":  {written, 0.8},
	"aten::native_layer_norm":           {written, 0.4},
	"aten::_native_batch_norm_legit_no": {written, 0.3},
}

// families are the rates of all others.
var families = [...]rate{
	kernels.Exact:     {written, 0.15},
	kernels.Arith:     {written, 0.2},
	kernels.Pointwise: {written, 0.5},
	kernels.Sum:       {reduced, 0.2},
	kernels.Loose:     {reduced, 0.8},
}

// operation is a call with its graph.
type operation struct {
	g     *delegate.Graph
	c     *delegate.GraphCall
	share float64 // of the elements of tensors whose sizes vary
}

// Estimate is about how long a run of a graph takes on operators, on one thread, with a
// share of the elements that tensors of varying sizes have at their declared ones. Views
// cost nothing.
func Estimate(g *delegate.Graph, share float64) time.Duration {
	sum := 0.0
	for i := range g.Calls {
		if c := &g.Calls[i]; c.Op != nil {
			r := rateOf(c.Op)
			sum += callTime + r.work(&operation{g, c, share})*r.time
		}
	}
	return time.Duration(min(sum, float64(1<<60)))
}

// rateOf is an operator's own rate, or that of its family.
func rateOf(op *kernels.Op) rate {
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

// argument is a tensor argument, nil where it is none.
func (o *operation) argument(k int) *delegate.GraphValue {
	if k >= len(o.c.Args) || o.g.Values[o.c.Args[k]].Kind != tensor.KindTensor {
		return nil
	}
	return &o.g.Values[o.c.Args[k]]
}

// elements is how many a tensor has.
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
		for _, item := range o.g.Values[o.c.Args[k]].Items {
			if item >= 0 {
				n += o.elements(&o.g.Values[item])
			}
		}
	}
	return n
}

// reduced counts the elements of the first argument, or of the results where these are more.
func reduced(o *operation) float64 {
	if t := o.argument(0); t != nil {
		return max(o.elements(t), written(o))
	}
	return written(o)
}

// loadFactor is what it takes to fetch an element of a matrix, in products.
const loadFactor = 6

// inner counts the products of a product of matrices, of which the last dimension of the
// left one tells how many make a sum, and what it takes to fetch the right one.
func inner(o *operation) float64 {
	at := 0
	if strings.HasPrefix(o.c.Op.Schema, "aten::addmm") {
		at = 1
	}
	left, right := o.argument(at), o.argument(at+1)
	if left == nil || right == nil || len(left.Sizes) == 0 {
		return written(o)
	}
	return written(o)*float64(left.Sizes[len(left.Sizes)-1]) + loadFactor*o.elements(right)
}

// What else a convolution does, in products: it gathers the operands of a sum, which takes
// long where windows do not lie side by side; or it adds up rows, where groups are of one
// channel.
const (
	gatherFactor  = 8
	stridedFactor = 48
	rowFactor     = 100
	planeFactor   = 1.4
)

// convolved counts the products of a convolution.
func convolved(o *operation) float64 {
	in, weight := o.argument(0), o.argument(1)
	if in == nil || weight == nil || len(weight.Sizes) < 3 || len(in.Sizes) != len(weight.Sizes) || weight.Sizes[0] == 0 {
		return written(o)
	}
	out, sum := written(o), o.elements(weight)/float64(weight.Sizes[0])
	switch {
	case o.g.Values[o.c.Args[6]].Bool: // transposed
		return o.elements(in) * sum
	case weight.Sizes[1] == 1 && in.Sizes[1] > 1:
		return out*sum*planeFactor + rowFactor*out*sum/rowOf(weight, o)
	case sum == float64(weight.Sizes[1]) && !o.isStrided():
		return out * sum
	}
	factor := float64(gatherFactor)
	if o.isStrided() {
		factor = stridedFactor
	}
	return out * sum * (1 + factor/float64(weight.Sizes[0]))
}

// rowOf is the number of products that a row of the result takes with a row of the kernel.
func rowOf(weight *delegate.GraphValue, o *operation) float64 {
	last := weight.Sizes[len(weight.Sizes)-1]
	if t := o.argument(len(o.c.Sig.Args) - 1); t != nil && len(t.Sizes) > 0 {
		return float64(max(last*t.Sizes[len(t.Sizes)-1], 1))
	}
	return float64(max(last, 1))
}

// isStrided reports a window that moves by more than one element.
func (o *operation) isStrided() bool {
	for _, v := range o.g.Values[o.c.Args[3]].Items {
		if o.g.Values[v].Int > 1 {
			return true
		}
	}
	return false
}

// windows counts the elements that the windows of a pool have.
func windows(o *operation) float64 {
	area := 1.0
	items := o.g.Values[o.c.Args[1]].Items
	for _, v := range items {
		area *= float64(max(o.g.Values[v].Int, 1))
	}
	if len(items) == 1 {
		area *= area
	}
	if t := o.argument(len(o.c.Sig.Args) - 1); t != nil {
		return o.elements(t) * area
	}
	return written(o) * area
}
