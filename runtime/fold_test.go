package runtime

import (
	"context"
	"os"
	"testing"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// TestFold loads a real program whose linear layers transpose their weights.
func TestFold(t *testing.T) {
	data, err := os.ReadFile("../testdata/digits/portable.pte")
	if err != nil {
		t.Fatal(err)
	}
	images, err := os.ReadFile("../testdata/digits/images.f32.bin")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Read(data)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	saved := movers
	defer func() { movers = saved }()
	run := func() (*Method, []byte) {
		m, err := p.Load(context.Background(), "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		x := m.Input(0).Tensor
		in := tensor.New(x.DType, x.Sizes...)
		copy(in.Data, images)
		if err := m.SetInput(0, in); err != nil {
			t.Fatal(err)
		}
		if err := m.Execute(context.Background()); err != nil {
			t.Fatal(err)
		}
		return m, m.Output(0).Tensor.Data
	}
	first, got := run()
	second, again := run()
	foldedValues, at := 0, []byte(nil)
	for i := range first.plan.Flow.Storages {
		s := &first.plan.Flow.Storages[i]
		if s.Kind != ir.Folded {
			continue
		}
		foldedValues++
		at = first.values[s.Values[0]].Tensor.Data
		if other := second.values[s.Values[0]].Tensor; &other.Data[0] != &at[0] || !other.Const {
			t.Errorf("value %d: two methods of a program have folded bytes of their own", s.Values[0])
		}
	}
	if foldedValues == 0 {
		t.Fatal("nothing was folded")
	}
	movers, p.foldings = nil, make(map[int]*folding)
	plain, want := run()
	if string(got) != string(want) || string(again) != string(want) {
		t.Errorf("folded programs compute something else: %x, %x, want %x", got, again, want)
	}
	if first.plan.Own.Size() > plain.plan.Own.Size() {
		t.Errorf("the arena grew from %d to %d", plain.plan.Own.Size(), first.plan.Own.Size())
	}
}
