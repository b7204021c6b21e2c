//go:build linux

package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/delegatetest"
	"github.com/etrun-go/etrun/delegate/ethosu"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/internal/campaign"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/lower"
)

// TestLoweredModelsEqualOriginal lowers programs of the exporter, and of a campaign's corpus,
// completely and in parts.
func TestLoweredModelsEqualOriginal(t *testing.T) {
	files, err := filepath.Glob("../../testdata/*/*.pte")
	if err != nil {
		t.Fatal(err)
	}
	regions := 0
	for _, path := range append(files, campaign.Corpus(".pte")...) {
		for _, share := range []uint64{10, 7} {
			n, err := lowerModel(path, delegatetest.AtRandom(uint64(len(path)), share, share < 10))
			if err != nil {
				t.Errorf("%s, %d of 10 calls: %v", path, share, err)
			}
			regions += n
		}
	}
	if regions < len(files) {
		t.Errorf("%d regions in %d programs: the test shows nothing", regions, len(files))
	}
	t.Logf("%d regions", regions)
}

// payloads is a backend that does not compile graphs.
type payloads struct{ delegate.Backend }

// lowerModel runs all methods of a program with rewrites only, and also with regions.
func lowerModel(path string, by delegatetest.Oracle) (regions int, err error) {
	ctx := context.Background()
	with := etrun.WithDelegates(payloads{xnnpack.Backend{}}, payloads{ethosu.Backend{}}, by)
	original, err := etrun.Open(path, etrun.WithLowering(etrun.LowerAuto), etrun.WithDelegates(payloads{xnnpack.Backend{}}, payloads{ethosu.Backend{}}))
	if err != nil {
		return 0, nil
	}
	defer original.Close()
	lowered, err := etrun.Open(path, etrun.WithLowering(etrun.LowerAll), with)
	if err != nil {
		return 0, err
	}
	defer lowered.Close()
	for _, name := range original.MethodNames() {
		reference, err := original.Load(ctx, name)
		if err != nil {
			continue // something that it needs is missing
		}
		m, err := lowered.Load(ctx, name)
		if err != nil {
			return regions, err
		}
		for run := range 3 {
			if err := compareModel(m, reference, run); err != nil {
				return regions, fmt.Errorf("method %q, run %d: %w", name, run, err)
			}
		}
		regions += m.Report().Lowered.Accepted()
		if err := errors.Join(m.Close(), reference.Close()); err != nil {
			return regions, err
		}
	}
	return regions, nil
}

// compareModel runs both on the same random inputs.
func compareModel(m, reference *etrun.Method, run int) error {
	var failed [2]error
	for k, m := range []*etrun.Method{reference, m} {
		if err := setRandomly(m, rand.New(rand.NewPCG(uint64(run), 7))); err != nil {
			return err
		}
		failed[k] = m.Execute(context.Background())
	}
	if failed[0] != nil || failed[1] != nil {
		if failed[0] == nil || failed[1] == nil {
			return fmt.Errorf("got %v, want %v", failed[1], failed[0])
		}
		return nil
	}
	for i := range reference.NumOutputs() {
		got, err := m.Output(i)
		if err != nil {
			return err
		}
		want, err := reference.Output(i)
		if err != nil {
			return err
		}
		if want.Kind != tensor.KindTensor {
			if got.Kind != want.Kind || got.Int != want.Int || got.Double != want.Double || got.Bool != want.Bool {
				return fmt.Errorf("output %d: got %v, want %v", i, got, want)
			}
			continue
		}
		if !slices.Equal(got.Tensor.Sizes, want.Tensor.Sizes) || !bytes.Equal(got.Tensor.Data, want.Tensor.Data) {
			return fmt.Errorf("output %d: %v and %v differ", i, got.Tensor, want.Tensor)
		}
	}
	return nil
}

// TestOwnOperatorStays replaces an operator of this module by the caller's: neither rewrites nor
// backends may take its calls because of its name.
func TestOwnOperatorStays(t *testing.T) {
	calls := 0
	relu := kernels.Op{Schema: "aten::relu.out(Tensor self, *, Tensor(a!) out)", Pure: true, Func: func(_ *kernels.Ctx, a kernels.Args) error {
		calls++
		out := a.Tensor(1)
		if err := out.Resize(a.Tensor(0).Sizes); err != nil {
			return err
		}
		clear(out.Data)
		return nil
	}}
	p, err := etrun.Open("../../testdata/digits/portable.pte", etrun.WithOperators(relu), etrun.WithDelegates(delegatetest.Oracle{}), etrun.WithLowering(etrun.LowerAll))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m, err := p.Load(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := etrun.Run[float32](t.Context(), m, make([]float32, 64)); err != nil || calls != 3 {
		t.Errorf("%v, %d calls of the caller's operator, want 3", err, calls)
	}
	if n := m.Report().Lowered.Accepted(); n == 0 {
		t.Error("nothing else was lowered")
	}
}

// envEngine makes TestUnusedLibrary load a program in a process of its own.
const envEngine = "ETRUN_TEST_ENGINE"

// TestUnusedLibrary loads a program in new processes, one with each engine. The library is opened for a region that it runs only.
func TestUnusedLibrary(t *testing.T) {
	if engine := xnnpack.Engine(os.Getenv(envEngine)); engine != "" {
		region := loadDigits(t, engine)
		maps, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("taken %v, opened %v", region.Reason == "", bytes.Contains(maps, []byte("libXNNPACK")))
		return
	}
	xnntest.Library(t)
	for engine, want := range map[xnnpack.Engine]string{xnnpack.EngineAuto: "taken true, opened false", xnnpack.EngineNative: "taken true, opened true"} {
		c := exec.Command(os.Args[0], "-test.run=^TestUnusedLibrary$", "-test.v")
		c.Env = append(os.Environ(), envEngine+"="+string(engine))
		if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("engine %s: %v, want %q:\n%s", engine, err, want, out)
		}
	}
}

// loadDigits loads the portable digits program and returns its only region, which has many multiplications.
func loadDigits(t *testing.T, engine xnnpack.Engine) lower.Region {
	t.Helper()
	p, err := etrun.Open("../../testdata/digits/portable.pte", etrun.WithDelegates(xnnpack.Backend{Engine: engine, Library: xnntest.Path()}))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m, err := p.Load(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if n := len(m.Report().Lowered.Regions); n != 1 {
		t.Fatalf("%d regions, want 1", n)
	}
	return m.Report().Lowered.Regions[0]
}
