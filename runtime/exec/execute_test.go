package exec

import (
	"errors"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Slots that steps write are checked whenever they have another kind, those of lists in each call.
func TestKindsThatChange(t *testing.T) {
	const schema = "test::sizes.out(int n, int[] sizes, *, Tensor(a!) out) -> Tensor(a!)"
	_, sig, _, err := kernels.NewSet([]kernels.Op{{Schema: schema, Func: func(*kernels.Ctx, kernels.Args) error { return nil }}}).Lookup("test::sizes.out")
	if err != nil {
		t.Fatal(err)
	}
	n, item := tensor.Value{Kind: tensor.KindInt}, tensor.Value{Kind: tensor.KindInt}
	sizes := tensor.NewList(tensor.KindIntList, []*tensor.Value{&item})
	out := tensor.Value{Kind: tensor.KindTensor, Tensor: tensor.New(tensor.Int64, 1)}
	args := kernels.Args{&n, &sizes, &out, &out}
	for _, written := range [][]*tensor.Value{{&n, &item}, {&n, &sizes}} {
		s := step{sig: sig, call: kernels.NewCall(nil, args, false)}
		for _, v := range written {
			s.changes = append(s.changes, slotKind{v, unchecked})
		}
		for _, v := range []*tensor.Value{&n, &item} {
			for _, c := range []struct {
				kind tensor.Kind
				ok   bool
			}{{tensor.KindInt, true}, {tensor.KindInt, true}, {tensor.KindString, false}, {tensor.KindString, false}, {tensor.KindInt, true}} {
				v.Kind = c.kind
				if err := s.checkKinds(); (err == nil) != c.ok || err != nil && !errors.Is(err, kernels.ErrArgument) {
					t.Errorf("kind %v: %v", c.kind, err)
				}
			}
		}
	}
}
