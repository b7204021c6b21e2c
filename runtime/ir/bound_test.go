package ir_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
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

// TestBound derives indices of all operators that index from a position, in random ways.
func TestBound(t *testing.T) {
	ops := etrun.DefaultOperators()
	var rows []*kernels.Op
	for _, name := range ops.Names() {
		if op, _, _, _ := ops.Lookup(name); len(op.Indexes) > 0 {
			rows = append(rows, op)
		}
	}
	if len(rows) < 17 {
		t.Fatalf("%d operators index, want at least 17", len(rows))
	}
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 3000 {
		op := rows[round%len(rows)]
		_, sig, _, _ := ops.Lookup(op.Name())
		x := op.Indexes[r.IntN(len(op.Indexes))]
		s := &sketch{t: t}
		position := s.tensor(ir.Input, tensor.Int64, 1)
		s.m.Inputs = []int{position}
		at, added, broken := s.derive(r, position)
		sizes := []int{2 + r.IntN(40), 20 + r.IntN(40), 20 + r.IntN(40), 3}
		kind := []ir.Kind{ir.State, ir.Constant, ir.Activation}[r.IntN(3)]
		args := map[string]int{sig.Args[x.Tensor].Name: s.tensor(kind, tensor.Float32, sizes...)}
		dim := -1 - x.Dim
		if x.Dim >= 0 {
			dim = r.IntN(4)
			args[sig.Args[x.Dim].Name] = s.int(int64(dim - 4*r.IntN(2)))
		}
		if !strings.HasPrefix(sig.Args[x.Tensor].Type, "Tensor") || x.Dim >= 0 && sig.Args[x.Dim].Type != "int" {
			t.Fatalf("%s: %+v are not a tensor and a dimension", op.Schema, x)
		}
		switch index := &sig.Args[x.At]; index.Type {
		case "Tensor?[]":
			dim = r.IntN(4)
			items := []int{-1, -1, -1, -1}
			items[dim] = at
			args[index.Name] = s.add(ir.List(tensor.KindOptionalTensorList, items))
		case "SymInt", "SymInt?":
			args[index.Name] = s.int(0)
			s.call("aten::_local_scalar_dense", args[index.Name], map[string]int{"self": at})
		case "Tensor":
			args[index.Name] = at
		default:
			t.Fatalf("%s: %+v is no index", op.Schema, x)
		}
		masked := x.Unless > 0 && r.IntN(2) == 0
		if masked {
			args[sig.Args[x.Unless].Name] = s.tensor(ir.Activation, tensor.Float32, 1, 20)
		}
		s.call(op.Name(), s.tensor(ir.Activation, tensor.Float32, 1), args)
		want := max(sizes[dim]-added, 1)
		if broken || masked || kind == ir.Activation {
			want = 0
		}
		if got := s.m.Bound(position); got.Most != want {
			t.Fatalf("%s, argument %d, dimension %d of %d, %d added, kind %d: got %+v, want %d", op.Name(), x.At, dim, sizes, added, kind, got, want)
		}
	}
}

// derive adds steps that compute an index from a position. added is what they add at least; broken is set if the index has another value.
func (s *sketch) derive(r *rand.Rand, position int) (at, added int, broken bool) {
	at = position
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
	return at, added, broken
}

// TestBoundOfMovedTable checks that a position in a table of integers is not one of its integers.
func TestBoundOfMovedTable(t *testing.T) {
	s := &sketch{t: t}
	position := s.int(0)
	s.m.Inputs = []int{position}
	row, rows := s.tensor(ir.Activation, tensor.Int64, 1), s.tensor(ir.Constant, tensor.Int64, 40, 1)
	s.call("aten::select_copy.int_out", row, map[string]int{"self": rows, "dim": s.int(0), "index": position})
	table := s.tensor(ir.Constant, tensor.Float32, 8, 3)
	s.call("aten::embedding.out", s.tensor(ir.Activation, tensor.Float32, 1, 3), map[string]int{"weight": table, "indices": row})
	if got := s.m.Bound(position); got.Most != 40 {
		t.Errorf("got %+v, want 40: the row's integers are not positions", got)
	}
}
