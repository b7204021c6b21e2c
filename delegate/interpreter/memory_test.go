package interpreter

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// TestPlace assigns memory to the tensors of random graphs: tensors with overlapping lifetimes do
// not share bytes, and have bytes for their size.
func TestPlace(t *testing.T) {
	sig, err := kernels.ParseSchema("test::add.out(Tensor a, Tensor b, *, Tensor(a!) out)")
	if err != nil {
		t.Fatal(err)
	}
	shared := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		g := &lowering.Graph{Inputs: []int{0, 1}}
		size := func() int {
			g.Values = append(g.Values, lowering.GraphValue{Kind: tensor.KindTensor, DType: tensor.Int8, Sizes: []int{r.IntN(40)}})
			return len(g.Values) - 1
		}
		size()
		size()
		for range 3 + r.IntN(20) {
			a, b := r.IntN(len(g.Values)), r.IntN(len(g.Values))
			y := size()
			if c := (lowering.GraphCall{Sig: sig, Args: []int{a, b, y, y}}); r.IntN(4) > 0 {
				g.Calls = append(g.Calls, c)
				continue
			}
			g.Values[y].Sizes = g.Values[a].Sizes
			g.Calls = append(g.Calls, lowering.GraphCall{View: true, Args: []int{a, y}})
		}
		g.Outputs = []int{len(g.Values) - 1}
		p := place(g)
		owners := slices.Repeat([]int{-1}, int(p.layout.Size)) // by byte: the tensor that was written there last
		memory := func(v int) []int {
			if p.item[v] < 0 {
				return nil
			}
			return owners[p.layout.Offsets[p.item[v]]:][:g.Values[v].NBytes()]
		}
		for i, c := range g.Calls {
			y := c.Args[len(c.Args)-1]
			for k, v := range c.Args[:len(c.Args)-1] {
				owner := v
				for g.Writer(owner) >= 0 && g.Calls[g.Writer(owner)].View {
					owner = g.Calls[g.Writer(owner)].Args[0]
				}
				if b := memory(owner); k < 2 && owner != y && slices.ContainsFunc(b, func(o int) bool { return o != owner }) {
					t.Fatalf("seed %d, call %d: tensor %d has bytes of %v", seed, i, owner, b)
				}
			}
			if c.View || slices.Contains(g.Outputs, y) {
				if p.item[y] != -1 {
					t.Fatalf("seed %d: tensor %d has memory that it does not need", seed, y)
				}
				continue
			}
			if p.item[y] < 0 {
				t.Fatalf("seed %d: tensor %d has no memory", seed, y)
			}
			b := memory(y)
			if slices.ContainsFunc(b, func(o int) bool { return o >= 0 }) {
				shared++
			}
			for i := range b {
				b[i] = y
			}
		}
	}
	if shared < 300 {
		t.Errorf("bytes were reused only %d times, want at least 300", shared)
	}
}
