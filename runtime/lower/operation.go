package lower

import (
	regions "github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// operation is a call and its graph.
type operation struct {
	g     *regions.Graph
	c     *regions.GraphCall
	share float64 // of the elements of tensors with varying sizes
}

// value returns an argument.
func (o *operation) value(k int) *regions.GraphValue {
	if k < 0 || k >= len(o.c.Args) || o.c.Args[k] < 0 {
		return &absent
	}
	return &o.g.Values[o.c.Args[k]]
}

// argument returns a tensor argument, nil if it is none.
func (o *operation) argument(k int) *regions.GraphValue {
	if v := o.value(k); v.Kind == tensor.KindTensor {
		return v
	}
	return nil
}

// out returns the last tensor that the call writes, nil if that is a list.
func (o *operation) out() *regions.GraphValue { return o.argument(len(o.c.Sig.Args) - 1) }

// ints returns a list argument.
func (o *operation) ints(k int) (list []int) {
	for _, v := range o.value(k).Items {
		list = append(list, int(o.g.Values[v].Int))
	}
	return list
}

// elements returns the number of elements of a tensor.
func (o *operation) elements(v *regions.GraphValue) float64 {
	n, _ := tensor.Product(v.Sizes)
	if v.Dynamism != tensor.Static {
		return float64(n) * o.share
	}
	return float64(n)
}

// halves counts the elements of 16-bit floats in arguments that are not constants.
func (o *operation) halves() (n float64) {
	for k := range o.c.Sig.Args {
		if t := o.argument(k); t != nil && t.Data == nil && (t.DType == tensor.Float16 || t.DType == tensor.BFloat16) {
			n += o.elements(t)
		}
	}
	return n
}

// written counts the elements of the results.
func (o *operation) written() (n float64) {
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

// absent is an argument that a call does not have: an application's operator can have the name of
// another one and other arguments.
var absent regions.GraphValue

// last returns a tensor's innermost size, at least 1.
func last(v *regions.GraphValue) int {
	if len(v.Sizes) == 0 {
		return 1
	}
	return max(v.Sizes[len(v.Sizes)-1], 1)
}
