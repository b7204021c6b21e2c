package compiletest

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// TestNodes checks nodes that follow the rules, and others that break one.
func TestNodes(t *testing.T) {
	float := func() *xvalue { return &xvalue{datatype: fp32} }
	q8 := func(scale float32, zero int32) *xvalue { return &xvalue{datatype: qint8, scale: scale, zero: zero} }
	filter := func(scales ...float32) *xvalue { return &xvalue{datatype: qcint8, scales: scales} }
	bias := func(q byte, scales ...float32) *xvalue {
		return &xvalue{datatype: qcint32, scales: scales, data: []byte{0, 0, 0, q}}
	}
	inf := float32(math.Inf(1))
	perRow := func(nonbatch int32, readers ...uint8) *xvalue {
		return &xvalue{datatype: qdint8, nonbatch: nonbatch, readers: readers}
	}
	for name, c := range map[string]struct {
		node xnode
		want []int // rules
	}{
		"product of floats":          {xnode{tag: tagConv2d, in: []*xvalue{float(), float(), nil}, out: float()}, nil},
		"static product":             {xnode{tag: tagConv2d, in: []*xvalue{q8(.5, 1), filter(.25), bias(1, .125)}, out: q8(1, 0)}, nil},
		"floats by bytes":            {xnode{tag: tagConv2d, in: []*xvalue{float(), filter(.25), nil}, out: float()}, []int{21}},
		"bytes by bytes with a bias": {xnode{tag: tagFullyConnected, in: []*xvalue{float(), filter(.25), float()}, out: float()}, []int{21}},
		"scale of the bias":          {xnode{tag: tagConv2d, in: []*xvalue{q8(.5, 1), filter(.25), bias(1, .126)}, out: q8(1, 0)}, []int{21}},
		"element of the bias": {xnode{tag: tagConv2d, in: []*xvalue{q8(.5, 1), filter(.25), bias(0x80, .125)}, out: q8(1, 0)},
			[]int{21}},
		"ratio of a product":            {xnode{tag: tagConv2d, in: []*xvalue{q8(512, 1), filter(.5), nil}, out: q8(1, 0)}, []int{22}},
		"ratio of a sum":                {xnode{tag: tagAdd, in: []*xvalue{q8(1, 1), q8(0x1p-11, 0)}, out: q8(1, 0)}, []int{22}},
		"ratio of factors":              {xnode{tag: tagMultiply, in: []*xvalue{q8(16, 1), q8(16, 0)}, out: q8(1, 0)}, []int{22}},
		"ratio of a conversion":         {xnode{tag: tagConvert, in: []*xvalue{q8(129, 1)}, out: q8(1, 0)}, []int{22}},
		"bounds":                        {xnode{tag: tagAdd, in: []*xvalue{q8(1, 1), q8(1, 0)}, out: q8(1, 0), min: 3, max: 3.25}, []int{22}},
		"sum":                           {xnode{tag: tagAdd, in: []*xvalue{q8(1, 1), q8(2, 0)}, out: q8(1, 0)}, nil},
		"quotient of bytes":             {xnode{tag: 8, in: []*xvalue{q8(1, 1), q8(2, 0)}, out: q8(1, 0)}, []int{21}},
		"conversion to another type":    {xnode{tag: tagConvert, in: []*xvalue{float()}, out: &xvalue{datatype: qint32}}, []int{21}},
		"transpose":                     {xnode{tag: 5, in: []*xvalue{q8(1, 1)}, out: q8(1, 1)}, nil},
		"transpose with another scale":  {xnode{tag: 5, in: []*xvalue{q8(1, 1)}, out: q8(2, 1)}, []int{23}},
		"concatenation, zero point":     {xnode{tag: 32, in: []*xvalue{q8(1, 1), q8(1, 2)}, out: q8(1, 1)}, []int{23}},
		"dynamic product":               {xnode{tag: tagFullyConnected, in: []*xvalue{perRow(1, 2), filter(1), nil}, out: float()}, nil},
		"dynamic product, dimensions":   {xnode{tag: tagFullyConnected, in: []*xvalue{perRow(3), filter(1), nil}, out: float()}, []int{24}},
		"dynamic value of two readers":  {xnode{tag: tagConv2d, in: []*xvalue{perRow(3, 7), filter(1), nil}, out: float()}, []int{24}},
		"dynamic value of another node": {xnode{tag: 5, in: []*xvalue{perRow(1)}, out: perRow(1)}, []int{24, 24}},
	} {
		n, got := c.node, []int(nil)
		if n.min == n.max {
			n.min, n.max = -inf, inf
		}
		n.fault = func(rule int, format string, args ...any) {
			got = append(got, rule)
			t.Log(name + ": " + fmt.Sprintf(format, args...))
		}
		n.check()
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: rules %d, want %d", name, got, c.want)
		}
	}
}
