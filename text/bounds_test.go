package text

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// sketch is a method whose steps are added one by one. They are not run.
type sketch struct {
	t *testing.T
	m ir.Method
}

func (s *sketch) add(v ir.Value) int {
	s.m.Values = append(s.m.Values, v)
	return len(s.m.Values) - 1
}

// tensor adds a tensor with a storage of its own.
func (s *sketch) tensor(k ir.Kind, d tensor.DType, sizes ...int) int {
	v := s.add(ir.Value{Kind: tensor.KindTensor, Tensor: &ir.Tensor{DType: d, Sizes: sizes}, Storage: len(s.m.Storages)})
	s.m.Storages = append(s.m.Storages, ir.Storage{Kind: k, Values: []int{v}})
	return v
}

func (s *sketch) int(n int64) int { return s.add(ir.Value{Kind: tensor.KindInt, Int: n, Storage: -1}) }

// call adds a step. Arguments that are not given are none.
func (s *sketch) call(name string, result int, args map[string]int) {
	op, sig, ok, err := etrun.DefaultOperators().Lookup(name)
	if !ok || err != nil {
		s.t.Fatalf("%s: %v", name, err)
	}
	step := ir.Step{Kind: ir.KernelCall, Op: op, Sig: sig, Origin: ir.Origin{Index: len(s.m.Steps)}}
	none := s.add(ir.Value{Kind: tensor.None, Storage: -1})
	for i := range sig.Args {
		at, given := args[sig.Args[i].Name]
		switch {
		case given:
		case sig.Args[i].Out:
			at = result
		default:
			at = none
		}
		step.Args = append(step.Args, at)
	}
	if len(sig.Args) < sig.Slots() {
		step.Args = append(step.Args, result)
	}
	s.m.Steps = append(s.m.Steps, step)
}

// TestBoundOf derives indices of all operators that index from a position, in random ways.
func TestBoundOf(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	names := etrun.DefaultOperators().Names()
	tried := make(map[string]bool)
	for range 3000 {
		x := indexers[r.IntN(len(indexers))]
		var name string
		for _, n := range names {
			if b, _, _ := strings.Cut(n, "."); b == x.op {
				name = n
			}
		}
		if name == "" {
			continue // no such operator in this version
		}
		tried[x.op] = true
		s := &sketch{t: t}
		position := s.tensor(ir.Input, tensor.Int64, 1)
		s.m.Inputs = []int{position}
		added, broken := 0, false
		at := position
		for range r.IntN(4) {
			next := s.tensor(ir.Activation, tensor.Int64, 1)
			switch r.IntN(6) {
			case 0:
				s.call("aten::add.Scalar_out", next, map[string]int{"self": at, "other": s.int(2)})
				added += 2
			case 1:
				s.call("aten::add.out", next, map[string]int{"self": s.tensor(ir.Activation, tensor.Int64, 1), "other": at})
			case 2:
				s.call("aten::view_copy.out", next, map[string]int{"self": at})
			case 3:
				s.m.Steps = append(s.m.Steps, ir.Step{Kind: ir.MoveCall, Args: []int{at, next}})
			case 4: // the values share a storage
				s.m.Values[next].Storage = s.m.Values[at].Storage
			default:
				if r.IntN(4) == 0 {
					s.call("aten::remainder.Scalar_out", next, map[string]int{"self": at, "other": s.int(8)})
					broken = true
				} else {
					s.call("aten::unsqueeze_copy.out", next, map[string]int{"self": at, "dim": s.int(0)})
				}
			}
			at = next
		}
		sizes := []int{2 + r.IntN(40), 20 + r.IntN(40), 20 + r.IntN(40), 3}
		kind := []ir.Kind{ir.State, ir.Constant, ir.Activation}[r.IntN(3)]
		table := s.tensor(kind, tensor.Float32, sizes...)
		dim := x.fixed
		args := map[string]int{x.table: table}
		switch {
		case x.dim == "each":
			dim = r.IntN(4)
			items := []int{-1, -1, -1, -1}
			items[dim] = at
			args["indices"] = s.add(ir.List(tensor.KindOptionalTensorList, items))
		default:
			if x.dim != "" {
				dim = r.IntN(4)
				args[x.dim] = s.int(int64(dim - 4*r.IntN(2)))
			}
			index := at
			if name != "aten::index_select.out" && r.IntN(2) == 0 {
				index = s.int(0)
				s.call("aten::_local_scalar_dense", index, map[string]int{"self": at})
			}
			args[x.indices[r.IntN(len(x.indices))]] = index
		}
		s.call(name, s.tensor(ir.Activation, tensor.Float32, 1), args)
		want := max(sizes[dim]-added, 1)
		if broken || kind == ir.Activation {
			want = 0
		}
		if got := boundOf(&s.m, position); got.most != want {
			t.Fatalf("%s, dimension %d of %d, %d added, kind %d: got %+v, want %d", name, dim, sizes, added, kind, got, want)
		}
	}
	if len(tried) < len(indexers)-4 {
		t.Errorf("%d of %d operators were tried", len(tried), len(indexers))
	}
}

// TestContextBeyondCaches checks that metadata that promise more positions than caches and tables have are bounded with a
// warning, at every lowering, and that texts then end as with any full context.
func TestContextBeyondCaches(t *testing.T) {
	t.Run("dynamic", func(t *testing.T) { testBeyondCaches(t, "testdata/dynamic.pte", 32) })
	t.Run("counted", func(t *testing.T) { testBeyondCaches(t, "testdata/counted.pte", 24) })
}

func testBeyondCaches(t *testing.T, path string, context int) {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := pte.Parse(data, pte.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, promised := range []int64{33, 64, 1 << 20} {
		changed := 0
		for i := range whole.Methods {
			if m := &whole.Methods[i]; m.Name == "get_max_context_len" || m.Name == "get_max_seq_len" {
				m.Values[m.Outputs[0]].Int = promised
				changed++
			}
		}
		if changed == 0 {
			whole.Methods = append(whole.Methods, constantMethod("get_max_context_len", int(promised)))
		}
		long := ptetest.Write(whole, ptetest.Layout{})
		for _, l := range []etrun.Lowering{etrun.LowerOff, etrun.LowerRewrite, etrun.LowerAuto} {
			p, err := etrun.Parse(long, etrun.WithDelegates(all.Backends()...), etrun.WithLowering(l))
			if err != nil {
				t.Fatal(err)
			}
			m, err := Load(t.Context(), p, nil)
			if err != nil {
				t.Fatal(err)
			}
			warnings := strings.Join(m.Warnings(), "\n")
			for _, want := range []string{fmt.Sprint(promised), fmt.Sprint(context), "tensor", "get_max"} {
				if !strings.Contains(warnings, want) {
					t.Errorf("%d positions: warnings %q without %q", promised, warnings, want)
				}
			}
			if m.Info().Context != context {
				t.Errorf("%d positions: got %+v", promised, m.Info())
			}
			got, _, last, err := collect(sessionOf(t, m).GenerateTokens(t.Context(), []int{1, 2, 3}, Options{IgnoreEOS: true}))
			if err != nil || last.Finish != FinishContext || len(got) != context-2 {
				t.Errorf("%d positions: %d tokens, %q, %v", promised, len(got), last.Finish, err)
			}
			p.Close()
		}
	}
}
