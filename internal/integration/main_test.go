package integration

import (
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/exec/exectest"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// root is the folder of the module, with the programs of all tests.
const root = "../.."

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testdata returns the path of a program or another file in the module's folder testdata.
func testdata(name ...string) string {
	return filepath.Join(append([]string{root, "testdata"}, name...)...)
}

// load opens a program and loads its forward method; both are closed at the end of the test.
func load(t *testing.T, path string, options ...etrun.Option) *etrun.Method {
	t.Helper()
	p, err := etrun.Open(path, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	m, err := p.Load(t.Context(), "forward")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// tensorOf returns an output that must exist and be a tensor.
func tensorOf(m *etrun.Method, i int) *tensor.Tensor {
	v, err := m.Output(i)
	if err != nil {
		panic(err)
	}
	return v.Tensor
}

// replaced returns the default set with one operator wrapped.
func replaced(name string, wrap func(kernels.Func) kernels.Func) *kernels.Set {
	ops := portable.Ops()
	for i := range ops {
		if ops[i].Name() == name {
			ops[i].Func = wrap(ops[i].Func)
		}
	}
	return kernels.NewSet(ops)
}

// withMethods returns a program with methods of exectest.WordOps, unless options have other operators. They may read state that nothing
// writes.
func withMethods(t *testing.T, specs []pte.Method, options ...etrun.Option) (*etrun.Program, error) {
	t.Helper()
	data := ptetest.Write(&pte.Program{Methods: specs}, ptetest.Layout{})
	p, err := etrun.Parse(data, append([]etrun.Option{etrun.WithOperatorSet(kernels.NewSet(exectest.WordOps)), etrun.WithThreads(1),
		etrun.WithoutRepair()}, options...)...)
	if err == nil {
		t.Cleanup(func() { p.Close() })
	}
	return p, err
}

// loadMethod is withMethods and loads the first method.
func loadMethod(t *testing.T, spec pte.Method, options ...etrun.Option) (*etrun.Method, error) {
	t.Helper()
	p, err := withMethods(t, []pte.Method{spec}, options...)
	if err != nil {
		return nil, err
	}
	m, err := p.Load(t.Context(), "")
	if err == nil {
		t.Cleanup(func() { m.Close() })
	}
	return m, err
}

var everyPlan = map[string]etrun.PlanMode{"auto": etrun.PlanAuto, "file": etrun.PlanFile, "own": etrun.PlanOwn, "naive": etrun.PlanNaive}
