//go:build linux

package integration

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// weightState is a program lowered to a file: a product with a constant matrix, and a state whose sums are its next contents, or in the
// payload of the product its sum with the input.
func weightState(t *testing.T, constant, initial []float32, inPayload bool, change func(k *keeper, state, product int)) []byte {
	t.Helper()
	k := emptyKeeper(nil, "forward", nil)
	place := func(storage pte.Storage, data []float32) int {
		v := k.value(pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Float32, Sizes: []int{4, 4}, DimOrder: []uint8{0, 1},
			Storage: storage, Offset: k.ends[0]}})
		k.ends[0] += 64
		if data != nil {
			k.m.Values[v].Tensor.Data = tensor.BytesOf(data)
		}
		return v
	}
	s, x, w := place(pte.Planned, nil), place(pte.Planned, nil), place(pte.Constant, constant)
	if initial != nil {
		k.m.Values[s].Tensor.Storage, k.m.Values[s].Tensor.Data = pte.PlannedInit, tensor.BytesOf(initial)
	}
	product, sum, new := place(pte.Planned, nil), place(pte.Planned, nil), place(pte.Planned, nil)
	k.m.Inputs, k.m.Outputs = []int{x}, []int{product}
	k.call("aten::mm.out", x, w, product, product)
	k.call("aten::clamp.out", product, k.number(-9), k.number(9), sum, sum)
	k.m.Outputs = []int{sum}
	if change != nil {
		change(k, s, sum)
	}
	if inPayload {
		k.call("aten::add.out", s, x, k.number(1), new, new)
	} else {
		k.call("aten::cumsum.out", s, k.number(1), k.value(pte.Value{}), new, new) // no node computes it
	}
	k.call("aten::copy_", s, new, k.no(), s)
	k.m.Arenas = []pte.Arena{{Size: 4096}, {}}
	lowered, err := lowerGo(ptetest.Write(&pte.Program{Methods: []pte.Method{k.m}}, ptetest.Layout{}))
	if err != nil || !lowered.Lowered() {
		t.Fatal(err)
	}
	return lowered.Data.Bytes()
}

// TestStateInPayload checks that a state is suspected of being a constant of a payload only if nothing but its own update reads it,
// and the payload has its elements.
func TestStateInPayload(t *testing.T) {
	zeros, ones, numbers, transposed := make([]float32, 16), slices.Repeat([]float32{1}, 16), make([]float32, 16), make([]float32, 16)
	for i := range numbers {
		numbers[i], transposed[i/4+i%4*4] = float32(i), float32(i)
	}
	add := func(k *keeper, state, sum int) {
		total := k.value(pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Float32, Sizes: []int{4, 4}, DimOrder: []uint8{0, 1},
			Storage: pte.Planned, Offset: 1024}})
		k.call("aten::add.out", sum, state, k.number(1), total, total)
		k.m.Outputs = []int{total}
	}
	for name, c := range map[string]struct {
		constant, initial []float32
		inPayload         bool
		change            func(k *keeper, state, product int)
		suspect           bool
	}{
		"zeros":                          {zeros, nil, false, nil, true},
		"zeros in the file":              {zeros, zeros, false, nil, true},
		"the same elements":              {numbers, numbers, false, nil, true},
		"in another order":               {transposed, numbers, false, nil, true},
		"other elements":                 {numbers, ones, false, nil, false},
		"no initial contents":            {ones, nil, false, nil, false},
		"in one payload":                 {zeros, nil, true, nil, true},
		"in one payload, with an effect": {zeros, nil, true, add, false},
		"a state with an effect":         {zeros, nil, false, add, false},
	} {
		data := weightState(t, c.constant, c.initial, c.inPayload, c.change)
		by := etrun.WithDelegates(xnnpack.Backend{Engine: xnnpack.EngineGo})
		p, err := etrun.Parse(data, by)
		if err != nil {
			t.Fatal(err)
		}
		m, err := p.Load(context.Background(), "")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		list := p.Warnings()
		suspect := len(list) == 1 && list[0].Class == delegate.WarnFault &&
			strings.Contains(list[0].Text, "float32 of sizes 4x4, is read by its own update")
		if suspect != c.suspect {
			t.Errorf("%s: warnings %q", name, list)
		}
		m.Close()
		p.Close()
		if p, err = etrun.Parse(data, by, etrun.WithStrictPlan()); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Load(context.Background(), ""); errors.Is(err, etrun.ErrFormat) != c.suspect {
			t.Errorf("%s, strict: got %v", name, err)
		}
		p.Close()
	}
}
