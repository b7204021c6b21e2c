package pte_test

import (
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/etrun-go/etrun/internal/cputime"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	pt "github.com/etrun-go/etrun/runtime/pte/ptetest"
)

const (
	// allocPerByte and allocSlack bound the memory of a parse: the largest ratio is that of a Value
	// with its Tensor, for 16 bytes of two shared tables.
	allocPerByte = 40
	allocSlack   = 1 << 20
	// parseTime is far longer than any parse takes on any machine.
	parseTime = 5 * time.Second
)

// checkParse checks the guarantees for arbitrary bytes: a result or a FormatError with a location,
// memory proportional to the size, and termination.
func checkParse[T any](t *testing.T, data []byte, parse func([]byte, pte.Limits) (*T, error)) *T {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := cputime.Process()
	got, err := parse(data, pte.Limits{})
	if d := cputime.Process() - start; d > parseTime {
		t.Errorf("%v for %d bytes, want at most %v", d, len(data), parseTime)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > allocSlack+allocPerByte*uint64(len(data)) {
		t.Errorf("%d bytes allocated for %d bytes", n, len(data))
	}
	if (got == nil) == (err == nil) {
		t.Fatalf("result %v and error %v, want one of them", got != nil, err)
	}
	if err == nil {
		return got
	}
	e, ok := errors.AsType[*pte.FormatError](err)
	if !ok || e.Msg == "" || e.Offset < 0 || e.Offset > int64(len(data)) ||
		!errors.Is(err, pte.ErrFormat) && !errors.Is(err, pte.ErrUnsupported) && !errors.Is(err, pte.ErrLimit) {
		t.Fatalf("error %#v, want a FormatError inside the %d bytes", err, len(data))
	}
	return nil
}

// checkProgram checks that a Program is consistent.
func checkProgram(t *testing.T, p *pte.Program) {
	t.Helper()
	for i := range p.Methods {
		m := &p.Methods[i]
		checkValues(t, m)
		refs := slices.Concat(m.Inputs, m.Outputs)
		for _, c := range m.Chains {
			for _, in := range c.Instructions {
				refs = append(refs, in.Args...)
				if in.Kind == pte.JumpFalseCall && (in.Target < 0 || in.Target > len(c.Instructions)) {
					t.Errorf("jump to %d of %d", in.Target, len(c.Instructions))
				}
				if in.Kind == pte.KernelCall && m.Operators[in.Index].FullName() == "" && m.Operators[in.Index].Name != "" {
					t.Error("operator without a name")
				}
			}
			if c.Stacks != nil && len(c.Stacks) != len(c.Instructions) {
				t.Errorf("%d stacks of %d instructions", len(c.Stacks), len(c.Instructions))
			}
		}
		for _, v := range refs {
			if v < 0 || v >= len(m.Values) {
				t.Errorf("reference to value %d of %d", v, len(m.Values))
			}
		}
	}
}

func checkValues(t *testing.T, m *pte.Method) {
	t.Helper()
	for i, v := range m.Values {
		for _, item := range v.Items {
			if item >= len(m.Values) || item < -1 || item == -1 && v.Kind != tensor.KindOptionalTensorList {
				t.Errorf("value %d: item %d of %d", i, item, len(m.Values))
			}
		}
		if (v.Tensor != nil) != (v.Kind == tensor.KindTensor) {
			t.Errorf("value %d: kind %v, tensor %v", i, v.Kind, v.Tensor != nil)
		}
		if v.Tensor != nil {
			checkTensor(t, i, m, v.Tensor)
		}
	}
}

func checkTensor(t *testing.T, i int, m *pte.Method, x *pte.Tensor) {
	t.Helper()
	if err := tensor.CheckShape(x.Sizes, x.DimOrder); err != nil || x.DimOrder == nil && len(x.Sizes) > 0 || !x.DType.Valid() {
		t.Errorf("value %d: %v, dim order %v, %v", i, err, x.DimOrder, x.DType)
	}
	n := x.NBytes()
	switch x.Storage {
	case pte.Planned, pte.PlannedInit, pte.ExternalPlanned:
		if x.Offset < 0 || x.Offset+n > m.Arenas[x.Arena].Size {
			t.Errorf("value %d: %d bytes at %d of %d", i, n, x.Offset, m.Arenas[x.Arena].Size)
		}
	}
	unknown := x.Data == nil && slices.ContainsFunc(m.Initial, func(f pte.InitialFault) bool { return f.Value == i && f.Err != nil })
	if (x.Storage == pte.Constant || x.Storage == pte.PlannedInit) && int64(len(x.Data)) != n && !unknown {
		t.Errorf("value %d: %d bytes of %d", i, len(x.Data), n)
	}
}

func addFiles(f *testing.F, pattern string, add func([]byte)) {
	f.Helper()
	paths, err := filepath.Glob(filepath.Join(testdata, pattern))
	if err != nil || len(paths) == 0 {
		f.Fatalf("%d files like %s, %v", len(paths), pattern, err)
	}
	for _, p := range paths {
		add(readFile(f, filepath.Base(p)))
	}
}

func FuzzParse(f *testing.F) {
	addFiles(f, "*.pte", func(b []byte) { f.Add(b) })
	for _, layout := range []pt.Layout{{}, {Inline: true}, {OldHeader: true}} {
		f.Add(pt.Write(pt.Sample(), layout))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if p := checkParse(t, data, pte.Parse); p != nil {
			checkProgram(t, p)
		}
	})
}

// FuzzMutated changes fields of a program, which plain fuzzing rarely reaches.
func FuzzMutated(f *testing.F) {
	files := [][]byte{pt.Write(pt.Sample(), pt.Layout{}), pt.Write(pt.Sample(), pt.Layout{Inline: true})}
	addFiles(f, "*.pte", func(b []byte) { files = append(files, b) })
	for i := range files {
		f.Add(uint8(i), uint64(i), uint8(1))
	}
	f.Fuzz(func(t *testing.T, file uint8, seed uint64, n uint8) {
		data, log := pt.Mutate(files[int(file)%len(files)], seed, int(n%8))
		if p := checkParse(t, data, pte.Parse); p != nil {
			checkProgram(t, p)
		}
		if t.Failed() {
			t.Log(log)
		}
	})
}

func FuzzParseData(f *testing.F) {
	addFiles(f, "*.ptd", func(b []byte) { f.Add(b) })
	f.Fuzz(func(t *testing.T, data []byte) {
		d := checkParse(t, data, pte.ParseData)
		if d == nil {
			return
		}
		for key, e := range d.Entries {
			if l := e.Layout; l != nil {
				n, ok := tensor.Product(l.Sizes)
				if err := tensor.CheckShape(l.Sizes, l.DimOrder); err != nil || !ok || n*l.DType.Size() != len(e.Data) {
					t.Errorf("%q: %+v with %d bytes, %v", key, *l, len(e.Data), err)
				}
			}
		}
	})
}

func FuzzParseBundle(f *testing.F) {
	addFiles(f, "*.bpte", func(b []byte) { f.Add(b) })
	f.Fuzz(func(t *testing.T, data []byte) {
		b := checkParse(t, data, pte.ParseBundle)
		if b == nil {
			return
		}
		for _, s := range b.Suites {
			for _, c := range s.Cases {
				for _, v := range slices.Concat(c.Inputs, c.Outputs) {
					n, ok := tensor.Product(v.Sizes)
					if v.Kind == tensor.KindTensor && (!ok || n*v.DType.Size() != len(v.Data)) {
						t.Errorf("%v%v of %d bytes", v.DType, v.Sizes, len(v.Data))
					}
				}
			}
		}
	})
}
