package integration

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/internal/cases"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/exec/exectest"
	"github.com/etrun-go/etrun/runtime/pte"
)

// TestViewsOfCalls runs each program with small sizes alone, and behind calls with larger ones: the answers
// are equal, and refused without a panic where sizes do not agree.
func TestViewsOfCalls(t *testing.T) {
	for _, tt := range []struct {
		file         string
		large, small []int
		class        error // of both, nil: they run
	}{
		{"elided_dynamic.pte", []int{1, 2, 8, 8}, []int{1, 2, 3, 4}, etrun.ErrInput},
		{"view_unbounded.pte", []int{8, 8}, []int{2, 2}, nil},
		{"view_written.pte", []int{8, 24, 6}, []int{8, 18, 6}, etrun.ErrInput},
	} {
		for name, mode := range everyPlan {
			p, err := etrun.Open("../../testdata/views/"+tt.file, etrun.WithPlan(mode), etrun.WithLowering(etrun.LowerOff), etrun.WithThreads(1))
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			alone, want := viewAnswer(t, p, 0, tt.small)
			for _, fill := range []float32{1, 2} {
				got, err := viewAnswer(t, p, fill, tt.large, tt.small)
				if !slices.Equal(got, alone) || (err == nil) != (want == nil) {
					t.Errorf("%s, plan %s: got %x, %v; alone %x, %v", tt.file, name, got, err, alone, want)
				}
			}
			if errors.Is(want, etrun.ErrPanic) || tt.class != nil && !errors.Is(want, tt.class) {
				t.Errorf("%s, plan %s: got %v, want class %v", tt.file, name, want, tt.class)
			}
		}
	}
}

// viewAnswer returns the outputs of the last of several calls in one instance.
func viewAnswer(t *testing.T, p *etrun.Program, fill float32, calls ...[]int) (answer []byte, err error) {
	t.Helper()
	m, err := p.Load(context.Background(), "")
	if err != nil {
		return nil, err
	}
	defer m.Close()
	for i, sizes := range calls {
		x := tensor.New(tensor.Float32, sizes...)
		for k := range tensor.Data[float32](x) {
			if tensor.Data[float32](x)[k] = 1; i < len(calls)-1 {
				tensor.Data[float32](x)[k] = fill
			}
		}
		if err := m.SetInput(0, x); err != nil {
			t.Fatal(err)
		}
		err = m.Execute(context.Background())
	}
	for i := 0; err == nil && i < m.NumOutputs(); i++ {
		answer = append(answer, tensorOf(m, i).Data...)
	}
	return answer, err
}

// TestElidedViewsFollow runs random programs of a dynamic value and an elided view of it, at random sizes
// below their bounds, each after a call that fills all bytes with others. The view has the elements that the call wrote, or the call is
// refused.
func TestElidedViewsFollow(t *testing.T) {
	n, ran, refused := cases.Of(1000, 3000), 0, 0
	for seed := range uint64(n) {
		r := rand.New(rand.NewPCG(seed, 7))
		bound, view := randomView(r)
		m := elidedMethod(t, bound, view, r)
		for range 4 {
			if _, err := runRandom(m, r, bound); err != nil {
				t.Fatalf("seed %d: %v viewed as %v: %v", seed, bound, view, err)
			}
			x, err := runRandom(m, r, below(r, bound))
			switch out := (*tensor.Tensor)(nil); {
			case errors.Is(err, etrun.ErrPanic) || err != nil && !errors.Is(err, etrun.ErrInput):
				t.Fatalf("seed %d: %v viewed as %v, sizes %v: %v", seed, bound, view, x.Sizes, err)
			case err != nil:
				refused++
			default:
				ran++
				if out = tensorOf(m, 0); !slices.Equal(out.Data, x.Data) {
					t.Fatalf("seed %d: %v viewed as %v, sizes %v: got sizes %v and %d bytes, want %d", seed, bound, view, x.Sizes, out.Sizes,
						len(out.Data), len(x.Data))
				}
			}
		}
		m.Close()
	}
	if ran < n || refused < n/4 {
		t.Errorf("%d calls ran, %d were refused", ran, refused)
	}
}

// runRandom runs a method with a random input of some sizes.
func runRandom(m *etrun.Method, r *rand.Rand, sizes []int) (*tensor.Tensor, error) {
	x := tensor.New(tensor.Float32, sizes...)
	for k := range x.Data {
		x.Data[k] = byte(r.Uint32())
	}
	return x, errors.Join(m.SetInput(0, x), m.Execute(context.Background()))
}

// randomView returns the declared sizes of a value, and of a view of it.
func randomView(r *rand.Rand) (bound, view []int) {
	for range 1 + r.IntN(3) {
		n, m := 1+r.IntN(4), 1+r.IntN(4)
		switch r.IntN(4) {
		case 0:
			bound, view = append(bound, n*m), append(view, n, m)
		case 1:
			bound, view = append(bound, n, m), append(view, n*m)
		case 2:
			bound, view = append(bound, n, m), append(view, m, n)
		default:
			bound, view = append(bound, n), append(view, 1, n)
		}
	}
	return bound, view
}

