package xnnpack_test

import (
	"archive/zip"
	"context"
	"encoding/json"
	"io"
	"math"
	"testing"

	"github.com/x448/float16"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// program is one test case of testdata/xnnpack.
type program struct {
	Name, Program   string
	Inputs, Outputs []struct {
		File, DType string
		Shape       []int
	}
	ATol, RTol float64
}

// archive is the opened test data.
type archive struct {
	t testing.TB
	z *zip.ReadCloser
}

func openArchive(t testing.TB) *archive {
	z, err := zip.OpenReader("../../testdata/xnnpack/programs.zip")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { z.Close() })
	return &archive{t, z}
}

func (a *archive) read(name string) []byte {
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

// load loads a program's method for an engine and sets its inputs.
func (a *archive) load(p *program, engine xnnpack.Engine, options ...etrun.Option) *etrun.Method {
	a.t.Helper()
	options = append(options, etrun.WithDelegates(xnnpack.Backend{Engine: engine, Library: xnntest.Path()}))
	prog, err := etrun.Parse(a.read(p.Program), options...)
	if err != nil {
		a.t.Fatal(err)
	}
	m, err := prog.Load(context.Background(), "")
	xnnpack.SkipFault(a.t, err)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() {
		m.Close()
		prog.Close()
	})
	a.setInputs(m, p)
	return m
}

func (a *archive) setInputs(m *etrun.Method, p *program) {
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
}

// check compares a method's outputs with the expected ones.
func (a *archive) check(m *etrun.Method, p *program) {
	a.t.Helper()
	for i, out := range p.Outputs {
		v, err := m.Output(i)
		if err != nil {
			a.t.Fatal(err)
		}
		got, want := v.Tensor, a.read(out.File)
		if got.DType.String() != out.DType || len(got.Data) != len(want) {
			a.t.Errorf("output %d: got %v of %d bytes, want %s%v of %d", i, got, len(got.Data), out.DType, out.Shape, len(want))
			continue
		}
		for j := range got.Numel() {
			x, y := number(got.DType, got.Data, j), number(got.DType, want, j)
			if d := math.Abs(x - y); !(d <= p.ATol+p.RTol*math.Abs(y)) && !(math.IsNaN(x) && math.IsNaN(y)) {
				a.t.Errorf("output %d, element %d: got %v, want %v, difference %g, allowed %g", i, j, x, y, d, p.ATol+p.RTol*math.Abs(y))
				break
			}
		}
	}
}

func number(d tensor.DType, b []byte, i int) float64 {
	switch d {
	case tensor.Float32:
		return float64(tensor.View[float32](b)[i])
	case tensor.Float16:
		return float64(float16.Frombits(tensor.View[uint16](b)[i]).Float32())
	case tensor.Int64:
		return float64(tensor.View[int64](b)[i])
	}
	return float64(b[i])
}

// TestPrograms runs exported programs on both engines with one and two threads.
func TestPrograms(t *testing.T) {
	a := openArchive(t)
	for _, p := range a.programs() {
		for _, engine := range []xnnpack.Engine{xnnpack.EngineGo, xnnpack.EngineNative} {
			for _, threads := range []int{1, 2} {
				t.Run(p.Name+"/"+string(engine), func(t *testing.T) {
					if engine == xnnpack.EngineNative {
						xnntest.Library(t)
					}
					a := &archive{t, a.z}
					m := a.load(&p, engine, etrun.WithThreads(threads))
					for range 2 {
						if err := m.Execute(context.Background()); err != nil {
							t.Fatal(err)
						}
						a.check(m, &p)
						a.setInputs(m, &p)
					}
				})
			}
		}
	}
}
