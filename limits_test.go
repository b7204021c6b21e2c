package etrun_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/runtime/exec/exectest"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// TestLimitsOfMaxMemory opens a file, declares a plan, and loads a method that exceed all limits, and reads these in the errors.
func TestLimitsOfMaxMemory(t *testing.T) {
	const gib, maxInt = 1 << 30, int64(math.MaxInt)
	huge := filepath.Join(t.TempDir(), "huge.pte")
	if err := os.WriteFile(huge, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(huge, 64*gib); err != nil {
		t.Fatal(err)
	}
	declared := exectest.Small()
	declared.Arenas = []pte.Arena{{Size: 0}, {Size: 64 * gib}}
	planned := exectest.Small(exectest.Call(exectest.OpAdd, exectest.VecA, exectest.VecA, exectest.VecB, exectest.VecB))
	sizes := []int{4, gib}
	if maxInt < 4*gib {
		sizes = []int{1, gib / 10} // both tensors have more than the default limit
	}
	for _, v := range []int{exectest.VecA, exectest.VecB} {
		matrix := *planned.Values[v].Tensor
		matrix.Sizes, matrix.DimOrder, planned.Values[v].Tensor = sizes, []uint8{0, 1}, &matrix
	}
	for _, c := range []struct {
		name                    string
		limits                  etrun.Limits
		maxMemory               int64
		file, planned, declared int64
	}{
		{"defaults", etrun.Limits{}, 0, 8 * gib, gib, 8 * gib},
		{"less memory", etrun.Limits{}, gib / 2, gib / 2, gib, 8 * gib},
		{"more memory", etrun.Limits{}, 4 * gib, 4 * gib, 4 * gib, 8 * gib},
		{"much more memory", etrun.Limits{}, 16 * gib, 16 * gib, 16 * gib, 16 * gib},
		{"limits of the caller", etrun.Limits{FileBytes: 1, PlannedBytes: 2, Format: etrun.FormatLimits{ArenaBytes: 3}}, 16 * gib, 1, 2, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			options := []etrun.Option{etrun.WithMaxMemory(c.maxMemory), etrun.WithOperatorSet(kernels.NewSet(exectest.WordOps)),
				etrun.WithLimits(c.limits)}
			_, err := etrun.Open(huge, options...)
			wantIn(t, err, fmt.Sprintf("the limit is %d", min(c.file, maxInt)))
			c.limits.FileBytes = 0
			options[2] = etrun.WithLimits(c.limits)
			load := func(m pte.Method) error {
				p, err := etrun.Parse(ptetest.Write(&pte.Program{Methods: []pte.Method{m}}, ptetest.Layout{}), options...)
				if err == nil {
					defer p.Close()
					_, err = p.Load(t.Context(), "")
				}
				return err
			}
			wantIn(t, load(declared), fmt.Sprintf("buffers of a method may take %d bytes", min(c.declared, maxInt)))
			if limit := min(c.planned, maxInt); limit < maxInt { // else no tensor exceeds it
				wantIn(t, load(planned), fmt.Sprintf("the limit is %d", limit))
			}
		})
	}
}

func wantIn(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want %q", err, text)
	}
}

// TestUnfilledState loads a language model whose caches are 2 GiB, for which no memory is used before positions are computed.
func TestUnfilledState(t *testing.T) {
	const gib = 1 << 30
	if !cpu.Sparse || math.MaxInt < 64*gib {
		t.Skip("memory that is not filled counts here")
	}
	file := ptetest.Transformer{Layers: 64, Dim: 64, Heads: 1, Vocabulary: 96, Context: 1 << 16}.File()
	format := etrun.FormatLimits{ArenaBytes: 64 * gib}
	for _, c := range []struct {
		name   string
		option etrun.Option
		fits   bool
	}{
		{"defaults", etrun.WithLimits(etrun.Limits{Format: format}), true},
		{"memory left", etrun.WithAvailableMemory(func() int64 { return gib }), true},
		{"limit of the plan", etrun.WithLimits(etrun.Limits{Format: format, PlannedBytes: gib}), false},
		{"limit of all", etrun.WithMaxMemory(gib), false},
	} {
		p, err := etrun.Parse(file, etrun.WithLimits(etrun.Limits{Format: format}), c.option)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		m, err := p.Load(t.Context(), "")
		if fits := err == nil; fits != c.fits || !fits && !errors.Is(err, etrun.ErrMemory) {
			t.Errorf("%s: got %v, fits: want %v", c.name, err, c.fits)
		}
		if m != nil {
			transformed(t, m, 0, 4)
			m.Close()
		}
	}
}
