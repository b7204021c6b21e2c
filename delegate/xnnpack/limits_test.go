//go:build linux

package xnnpack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/internal/campaign"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// TestMemoryLimits runs programs under limits from the size of the file to five times that: each run has the result of a run without
// a limit, or ends with the memory error. With a corpus (see package campaign) it does so for its programs, in steps of 2 %, and logs those
// that fail without a limit.
func TestMemoryLimits(t *testing.T) {
	xnntest.Library(t)
	files, step := []string{smallLanguageModel.write(t), "../../testdata/digits/xnnpack.pte", "../../testdata/digits/portable.pte"}, 25
	corpus := os.Getenv(campaign.EnvCorpus)
	if corpus != "" {
		files, step = programsIn(t, filepath.SplitList(corpus)), 2
	}
	fits, refused, failed := 0, 0, 0
	for _, path := range files {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, engine := range Engines {
			for _, lowering := range []etrun.Lowering{etrun.LowerAuto, etrun.LowerOff} {
				free, err := limited(path, engine, lowering)
				switch what := fmt.Sprintf("%s, %s, lowering %v, without a limit: %v", path, engine, lowering, err); {
				case err == nil:
				case corpus == "" && (engine != EngineNative || !errors.Is(err, etrun.ErrUnsupported)): // the library lacks some graphs
					t.Error(what)
					continue
				default:
					t.Log(what)
					failed++
					continue
				}
				for part := 100; part <= 500; part += step {
					got, err := limited(path, engine, lowering, etrun.WithMaxMemory(info.Size()*int64(part)/100))
					switch what := fmt.Sprintf("%s, %s, lowering %v, %d %% of the file", path, engine, lowering, part); {
					case errors.Is(err, etrun.ErrMemory):
						refused++
					case err != nil:
						t.Errorf("%s: %v", what, err)
					case distance(got, free) > 0.05:
						t.Errorf("%s: results differ by %v", what, distance(got, free))
					default:
						fits++
					}
				}
			}
		}
	}
	t.Logf("%d programs, %d runs fit, %d were refused; %d of %d have no result without a limit", len(files), fits, refused, failed,
		2*len(Engines)*len(files))
	if fits == 0 || corpus == "" && (fits < 20 || refused < 20) {
		t.Errorf("%d runs fit, %d were refused, want some of both", fits, refused)
	}
}

// TestAvailableMemory opens programs with as many bytes left as the error of the attempt before says that there must be: the first that
// suffices gives the result of a run without the check, and one byte less does not suffice.
func TestAvailableMemory(t *testing.T) {
	for _, path := range []string{smallLanguageModel.write(t), "../../testdata/digits/xnnpack.pte", "../../testdata/digits/portable.pte"} {
		for _, mapped := range []etrun.Option{etrun.WithMmap(), etrun.WithThreads(1)} {
			want, err := limited(path, EngineGo, etrun.LowerAuto)
			if err != nil {
				t.Fatal(err)
			}
			left, refused := int64(1), 0
			available := etrun.WithAvailableMemory(func() int64 { return left })
			for {
				got, err := limited(path, EngineGo, etrun.LowerAuto, mapped, available)
				if err == nil {
					if !slices.Equal(got, want) {
						t.Errorf("%s: other results with %d bytes left", path, left)
					}
					break
				}
				e, ok := errors.AsType[*etrun.MemoryError](err)
				if refused++; !ok || !e.Available || e.Limit < left || e.Want <= e.Limit || !errors.Is(err, etrun.ErrMemory) {
					t.Fatalf("%s, %d bytes left: got %v", path, left, err)
				}
				left += e.Want - e.Limit // the limit counts a file that was read, too
			}
			left--
			if _, err := limited(path, EngineGo, etrun.LowerAuto, mapped, available); refused == 0 || !errors.Is(err, etrun.ErrMemory) {
				t.Errorf("%s, %d bytes left: got %v after %d refusals", path, left, err, refused)
			}
		}
	}
}

// TestAvailableForRuns runs a program whose inputs vary in size while the system has less and less left: a call fails before it touches
// more, and later calls have the right results.
func TestAvailableForRuns(t *testing.T) {
	left := int64(1 << 40)
	p, err := etrun.Open(smallLanguageModel.write(t), etrun.WithDelegates(Backend{Engine: EngineGo}), etrun.WithThreads(1),
		etrun.WithAvailableMemory(func() int64 { return left }))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m, err := p.Load(t.Context(), "forward")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	run := func(tokens int) error {
		if err := m.SetInput(0, tensor.New(tensor.Int64, 1, tokens)); err != nil {
			t.Fatal(err)
		}
		if err := m.SetInput(1, tensor.New(tensor.Int64, 1)); err != nil {
			t.Fatal(err)
		}
		return m.Execute(t.Context())
	}
	wants := [3]int64{}
	for i, tokens := range []int{1, 2, 3} {
		left = 1
		e, ok := errors.AsType[*etrun.MemoryError](run(tokens))
		if !ok || !e.Available || e.Limit != 1 {
			t.Fatalf("%d tokens with 1 byte left: got %v", tokens, e)
		}
		wants[i], left = e.Want, e.Want
		if err := run(tokens); err != nil {
			t.Errorf("%d tokens with as much left as they need: %v", tokens, err)
		}
		left = 1
		if err := run(tokens); err != nil {
			t.Errorf("%d tokens again: %v", tokens, err)
		}
	}
	if wants[0] >= wants[1] || wants[1] >= wants[2] {
		t.Errorf("calls of 1 to 3 tokens need %d bytes, want more for more", wants)
	}
}

// programsIn lists the programs below folders.
func programsIn(t *testing.T, folders []string) (list []string) {
	t.Helper()
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if strings.HasSuffix(path, ".pte") {
				list = append(list, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// limited returns the numbers of all outputs of a run on zeros.
func limited(path string, engine Engine, lowering etrun.Lowering, limits ...etrun.Option) (numbers []float64, err error) {
	p, err := etrun.Open(path, append(limits, etrun.WithDelegates(Backend{Engine: engine, Library: xnntest.Path()}), etrun.WithThreads(1),
		etrun.WithLowering(lowering))...)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	m, err := p.Load(context.Background(), p.MethodNames()[0])
	if err != nil {
		return nil, err
	}
	defer m.Close()
	for i, in := range m.Meta().Inputs {
		if x := in.NewTensor(); x != nil {
			if err := m.SetValue(i, tensor.TensorValue(x)); err != nil {
				return nil, err
			}
		}
	}
	if err := m.Execute(context.Background()); err != nil {
		return nil, err
	}
	for i := range m.NumOutputs() {
		v, err := m.Output(i)
		if err != nil {
			return nil, err
		}
		if v.Kind == tensor.KindTensor {
			numbers = append(numbers, graphtest.NumbersOf(v.Tensor)...)
		}
	}
	return numbers, nil
}

// distance is the largest absolute difference, relative to the largest number.
func distance(a, b []float64) (most float64) {
	if len(a) != len(b) {
		return 1
	}
	for i := range a {
		most = max(most, a[i]-b[i], b[i]-a[i])
	}
	return most / max(graphtest.Largest(b), 1e-9)
}
