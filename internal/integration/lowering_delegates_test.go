package integration

import (
	"archive/zip"
	"context"
	"io/fs"
	"math"
	"math/rand/v2"
	"path"
	"slices"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// merged lists, for programs of testdata/lowering/delegates.zip, the number of delegate calls and
// operator calls before and after lowering, if everything that XNNPACK accepts is taken.
var merged = map[string]struct{ delegates, operators [2]int }{
	"chlast/input_xnnpack.pte":          {[2]int{2, 1}, [2]int{1, 0}},
	"container/xnnpack_inline.pte":      {[2]int{2, 1}, [2]int{2, 1}},
	"container/xnnpack_naive.pte":       {[2]int{2, 1}, [2]int{2, 1}},
	"control/cond_data_xnnpack.pte":     {[2]int{1, 3}, [2]int{5, 2}},
	"dyn_conv/xnnpack.pte":              {[2]int{2, 2}, [2]int{7, 7}}, // dynamic sizes
	"encoder_decoder_state/xnnpack.pte": {[2]int{4, 2}, [2]int{3, 3}}, // two methods
	"freq_mixer/xnnpack.pte":            {[2]int{2, 2}, [2]int{10, 6}},
	"gru/xnnpack.pte":                   {[2]int{7, 1}, [2]int{10, 0}},
	"kalman_step/xnnpack.pte":           {[2]int{7, 4}, [2]int{32, 4}},
	"lstm/xnnpack.pte":                  {[2]int{8, 1}, [2]int{5, 0}},
	"lstm/xnnpack_dq8.pte":              {[2]int{8, 1}, [2]int{5, 0}},
	"mutable/kv_reinplace_xnnpack.pte":  {[2]int{5, 3}, [2]int{4, 4}},
	"mutable/kv_xnnpack.pte":            {[2]int{5, 3}, [2]int{4, 4}},
	"shared_weights/xnnpack.pte":        {[2]int{5, 3}, [2]int{3, 0}}, // three methods
}

// TestMergedDelegates merges the exporter's delegates with the calls between them, on both engines,
// and compares the outputs with those of the original program. Weights must be released.
func TestMergedDelegates(t *testing.T) {
	archive, err := zip.OpenReader("../../testdata/lowering/delegates.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if len(archive.File) != len(merged) {
		t.Errorf("%d programs, %d are known", len(archive.File), len(merged))
	}
	for _, f := range archive.File {
		data, err := fs.ReadFile(archive, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, engine := range []xnnpack.Engine{xnnpack.EngineGo, xnnpack.EngineAuto} {
			t.Run(path.Join(f.Name, string(engine)), func(t *testing.T) { checkMerged(t, f.Name, data, xnnpack.Backend{Engine: engine}) })
		}
	}
}

func checkMerged(t *testing.T, name string, data []byte, by xnnpack.Backend) {
	open := func(options ...etrun.Option) *etrun.Program {
		p, err := etrun.Parse(slices.Clone(data), append(options, etrun.WithDelegates(by), etrun.WithThreads(1))...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		return p
	}
	plain, lowered := open(etrun.WithLowering(etrun.LowerRewrite)), open(etrun.WithLowering(etrun.LowerAll))
	got := make(map[ir.StepKind][2]int)
	for _, method := range plain.MethodNames() {
		var pair [2]*etrun.Method
		for k, p := range []*etrun.Program{plain, lowered} {
			m, err := p.Load(context.Background(), method)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			pair[k] = m
			for i := range m.Report().Plan.Method.Steps {
				n := got[m.Report().Plan.Method.Steps[i].Kind]
				n[k]++
				got[m.Report().Plan.Method.Steps[i].Kind] = n
			}
		}
		compareMerged(t, pair[0], pair[1])
	}
	if want := merged[name]; got[ir.DelegateCall] != want.delegates || got[ir.KernelCall] != want.operators {
		t.Errorf("%d delegates and %d operators, want %d and %d", got[ir.DelegateCall], got[ir.KernelCall], want.delegates, want.operators)
	}
}

// compareMerged runs a method with and without merged delegates.
func compareMerged(t *testing.T, plain, m *etrun.Method) {
	for run := range 4 {
		var failed [2]error
		for k, m := range []*etrun.Method{plain, m} {
			if err := setRandomly(m, rand.New(rand.NewPCG(uint64(run), 7))); err != nil {
				t.Fatal(err)
			}
			failed[k] = m.Execute(context.Background())
		}
		if failed[0] != nil || failed[1] != nil {
			t.Fatalf("run %d: %v, merged %v", run, failed[0], failed[1])
		}
		for i := range m.Meta().Outputs {
			if absolute, relative := distance(tensorOf(m, i), tensorOf(plain, i)); min(absolute, relative) > seedTolerance {
				t.Errorf("run %d: output %d differs by %g, %g of what it is", run, i, absolute, relative)
			}
		}
	}
}

// countSteps counts the steps that run at the declared sizes.
func countSteps(m *etrun.Method, kind ir.StepKind) (n int) {
	for i := range m.Report().Plan.Method.Steps {
		if m.Report().Plan.Method.Steps[i].Kind == kind {
			n++
		}
	}
	return n
}

// TestMergedDelegatesWithinLimits checks that regions above a limit are refused, and that the
// exporter's delegates then run unchanged, with weights that were not released.
func TestMergedDelegatesWithinLimits(t *testing.T) {
	archive, err := zip.OpenReader("../../testdata/lowering/delegates.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	data, err := fs.ReadFile(archive, "gru/xnnpack.pte")
	if err != nil {
		t.Fatal(err)
	}
	for _, refuse := range []bool{false, true} {
		by := greedy{on: refuse}
		p, err := etrun.Parse(slices.Clone(data), etrun.WithLowering(etrun.LowerAll), etrun.WithDelegates(by))
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		m, err := p.Load(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if n, want := countSteps(m, ir.DelegateCall), map[bool]int{false: 1, true: 7}[refuse]; n != want {
			t.Errorf("refused %v: %d delegates, want %d", refuse, n, want)
		}
		if err := setRandomly(m, rand.New(rand.NewPCG(1, 7))); err != nil {
			t.Fatal(err)
		}
		if err := m.Execute(t.Context()); err != nil {
			t.Errorf("refused %v: %v", refuse, err)
		}
		for i, d := range m.Delegates()[:7] {
			if merged := len(d.Nodes) == 0; merged == refuse {
				t.Errorf("refused %v: delegate %d has %d nodes", refuse, i, len(d.Nodes))
			}
		}
	}
}

// greedy compiles graphs to images that exceed every limit.
type greedy struct {
	xnnpack.Backend
	on bool
}

type greedyImage struct{ delegate.Image }

func (g greedy) CompileGraph(ctx context.Context, from *lowering.Graph) (delegate.Image, error) {
	img, err := g.Backend.CompileGraph(ctx, from)
	if err != nil || !g.on {
		return img, err
	}
	return greedyImage{img}, nil
}

func (i greedyImage) Needs() delegate.Needs {
	n := i.Image.Needs()
	n.Scratch = 1 << 50
	return n
}

// setRandomly sets the tensor inputs: small integers, which may be indices, or floats.
func setRandomly(m *etrun.Method, r *rand.Rand) error {
	for i, in := range m.Meta().Inputs {
		if in.Kind != tensor.KindTensor {
			continue
		}
		x := in.NewTensor()
		least := 0.0
		if x.DType.IsFloat() {
			least = -1
		}
		for k, size := 0, x.DType.Size(); k < len(x.Data); k += size {
			tensor.Put(x.Data[k:], x.DType, least+3*r.Float64())
		}
		if err := m.SetInput(i, x); err != nil {
			return err
		}
	}
	return nil
}

// distance returns the largest difference of two tensors of floats, and its part of the value; infinite if their types or sizes differ.
func distance(got, want *tensor.Tensor) (absolute, relative float64) {
	if got.DType != want.DType || !slices.Equal(got.Sizes, want.Sizes) {
		return math.Inf(1), math.Inf(1)
	}
	for k, size := 0, got.DType.Size(); k < got.Numel(); k++ {
		a, _ := tensor.Get[float64](got.Data[k*size:], got.DType)
		b, _ := tensor.Get[float64](want.Data[k*size:], want.DType)
		if d := math.Abs(a - b); d > absolute || math.IsNaN(a) != math.IsNaN(b) {
			absolute, relative = d, d/math.Abs(b)
		}
	}
	return absolute, relative
}
