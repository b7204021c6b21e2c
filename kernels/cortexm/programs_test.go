package cortexm_test

import (
	"archive/zip"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/cortexm"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// program is one case of testdata/cortexm.
type program struct {
	Name, Program   string
	Inputs, Outputs []struct {
		File, DType string
		Shape       []int
	}
}

// archive is the opened test data.
type archive struct {
	t *testing.T
	z *zip.ReadCloser
}

func openArchive(t *testing.T) *archive {
	z, err := zip.OpenReader("../../testdata/cortexm/programs.zip")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { z.Close() })
	return &archive{t, z}
}

func (a *archive) read(name string) []byte {
	a.t.Helper()
	f, err := a.z.Open(name)
	if err != nil {
		a.t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		a.t.Fatal(err)
	}
	return b
}

func (a *archive) programs() (list []program) {
	if err := json.Unmarshal(a.read("cases.json"), &list); err != nil {
		a.t.Fatal(err)
	}
	return list
}

// load opens the program of a case.
func (a *archive) load(p *program, threads int) *etrun.Method {
	a.t.Helper()
	prog, err := etrun.Parse(a.read(p.Program), etrun.WithThreads(threads))
	if err != nil {
		a.t.Fatal(err)
	}
	m, err := prog.Load(context.Background(), "")
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() {
		m.Close()
		prog.Close()
	})
	return m
}

// execute runs a method on the inputs of its case.
func (a *archive) execute(m *etrun.Method, p *program) {
	a.t.Helper()
	for i, in := range p.Inputs {
		d, err := tensor.ParseDType(in.DType)
		if err != nil {
			a.t.Fatal(err)
		}
		x := tensor.Make(d, in.Shape, m.Meta().Inputs[i].DimOrder, tensor.Static)
		b := tensor.AlignedBytes(x.NBytes())
		copy(b, a.read(in.File))
		x.Bind(b)
		if err := m.SetInput(i, x); err != nil {
			a.t.Fatal(err)
		}
	}
	if err := m.Execute(a.t.Context()); err != nil {
		a.t.Fatal(err)
	}
}

// check compares the bytes of outputs.
func (a *archive) check(m *etrun.Method, p *program) {
	a.t.Helper()
	for i, out := range p.Outputs {
		v, err := m.Output(i)
		if err != nil {
			a.t.Fatal(err)
		}
		got, bytes := v.Tensor, a.read(out.File)
		if got.DType.String() != out.DType || len(got.Data) != len(bytes) {
			a.t.Errorf("output %d: %v, want %s%v", i, got, out.DType, out.Shape)
			continue
		}
		want := tensor.AlignedBytes(len(bytes))
		copy(want, bytes)
		x, y := tensor.View[float32](got.Data), tensor.View[float32](want)
		for j := range y {
			if x[j] != y[j] {
				a.t.Errorf("output %d, element %d of %d: got %v, want %v, off by %g", i, j, len(y), x[j], y[j], x[j]-y[j])
				break
			}
		}
	}
}

// TestPrograms runs whole programs, twice each, and wants the bytes of the device's
// kernels. Together they have every operator of the package.
func TestPrograms(t *testing.T) {
	a, seen := openArchive(t), map[string]bool{}
	for _, p := range a.programs() {
		data := string(a.read(p.Program))
		for _, op := range cortexm.Ops() {
			name, _, _ := strings.Cut(op.Name(), ".")
			seen[op.Name()] = seen[op.Name()] || strings.Contains(data, name+"\x00")
		}
		for _, threads := range []int{1, 2} {
			t.Run(p.Name, func(t *testing.T) {
				b := &archive{t, a.z}
				m := b.load(&p, threads)
				for range 2 {
					b.execute(m, &p)
					b.check(m, &p)
				}
			})
		}
	}
	for name, ok := range seen {
		if !ok {
			t.Errorf("no program has %s", name)
		}
	}
}
