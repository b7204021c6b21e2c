//go:build linux

package lower_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/exec/exectest"
	"github.com/etrun-go/etrun/runtime/pte"
)

// typed generates methods of tensors of one dimension.
type typed struct {
	sample
	x, n int // the input of n elements
	d    tensor.DType
}

func newTyped(d tensor.DType, n int) *typed {
	l := &floats{scalars: make(map[float32]int)}
	c := &typed{sample: sample{Flow: &exectest.Flow{Language: l}, l: l}, n: n, d: d}
	c.M.Name, c.M.Chains = "forward", make([]pte.Chain, 1)
	c.x = c.out(d, n)
	c.M.Inputs = []int{c.x}
	return c
}

func (c *typed) out(d tensor.DType, n int) int {
	v := c.Put(pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: d, Sizes: []int{n}, DimOrder: []uint8{0}, Storage: pte.Planned,
		Offset: c.l.offset}})
	c.l.offset += int64(n*d.Size()+63) / 64 * 64
	return v
}

func (c *typed) cast(v int, d tensor.DType) int {
	return c.to(c.out(d, c.n), "aten::_to_copy.out", v, c.Truth(false), c.Nothing())
}

// slice returns elements of v; pad adds elements of a number.
func (c *typed) slice(v, from, to int) int {
	return c.to(c.out(c.d, to-from), "aten::slice_copy.Tensor_out", v, c.Number(0), c.Number(int64(from)), c.Number(int64(to)), c.Number(1))
}

func (c *typed) pad(v, front, back, number int) int {
	return c.to(c.out(c.d, c.n), "aten::constant_pad_nd.out", v, c.Numbers(int64(front), int64(back)), c.Number(int64(number)))
}

// joined concatenates a constant of n equal elements and a part of x.
func (c *typed) joined(element []byte, n int) int {
	v := c.Put(pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: c.d, Sizes: []int{n}, DimOrder: []uint8{0}, Storage: pte.Constant,
		Data: bytes.Repeat(element, n)}})
	list := c.Put(pte.Value{Kind: tensor.KindTensorList, Items: []int{v, c.slice(c.x, n, c.n)}})
	return c.to(c.out(c.d, c.n), "aten::cat.out", list, c.Number(0))
}

// compare runs the method with and without rewrites; y is its result.
func (c *typed) compare(y int, r *rand.Rand) error {
	list := c.Put(pte.Value{Kind: tensor.KindTensorList, Items: []int{y, y}})
	c.M.Outputs = []int{c.to(c.out(c.d, 2*c.n), "aten::cat.out", list, c.Number(0))}
	c.M.Arenas = []pte.Arena{{Size: c.l.offset}}
	x := tensor.Make(c.d, []int{c.n}, nil, tensor.Static)
	x.Bind(tensor.AlignedBytes(x.NBytes()))
	for i := range x.Data {
		if x.Data[i] = byte(r.UintN(256)); c.d == tensor.Bool {
			x.Data[i] &= 1
		}
	}
	var results [2][]byte
	for i, rewrite := range []bool{false, true} {
		live, err := loadFloats(&c.M, rewrite)
		if err != nil {
			return err
		}
		if err := live.SetInput(0, x); err != nil {
			return err
		}
		if err := live.Execute(context.Background()); err != nil {
			return err
		}
		results[i] = bytes.Clone(live.Tensor(0).Data)
		live.Close()
	}
	if !sameElements(c.d, results[1], results[0]) {
		return fmt.Errorf("of % x: got % x, want % x", x.Data, results[1], results[0])
	}
	return nil
}

// sameElements compares bytes; a NaN equals any other.
func sameElements(d tensor.DType, a, b []byte) bool {
	for i := 0; i < len(a); i += d.Size() {
		x, y := a[i:i+d.Size()], b[i:i+d.Size()]
		if !bytes.Equal(x, y) && !(d.IsFloat() && isNaN(d, x) && isNaN(d, y)) {
			return false
		}
	}
	return true
}

func isNaN(d tensor.DType, b []byte) bool {
	var x [1]float64
	tensor.Loader[float64](d)(x[:], append(tensor.AlignedBytes(d.Size())[:0], b...))
	return x[0] != x[0]
}

// typedTypes are the types that operators compute on.
var typedTypes = []tensor.DType{tensor.Uint8, tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64, tensor.Float16, tensor.BFloat16,
	tensor.Float32, tensor.Float64, tensor.Bool}

// TestRewritesKeepElements has chains of conversions to other types and back, not all of which have the elements.
func TestRewritesKeepElements(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 5))
	for k := range 8 * len(typedTypes) * len(typedTypes) {
		d, other, third := typedTypes[k%len(typedTypes)], typedTypes[k/len(typedTypes)%len(typedTypes)], typedTypes[r.IntN(len(typedTypes))]
		c := newTyped(d, []int{1, 2, 7, 300}[r.IntN(4)])
		v := c.cast(c.x, other)
		if k%2 == 0 {
			v = c.cast(v, third)
		}
		if err := c.compare(c.cast(v, d), r); err != nil {
			t.Errorf("%d elements of %v as %v and perhaps as %v: %v", c.n, d, other, third, err)
		}
	}
}

// TestRewritesKeepPositions replaces elements of a tensor by a number, or by a constant with the bits of a small number.
func TestRewritesKeepPositions(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for k := range 24 * len(typedTypes) {
		d, n, number := typedTypes[k%len(typedTypes)], []int{1, 2, 7, 300}[r.IntN(4)], r.IntN(2)
		front := r.IntN(min(n, 2) + 1)
		back := r.IntN(2)
		back = min(back, n-front)
		c := newTyped(d, n)
		if err := c.compare(c.pad(c.slice(c.x, front, n-back), front, back, number), r); err != nil {
			t.Errorf("%d elements of %v, %d and %d replaced by %d: %v", n, d, front, back, number, err)
		}
		element := make([]byte, d.Size())
		element[0] = byte(number)
		c = newTyped(d, n)
		if err := c.compare(c.joined(element, 1), r); err != nil {
			t.Errorf("%d elements of %v, the first one replaced by %d: %v", n, d, number, err)
		}
	}
}
