package integration

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/trace"
)

// cancelAt cancels a load when a stage ends.
type cancelAt struct {
	stage  string
	cancel context.CancelFunc
}

func (cancelAt) Wants() trace.Kinds { return trace.Loads }

func (c cancelAt) Observe(e *trace.Event) {
	if e.Kind == trace.Stage && e.Name == c.stage {
		c.cancel()
	}
}

// TestRelease gives back the constants that nothing reads after a load, also after one that was
// cancelled, and computes the same.
func TestRelease(t *testing.T) {
	const path = "../../testdata/digits/portable.pte"
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	input := make([]float32, 64)
	for i := range input {
		input[i] = float32(i%7) / 7
	}
	run := func(p *etrun.Program) []float32 {
		t.Helper()
		m, err := p.Load(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		out, err := etrun.Run[float32](t.Context(), m, input)
		if err != nil {
			t.Fatal(err)
		}
		return slices.Clone(out)
	}
	reference := run(openSource(t, etrun.Bytes("", file), etrun.WithLowering(etrun.LowerOff)))
	for name, tt := range map[string]struct {
		engine  xnnpack.Engine
		options []etrun.Option
		some    bool
	}{
		"rewritten":       {"", []etrun.Option{etrun.WithLowering(etrun.LowerRewrite)}, false}, // nothing is folded
		"library":         {xnnpack.EngineAuto, []etrun.Option{etrun.WithLowering(etrun.LowerAll)}, true},
		"Go engine":       {xnnpack.EngineGo, []etrun.Option{etrun.WithLowering(etrun.LowerAll)}, true},
		"kept":            {"", []etrun.Option{etrun.WithLowering(etrun.LowerAll), etrun.WithConstants()}, false},
		"verified":        {"", []etrun.Option{etrun.WithLowering(etrun.LowerVerify)}, false},
		"nothing lowered": {"", []etrun.Option{etrun.WithLowering(etrun.LowerRewrite)}, false},
	} {
		options := append(tt.options, etrun.WithDelegates(xnnpack.Backend{Engine: tt.engine}))
		for _, stage := range []string{"", trace.StageFind, trace.StageBuild, trace.StageFold, trace.StageRewrite, trace.StageLower, trace.StageCompile, trace.StagePlan} {
			ctx, cancel := context.WithCancel(t.Context())
			p := openSource(t, etrun.Bytes("", file), append(options, etrun.WithObserver(cancelAt{stage, cancel}))...)
			m, err := p.Load(ctx, "")
			cancel()
			if err == nil {
				m.Close()
			} else if !errors.Is(err, context.Canceled) {
				t.Fatalf("%s, cancelled after %q: %v", name, stage, err)
			}
			for range 2 {
				if got := run(p); !slices.EqualFunc(got, reference, func(a, b float32) bool { return a-b < 1e-5 && b-a < 1e-5 }) {
					t.Errorf("%s, cancelled after %q: got %v, want %v", name, stage, got, reference)
				}
			}
			if m, err = p.Load(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			if released := m.Report().ReleasedBytes; released > 0 != tt.some || released > 0 != hasZeros(p) {
				t.Errorf("%s, cancelled after %q: %d bytes released, constants of zeros: %v", name, stage, released, hasZeros(p))
			}
			m.Close()
		}
	}
}

func openSource(t *testing.T, from etrun.Source, options ...etrun.Option) *etrun.Program {
	t.Helper()
	p, err := etrun.OpenSource(t.Context(), from, append(options, etrun.WithThreads(1))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// hasZeros reports a page of zeros in a constant of the program.
func hasZeros(p *etrun.Program) bool {
	zeros := make([]byte, 4096)
	for _, v := range p.Spec().Methods[0].Values {
		if v.Kind != tensor.KindTensor {
			continue
		}
		for data := v.Tensor.Data; len(data) >= len(zeros); data = data[1024:] {
			if slices.Equal(data[:len(zeros)], zeros) {
				return true
			}
		}
	}
	return false
}

// failing releases as much of a payload as possible, and fails.
type failing struct{ delegate.Backend }

func (failing) ID() string { return "XnnpackBackend" }

func (failing) Names([]byte) ([]string, error) { return nil, nil }

func (failing) Compile(_ context.Context, p *delegate.Payload) (delegate.Image, error) {
	if !p.Release(p.Data) {
		return nil, errors.New("nothing was given back")
	}
	return nil, errors.New("planted")
}

// TestLost loads a method whose delegate fails after its weights were released: later loads must
// fail too, instead of computing with undefined data.
func TestLost(t *testing.T) {
	p, err := etrun.Open(testdata("digits/xnnpack.pte"), etrun.WithDelegates(&failing{}))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for i, want := range []string{"planted", "open the program again"} {
		_, err := p.Load(t.Context(), "")
		if err == nil || !bytes.Contains([]byte(err.Error()), []byte(want)) {
			t.Errorf("load %d: got %v, want %q", i, err, want)
		}
	}
}
