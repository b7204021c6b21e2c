package etrun_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// TestHalfState compares logits of a transformer whose caches are float16 with those of the program as it is: after a prompt in two
// parts, and after tokens.
func TestHalfState(t *testing.T) {
	file := ptetest.Transformer{Layers: 2, Dim: 128, Heads: 2, Vocabulary: 96, Context: 256}.File()
	for _, lowering := range []etrun.Lowering{etrun.LowerOff, etrun.LowerAuto, etrun.LowerVerify} {
		var state [2]int64
		var logits [2][]float32
		for i, options := range [][]etrun.Option{nil, {etrun.WithHalfState()}} {
			p, err := etrun.Parse(file, append(options, etrun.WithDelegates(all.Backends()...), etrun.WithLowering(lowering))...)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			m, err := p.Load(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			for at, n := 0, 0; at < 160; at += n {
				n = []int{70, 80, 1}[min(at/70, 2)]
				logits[i] = append(logits[i], transformed(t, m, at, n)...)
			}
			state[i] = m.Report().Plan.StateBytes
			if halves := slices.ContainsFunc(m.StateTensors(), func(x *tensor.Tensor) bool { return x.DType == tensor.Float16 }); halves != (i == 1) {
				t.Errorf("%s: state %v, want float16: %v", lowering, m.StateTensors(), i == 1)
			}
		}
		most, scale := 0.0, 0.0
		for i, want := range logits[0] {
			most, scale = max(most, math.Abs(float64(logits[1][i]-want))), max(scale, math.Abs(float64(want)))
		}
		if most == 0 || most > scale/1000 || state[1] != state[0]/2 {
			t.Errorf("%s: logits up to %g differ by up to %g, want a thousandth and not nothing; state of %d and %d bytes, want half", lowering, scale, most, state[0], state[1])
		}
	}
}

// transformed runs a transformer on n tokens from a position on.
func transformed(t *testing.T, m *etrun.Method, at, n int) []float32 {
	tokens, positions := make([]int64, n), make([]int64, n)
	for i := range n {
		tokens[i], positions[i] = int64((at+i)*(at+i)%96), int64(at+i)
	}
	err := errors.Join(etrun.Set(m, 0, tokens, 1, n), etrun.Set(m, 1, positions, n))
	if err = errors.Join(err, m.Execute(t.Context())); err != nil {
		t.Fatal(err)
	}
	out, err := etrun.Get[float32](m, 0)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(out)
}

// TestHalfStateRefuses loads programs whose state cannot be float16, or that have none.
func TestHalfStateRefuses(t *testing.T) {
	for file, want := range map[string]string{
		"text/testdata/counted.pte":     "(aten::index_put_): it reads or writes state of float32 in argument 0",
		"text/testdata/dynamic.pte":     "XnnpackBackend): it reads or writes state of float32",
		"cmd/etrun/testdata/add.pte":    "no state of float32",
		"cmd/etrun/testdata/symint.pte": "no state of float32",
	} {
		p, err := etrun.Open(file, etrun.WithDelegates(all.Backends()...), etrun.WithHalfState())
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if _, err = p.Load(t.Context(), "forward"); !errors.Is(err, etrun.ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", file, err, want)
		}
	}
}
