package lower_test

import (
	"context"
	"math/bits"
	"testing"
	"time"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/lower"
	"github.com/etrun-go/etrun/runtime/pte"
)

// costly generates methods of many instructions of one operator on vectors.
type costly struct{ m pte.Method }

// manyElements is more than any rewrite may copy, and fits 32 bits.
const manyElements = 1 << min(36, bits.UintSize-6)

func (c *costly) value(storage pte.Storage, n int) int {
	c.m.Values = append(c.m.Values, pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Float32, Sizes: []int{n}, DimOrder: []uint8{0}, Storage: storage}})
	return len(c.m.Values) - 1
}

func (c *costly) call(op int, args ...int) {
	c.m.Chains[0].Instructions = append(c.m.Chains[0].Instructions, pte.Instruction{Kind: pte.KernelCall, Index: op, Args: args})
}

// The operators of costly methods.
var costlyOps = []string{"aten::alias_copy.out", "aten::mul.out", "aten::sigmoid.out", "aten::expand_copy.out", "aten::slice_copy.Tensor_out"}

// TestRewriteCost rewrites methods that no exporter makes; an algorithm of quadratic time would
// take minutes.
func TestRewriteCost(t *testing.T) {
	const many = 60_000
	for name, build := range map[string]func(c *costly){
		"a chain of copies": func(c *costly) {
			v := c.m.Inputs[0]
			for range many {
				out := c.value(pte.Unplanned, 4)
				c.call(0, v, out, out)
				v = out
			}
			c.m.Outputs = []int{v}
		},
		"copies of one value": func(c *costly) {
			for range many {
				out := c.value(pte.Unplanned, 4)
				c.call(0, c.m.Inputs[0], out, out)
				c.m.Outputs = append(c.m.Outputs, out)
				next := c.value(pte.Unplanned, 4)
				c.call(2, out, next, next)
			}
		},
		"one value with many readers": func(c *costly) {
			v := c.value(pte.Unplanned, 4)
			c.call(2, c.m.Inputs[0], v, v)
			for range many {
				out := c.value(pte.Unplanned, 4)
				c.call(1, c.m.Inputs[0], v, out, out)
				c.m.Outputs = append(c.m.Outputs, out)
			}
		},
		"unread results": func(c *costly) {
			v := c.m.Inputs[0]
			for range many {
				out := c.value(pte.Unplanned, 4)
				c.call(2, v, out, out)
				v = out
			}
		},
		"a large value between": func(c *costly) {
			number := func(n int64) int {
				c.m.Values = append(c.m.Values, pte.Value{Kind: tensor.KindInt, Int: n})
				return len(c.m.Values) - 1
			}
			large := c.value(pte.Unplanned, manyElements)
			size := len(c.m.Values) + 1
			number(manyElements)
			c.m.Values = append(c.m.Values, pte.Value{Kind: tensor.KindIntList, Items: []int{size - 1}}, pte.Value{Kind: tensor.KindBool})
			one := c.value(pte.Unplanned, 1)
			c.call(2, c.m.Inputs[1], one, one)
			c.call(3, one, size, size+1, large, large)
			out := c.value(pte.Unplanned, 1)
			c.call(4, large, number(0), number(0), number(1), number(1), out, out)
			c.m.Outputs = []int{out}
		},
	} {
		c := &costly{m: pte.Method{Chains: make([]pte.Chain, 1)}}
		c.m.Inputs = []int{c.value(pte.Unplanned, 4), c.value(pte.Unplanned, 1)}
		build(c)
		m, err := ir.Build(&c.m, costlyLinks(t))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		begun := time.Now()
		_, _, done, err := lower.Rewrite(context.Background(), m, kernels.NewCtx(nil), kernels.NewSet(portable.Ops()), lower.Budget{Bytes: 1 << 20, Work: 1 << 24}, nil)
		if took := time.Since(begun); err != nil || took > 20*time.Second {
			t.Errorf("%s: %v after %v", name, err, took)
		} else {
			t.Logf("%s: %d steps of %d after %v", name, len(done), len(m.Steps), took)
		}
	}
}

func costlyLinks(t *testing.T) (l ir.Links) {
	t.Helper()
	set := kernels.NewSet(portable.Ops())
	for _, name := range costlyOps {
		op, sig, ok, err := set.Lookup(name)
		if !ok || err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		l.Operators = append(l.Operators, ir.Operator{Op: op, Sig: sig})
	}
	return l
}
