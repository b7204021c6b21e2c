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
// not share a block, and every tensor fits its block.
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
		live := make(map[int]int) // by block: the tensor in it
		for i, c := range g.Calls {
			for k, v := range c.Args[:len(c.Args)-1] {
				owner := v
				for g.Writer(owner) >= 0 && g.Calls[g.Writer(owner)].View {
					owner = g.Calls[g.Writer(owner)].Args[0]
				}
				if b := p.block[owner]; k < 2 && b >= 0 && !(c.View && k > 0) && live[b] != owner && owner != c.Args[len(c.Args)-1] {
					t.Fatalf("seed %d, call %d: block %d of tensor %d has tensor %d", seed, i, b, owner, live[b])
				}
			}
			y := c.Args[len(c.Args)-1]
			if c.View || slices.Contains(g.Outputs, y) {
				if p.block[y] != -1 {
					t.Fatalf("seed %d: tensor %d has memory that it does not need", seed, y)
				}
				continue
			}
			b := p.block[y]
			if b < 0 || p.sizes[b] < g.Values[y].NBytes() {
				t.Fatalf("seed %d: tensor %d of %d bytes in block %d of %v", seed, y, g.Values[y].NBytes(), b, p.sizes)
			}
			if _, ok := live[b]; ok {
				shared++
			}
			live[b] = y
		}
	}
	if shared < 300 {
		t.Errorf("only %d blocks were reused, want at least 300", shared)
	}
}
