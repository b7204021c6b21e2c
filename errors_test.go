package etrun_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Incompatible input sizes are an input error, whatever runs the program; at the declared sizes the
// same failure is an execution error.
func TestSizesThatDoNotGoTogether(t *testing.T) {
	for name, c := range map[string]struct {
		path   string
		option etrun.Option
	}{
		"portable":  {"testdata/pte/dynamic_pair.pte", etrun.WithThreads(1)},
		"reference": {"testdata/pte/dynamic_pair_xnnpack.pte", etrun.WithDelegates(xnnpack.Backend{Engine: xnnpack.EngineGo})},
		"native":    {"testdata/pte/dynamic_pair_xnnpack.pte", etrun.WithDelegates(xnnpack.Backend{Engine: xnnpack.EngineNative, Library: xnntest.Path()})},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "native" {
				xnntest.Library(t)
			}
			m := load(t, c.path, c.option)
			run := func(rows int) error {
				return errors.Join(etrun.Set(m, 0, make([]float32, 12), 4, 3), etrun.Set(m, 1, make([]float32, rows*3), rows, 3), m.Execute(t.Context()))
			}
			err := run(3)
			in, ok := errors.AsType[*etrun.InstructionError](err)
			if !ok || in.Class != etrun.ErrInput || errors.Is(err, etrun.ErrFormat) || strings.Contains(err.Error(), "payload") || !strings.Contains(err.Error(), "[3 3]") {
				t.Errorf("got %v, want an error of the inputs", err)
			}
			if err := run(4); err != nil {
				t.Errorf("after a refusal: %v", err)
			}
		})
	}
	refuse := kernels.Op{Schema: "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out)",
		Func: func(*kernels.Ctx, kernels.Args) error { return kernels.Bad(0, "this", "that") }}
	m := load(t, "testdata/pte/dynamic_pair.pte", etrun.WithOperators(refuse))
	_, err := etrun.Run[float32](t.Context(), m, tensor.New(tensor.Float32, 5, 3), tensor.New(tensor.Float32, 5, 3))
	if !errors.Is(err, etrun.ErrExecute) || errors.Is(err, etrun.ErrInput) {
		t.Errorf("at the declared sizes: got %v, want a failure of the execute", err)
	}
}

// An error contains its file, its method and ExecuTorch's code once.
func TestErrorsSayThingsOnce(t *testing.T) {
	damaged := filepath.Join(t.TempDir(), "damaged.pte")
	if err := os.WriteFile(damaged, readTestFile(t, convProgram)[:900], 0o600); err != nil {
		t.Fatal(err)
	}
	in := &etrun.InstructionError{Class: etrun.ErrFormat, Method: "forward", Op: "aten::add.out", Err: io.ErrUnexpectedEOF}
	open := func(path string, options ...etrun.Option) error {
		p, err := etrun.Open(path, options...)
		if err != nil {
			return err
		}
		defer p.Close()
		m, err := p.Load(context.Background(), "forward")
		if err != nil {
			return err
		}
		defer m.Close()
		return m.Execute(context.Background())
	}
	for name, err := range map[string]error{
		"damaged":             open(damaged),
		"damaged data":        open(convProgram, etrun.WithDataFiles(damaged)),
		"no such file":        open("testdata/none.pte"),
		"too large":           open(convProgram, etrun.WithLimits(etrun.Limits{FileBytes: 10})),
		"too much memory":     open(convProgram, etrun.WithLimits(etrun.Limits{PlannedBytes: 10})),
		"missing data":        open(externalProgram),
		"missing backend":     open("testdata/pte/named_data.pte"),
		"missing operators":   open(convProgram, etrun.WithOperatorSet(kernels.NewSet())),
		"no input":            open(convProgram),
		"instruction":         &etrun.LoadError{Class: etrun.ErrFormat, File: "x.pte", Method: "forward", Err: in},
		"wrapped instruction": &etrun.LoadError{Class: etrun.ErrFormat, File: "x.pte", Method: "forward", Err: fmt.Errorf("folding: %w", in)},
		"named by its cause":  &etrun.LoadError{Class: etrun.ErrFormat, File: "x.pte", Err: errors.New("x.pte: damaged")},
	} {
		text := err.Error()
		for _, once := range []string{".pte:", `method "forward"`, "InvalidProgram", "InvalidArgument", "NotFound", "OperatorMissing", "MemoryAllocationFailed"} {
			if n := strings.Count(text, once); n > 1 {
				t.Errorf("%s: %q %d times: %s", name, once, n, text)
			}
		}
		if name != "no input" && !strings.Contains(text, ".pte") {
			t.Errorf("%s: no file: %s", name, text)
		}
	}
}
