package layers

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/trace"
)

func TestFileNames(t *testing.T) {
	for _, c := range []struct {
		w    Written
		want string
	}{
		{Written{Place: Place{Instruction: 12, Delegate: -1, Node: -1, Operator: "aten::add.out"}}, "0_0012_aten.add.out_0"},
		{Written{Place: Place{Call: 2, Chain: 1, Delegate: -1, Node: -1, Operator: "aten::_softmax.out"}, Output: 1, Round: 3}, "call2_1_0000_aten._softmax.out_r3_1"},
		{Written{Place: Place{Call: atLoad, Instruction: 4, Delegate: -1, Node: -1, Operator: "aten::t_copy.out"}}, "load_0_0004_aten.t_copy.out_0"},
		{Written{Place: Place{Delegate: 1, Backend: "XnnpackBackend", Node: -1}}, "0_0000_delegate1_0"},
		{Written{Place: Place{Delegate: 1, Backend: "XnnpackBackend", Node: 7, NodeName: "Conv2d"}}, "0_0000_node007_Conv2d_0"},
		{Written{Place: Place{Delegate: -1, Node: -1, Operator: "acme::../x y.out_2"}}, "0_0000_acme...-x-y.out_2_0"},
	} {
		name := c.w.FileName()
		if name != c.want {
			t.Errorf("got %q, want %q", name, c.want)
		}
		got, ok := ParseFileName(name)
		if !ok || keyByPlace(&got) != keyByPlace(&c.w) {
			t.Errorf("%q: read as %+v, want %+v", name, got, c.w)
		}
	}
	for _, short := range []string{"0_12_0", "call1_0_0012_x_1"} {
		if _, ok := ParseFileName(short); !ok {
			t.Errorf("%q is not read", short)
		}
	}
	for _, other := range []string{"out0", "call1_out0", "arr_0", "0_x_0", "", "1_2"} {
		if w, ok := ParseFileName(other); ok {
			t.Errorf("%q is read as %+v", other, w)
		}
	}
}

func TestRecorderKeepsToItsLimit(t *testing.T) {
	v := tensor.TensorValue(tensor.New(tensor.Float32, 10))
	r := &Recorder{Limit: 2*ofEntry + 100}
	e := &trace.Event{Kind: trace.Written, Run: 1, Delegate: -1, Index: -1, Values: []trace.Value{{Value: &v}}}
	for range 2 {
		r.Observe(e)
	}
	if r.Err() != nil || len(r.List) != 2 || r.List[1].Round != 1 {
		t.Errorf("%d values, %v", len(r.List), r.Err())
	}
	if r.Observe(e); !errors.Is(r.Err(), etrun.ErrMemory) || r.List != nil {
		t.Errorf("%d values, %v", len(r.List), r.Err())
	}
}

// TestAlignOther pairs operators that both programs have equally often.
func TestAlignOther(t *testing.T) {
	list := func(names ...string) (list []Written) {
		for i, n := range names {
			v := tensor.IntValue(7)
			list = append(list, Written{Place: Place{Instruction: i, Delegate: -1, Node: -1, Operator: n}, Value: &v})
		}
		return list
	}
	a, b := list("add", "mul", "add", "relu"), list("relu", "add", "sub", "add", "mul", "mul")
	var got [][2]int
	for _, p := range alignOther(t.Context(), a, b, kernels.Tolerance{}) {
		got = append(got, [2]int{p.A.Instruction, p.B.Instruction})
	}
	if len(got) != 3 || got[0] != [2]int{3, 0} || got[1] != [2]int{0, 1} || got[2] != [2]int{2, 3} {
		t.Errorf("got %v", got)
	}
}

// TestAlignOtherFindsBranches orders the branches of one program differently, changes one value and swaps those of another: each
// has its own counterpart.
func TestAlignOtherFindsBranches(t *testing.T) {
	const n = 40
	r := rand.New(rand.NewPCG(1, 2))
	order := r.Perm(n)
	a, b := make([]Written, n), make([]Written, n)
	for i := range a {
		x := make([]float32, 8)
		for k := range x {
			x[k] = r.Float32()
		}
		v, w := tensor.TensorValue(tensor.Of(x, 8)), tensor.TensorValue(tensor.Of(slices.Clone(x), 8))
		if i%5 == 0 {
			w.Tensor.Data[3]++ // a little beyond the tolerance
		}
		place := Place{Instruction: i, Delegate: -1, Node: -1, Operator: "add"}
		a[i] = Written{Place: place, Value: &v}
		place.Instruction = 100 + i
		b[order[i]] = Written{Place: place, Value: &w}
	}
	pairs := alignOther(t.Context(), a, b, kernels.Tolerance{Abs: 1e-6})
	for i, p := range pairs {
		if p.A.Instruction+100 != p.B.Instruction || p.B != &b[i] {
			t.Errorf("pair %d: %d and %d", i, p.A.Instruction, p.B.Instruction)
		}
	}
	if len(pairs) != n {
		t.Errorf("%d pairs, want %d", len(pairs), n)
	}
}
