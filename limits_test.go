package etrun_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
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