// below returns sizes within a bound, often the bound itself.
func below(r *rand.Rand, bound []int) []int {
	sizes := slices.Clone(bound)
	for d := range sizes {
		if r.IntN(2) == 0 {
			sizes[d] = 1 + r.IntN(bound[d])
		}
	}
	return sizes
}

// elidedMethod loads y = copy(x), then z = copy(view of y), where the view has no instruction.
func elidedMethod(t *testing.T, bound, view []int, r *rand.Rand) *etrun.Method {
	t.Helper()
	offset, bytes := int64(0), int64(4)
	for _, n := range bound {
		bytes *= int64(n)
	}
	value := func(sizes []int, at int64, d tensor.Dynamism) pte.Value {
		return pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Float32, Sizes: sizes, Dynamism: d,
			DimOrder: tensor.ContiguousOrder(len(sizes)), Storage: pte.Planned, Offset: at}}
	}
	kind := tensor.DynamicBound
	if r.IntN(8) == 0 {
		kind = tensor.DynamicUnbound
	}
	next := (bytes + 63) &^ 63
	spec := pte.Method{Name: "forward", Inputs: []int{0}, Outputs: []int{3}, Arenas: []pte.Arena{{Size: 3 * next}},
		Values: []pte.Value{value(bound, offset, kind), value(bound, next, kind),
			value(view, next, tensor.Dynamism(r.IntN(2))), value(view, 2*next, tensor.DynamicBound), {}},
		Operators: []pte.Operator{{Name: "aten::clone", Overload: "out"}},
		Chains:    []pte.Chain{{Instructions: []pte.Instruction{exectest.Call(0, 0, 4, 1, 1), exectest.Call(0, 2, 4, 3, 3)}}}}
	m, err := loadMethod(t, spec, etrun.WithOperatorSet(kernels.NewSet(portable.Ops())), etrun.WithLowering(etrun.LowerOff))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestViewsWrittenBeyondTheirBytes runs y = neg(z) into the result of a view of x, at random sizes of both.
// A call is refused if the result has more bytes than x.
func TestViewsWrittenBeyondTheirBytes(t *testing.T) {
	late := time.AfterFunc(time.Minute, func() { panic("a call that writes beyond the bytes of a view does not end") })
	defer late.Stop()
	for name, mode := range everyPlan {
		m := writtenView(t, etrun.WithPlan(mode))
		ran, refused := 0, 0
		for seed := range uint64(300) {
			r := rand.New(rand.NewPCG(seed, 8))
			x, z := tensor.New(tensor.Float32, 2*(1+r.IntN(4)), 8), tensor.New(tensor.Float32, 1+r.IntN(32), 2)
			for k := range tensor.Data[float32](z) {
				tensor.Data[float32](z)[k] = float32(k + 1)
			}
			err := errors.Join(m.SetInput(0, x), m.SetInput(1, z), m.Execute(context.Background()))
			switch fits := z.Numel() <= x.Numel(); {
			case !fits && !errors.Is(err, etrun.ErrInput), fits && err != nil:
				t.Fatalf("plan %s, %v into a view of %v: %v", name, z.Sizes, x.Sizes, err)
			case !fits:
				refused++
			default:
				ran++
				if got := tensorOf(m, 0); !slices.Equal(got.Sizes, z.Sizes) || tensor.Data[float32](got)[z.Numel()-1] != -float32(z.Numel()) {
					t.Fatalf("plan %s, %v into a view of %v: got %v", name, z.Sizes, x.Sizes, tensor.Data[float32](got))
				}
			}
		}
		if m.Close(); ran < 50 || refused < 50 {
			t.Errorf("plan %s: %d calls ran, %d were refused", name, ran, refused)
		}
	}
}

// writtenView loads y = view(x); neg(z) into y; copy(y).
func writtenView(t *testing.T, options ...etrun.Option) *etrun.Method {
	t.Helper()
	value := func(at int64, sizes ...int) pte.Value {
		return pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Float32, Sizes: sizes, Dynamism: tensor.DynamicBound,
			DimOrder: tensor.ContiguousOrder(len(sizes)), Storage: pte.Planned, Offset: at}}
	}
	spec := pte.Method{Name: "forward", Inputs: []int{0, 1}, Outputs: []int{3}, Arenas: []pte.Arena{{Size: 768}},
		Values: []pte.Value{value(0, 8, 8), value(256, 32, 2), value(0, 32, 2), value(512, 32, 2), {},
			{Kind: tensor.KindInt, Int: -1}, {Kind: tensor.KindInt, Int: 2}, {Kind: tensor.KindIntList, Items: []int{5, 6}}},
		Operators: []pte.Operator{{Name: "executorch_prim::et_view", Overload: "default"}, {Name: "aten::neg", Overload: "out"}, {Name: "aten::clone", Overload: "out"}},
		Chains:    []pte.Chain{{Instructions: []pte.Instruction{exectest.Call(0, 0, 7, 2), exectest.Call(1, 1, 2, 2), exectest.Call(2, 2, 4, 3, 3)}}}}
	options = append(options, etrun.WithOperatorSet(kernels.NewSet(portable.Ops())), etrun.WithLowering(etrun.LowerOff), etrun.WithThreads(1))
	m, err := loadMethod(t, spec, options...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
