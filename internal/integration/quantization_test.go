package integration

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/exec/exectest"
	"github.com/etrun-go/etrun/runtime/pte"
)

// quantBackend requests the quantization of its only output.
type quantBackend struct {
	found *delegate.QuantUse
}

func (*quantBackend) ID() string             { return "quant" }
func (*quantBackend) Probe() delegate.Status { return delegate.Status{Loaded: true} }

func (b *quantBackend) Compile(_ context.Context, p *delegate.Payload) (_ delegate.Image, err error) {
	if b.found, err = p.Args[2].Quantization(); err != nil {
		return nil, &delegate.Error{Backend: b.ID(), Reason: delegate.ErrPayload, Err: err}
	}
	return exectest.AddDelegate{}, nil
}

// TestQuantUses derives the quantization of a delegate's output from the operators that read it.
func TestQuantUses(t *testing.T) {
	const takes = "test::takes.out(Tensor self, float scale, int zero_point, *, Tensor(a!) out)"
	ops := []kernels.Op{{Schema: takes, Quants: []kernels.Quant{{Tensor: 0, Scale: 1, ZeroPoint: 2}},
		Func: func(*kernels.Ctx, kernels.Args) error { return nil }}}
	type use struct {
		scale float64
		zero  int64
	}
	for name, tt := range map[string]struct {
		uses []use
		want string // part of the error
	}{
		"no operator":              {},
		"one":                      {uses: []use{{0.5, 3}}},
		"three that agree":         {uses: []use{{0.5, 3}, {0.5, 3}, {0.5, 3}}},
		"the third disagrees":      {uses: []use{{0.5, 3}, {0.5, 3}, {0.25, 3}}, want: "instruction 1 (test::takes.out) uses scale 0.5 and zero point 3, instruction 3 (test::takes.out) uses scale 0.25"},
		"the zero point disagrees": {uses: []use{{0.5, 3}, {0.5, 4}}, want: "instruction 2 (test::takes.out) uses scale 0.5 and zero point 4"},
	} {
		m := exectest.Small(pte.Instruction{Kind: pte.DelegateCall, Index: 0, Args: []int{exectest.VecA, exectest.Constant, exectest.VecB}})
		m.Delegates, m.Operators = []pte.Delegate{{ID: "quant"}}, []pte.Operator{{Name: "test::takes", Overload: "out"}}
		for _, u := range tt.uses {
			n := len(m.Values)
			out := *m.Values[exectest.VecB].Tensor
			m.Values = append(m.Values, pte.Value{Kind: tensor.KindDouble, Double: u.scale}, pte.Value{Kind: tensor.KindInt, Int: u.zero},
				pte.Value{Kind: tensor.KindTensor, Tensor: &out})
			m.Chains[0].Instructions = append(m.Chains[0].Instructions, exectest.Call(0, exectest.VecB, n, n+1, n+2, n+2))
		}
		b := &quantBackend{}
		_, err := loadMethod(t, m, etrun.WithOperatorSet(kernels.NewSet(ops)), etrun.WithDelegates(b))
		if tt.want != "" {
			if !errors.Is(err, etrun.ErrFormat) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: got %v, want …%s…", name, err, tt.want)
			}
			continue
		}
		if err != nil || (b.found == nil) != (len(tt.uses) == 0) {
			t.Errorf("%s: got %v, %v", name, b.found, err)
			continue
		}
		if b.found != nil && (b.found.Scale != tt.uses[0].scale || b.found.ZeroPoint != tt.uses[0].zero || b.found.By != "instruction 1 (test::takes.out)" ||
			b.found.DType != tensor.Int64) {
			t.Errorf("%s: got %+v, want %v", name, *b.found, tt.uses[0])
		}
	}
}

// surveyBackend rejects payloads before any is compiled.
type surveyBackend struct {
	quantBackend
	seen []int
	fail error
}

func (b *surveyBackend) Survey(payloads []*delegate.Payload) error {
	for _, p := range payloads {
		if len(p.Args) == 3 && p.Method != "" {
			b.seen = append(b.seen, p.Index)
		}
	}
	return b.fail
}

// otherBackend compiles nothing.
type otherBackend struct{ quantBackend }

func (*otherBackend) ID() string { return "XnnpackBackend" }

// TestSurvey passes all payloads to a backend before the first is compiled.
func TestSurvey(t *testing.T) {
	call := func(i int) pte.Instruction {
		return pte.Instruction{Kind: pte.DelegateCall, Index: i, Args: []int{exectest.VecA, exectest.Constant, exectest.VecB}}
	}
	m := exectest.Small(call(0), call(1), call(2))
	m.Delegates = []pte.Delegate{{ID: "quant"}, {ID: "XnnpackBackend"}, {ID: "quant"}}
	refused := delegate.Errorf("quant", delegate.ErrPayload, "", "all at once")
	b := &surveyBackend{fail: refused}
	_, err := loadMethod(t, m, etrun.WithDelegates(b, &otherBackend{}))
	if !errors.Is(err, refused) || !errors.Is(err, etrun.ErrFormat) || !slices.Equal(b.seen, []int{0, 2}) {
		t.Errorf("got %v after payloads %v, want %v after 0 and 2", err, b.seen, refused)
	}
}
