package etrun

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/delegatetest"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/lower"
)

// pacer is an oracle whose units take a given time, and which counts calls.
type pacer struct {
	delegatetest.Oracle
	takes    time.Duration
	fails    bool
	compiled int
	executed int
	open     int // images
}

func (p *pacer) CompileGraph(ctx context.Context, g *lowering.Graph) (delegate.Image, error) {
	p.compiled++
	img, err := p.Oracle.CompileGraph(ctx, g)
	if err == nil {
		p.open++
	}
	return pacedImage{img, p}, err
}

type pacedImage struct {
	delegate.Image
	p *pacer
}

func (m pacedImage) Unit(in delegate.Instance) (delegate.Unit, error) {
	u, err := m.Image.Unit(in)
	return pacedUnit{u, m.p}, err
}

func (m pacedImage) Close() error {
	m.p.open--
	return m.Image.Close()
}

type pacedUnit struct {
	delegate.Unit
	p *pacer
}

func (u pacedUnit) Execute(context.Context, []*tensor.Value) error {
	u.p.executed++
	time.Sleep(u.p.takes)
	if u.p.fails {
		return delegate.Errorf("oracle", delegate.ErrDevice, "", "it fails")
	}
	return nil
}

// tune loads a program whose regions are measured with p as the backend, and closes it.
func tune(t *testing.T, p *pacer, options ...Option) (*lower.Report, []delegate.Warning) {
	t.Helper()
	p.compiled, p.executed = 0, 0
	program, err := Open("testdata/digits/portable.pte", append(options, WithLowering(LowerTune), WithMinProfit(0), WithThreads(1), WithDelegates(p))...)
	if err != nil {
		t.Fatal(err)
	}
	m, err := program.Load(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	report, warnings := m.Lowered(), program.Warnings()
	if p.open != report.Taken() {
		t.Errorf("%d images are open, %d regions were taken", p.open, report.Taken())
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if err := program.Close(); err != nil || p.open != 0 {
		t.Errorf("%v, %d images are open", err, p.open)
	}
	return report, warnings
}

// TestTune checks that regions are taken if they are measured to be faster, regardless of
// estimates.
func TestTune(t *testing.T) {
	hour := func(*lowering.Graph, float64) time.Duration { return time.Hour }
	for name, tt := range map[string]struct {
		p     pacer
		taken bool
		times bool
	}{
		"faster than it is estimated": {pacer{Oracle: delegatetest.Oracle{Cost: hour}}, true, true},
		"slower than it is estimated": {pacer{takes: 5 * time.Millisecond}, false, true},
		"it cannot be measured":       {pacer{fails: true}, true, false},
	} {
		report, _ := tune(t, &tt.p)
		if len(report.Regions) == 0 || tt.p.executed == 0 {
			t.Fatalf("%s: %d regions, %d executes", name, len(report.Regions), tt.p.executed)
		}
		for i := range report.Regions {
			r := &report.Regions[i]
			if (r.Delegate >= 0) != tt.taken || (r.Measured != lower.Times{}) != tt.times || !tt.taken && !strings.HasPrefix(r.Reason, "it would take ") {
				t.Errorf("%s: region %d: %+v", name, i, r)
			}
		}
	}
}

// TestTuningIsKept checks that a program uses the measurements of an earlier one.
func TestTuningIsKept(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "cache")
	first := pacer{takes: 5 * time.Millisecond}
	a, _ := tune(t, &first, WithTuning(folder))
	second := pacer{takes: 0} // it would be faster now
	b, warnings := tune(t, &second, WithTuning(folder))
	if first.executed == 0 || second.executed > 0 || second.compiled > 0 || len(warnings) > 0 {
		t.Errorf("%d executes, then %d of %d images, warnings %v", first.executed, second.executed, second.compiled, warnings)
	}
	if !slices.EqualFunc(a.Regions, b.Regions, func(a, b lower.Region) bool { return a.Measured == b.Measured && a.Reason == b.Reason }) {
		t.Errorf("%+v\n%+v", a.Regions, b.Regions)
	}
	other := pacer{}
	if tune(t, &other); other.executed == 0 {
		t.Error("nothing was measured without a folder")
	}
	files, err := os.ReadDir(folder)
	if err != nil || len(files) != 1 || !strings.HasSuffix(files[0].Name(), ".tuning") {
		t.Fatal(files, err)
	}
	checkFaultyTunings(t, folder, filepath.Join(folder, files[0].Name()))
}

// checkFaultyTunings checks that invalid files are ignored and measurements repeated.
func checkFaultyTunings(t *testing.T, folder, path string) {
	t.Helper()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func() error{
		"truncated":        func() error { return os.WriteFile(path, whole[:len(whole)-1], 0o644) },
		"empty":            func() error { return os.WriteFile(path, nil, 0o644) },
		"others may write": func() error { return os.Chmod(path, 0o666) },
		"a link": func() error {
			if err := os.Rename(path, path+"x"); err != nil {
				return err
			}
			return os.Symlink(path+"x", path)
		},
		"a folder of others": func() error { return os.Chmod(folder, 0o777) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(name, err)
		}
		p := pacer{takes: 5 * time.Millisecond}
		_, warnings := tune(t, &p, WithTuning(folder))
		if p.executed == 0 || len(warnings) == 0 || warnings[0].Class != delegate.WarnCache {
			t.Errorf("%s: %d executes, warnings %v", name, p.executed, warnings)
		}
		os.Chmod(folder, 0o755)
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, whole, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p := pacer{}
	if _, warnings := tune(t, &p, WithTuning(folder)); p.executed > 0 || len(warnings) > 0 {
		t.Errorf("the file is whole again: %d executes, warnings %v", p.executed, warnings)
	}
}
