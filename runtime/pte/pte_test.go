package pte_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

const testdata = "../../testdata/pte"

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(testdata, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parseFile(t testing.TB, name string) *pte.Program {
	t.Helper()
	p, err := pte.Parse(readFile(t, name), pte.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return p
}

// facts are the expected properties of a program.
type facts struct {
	header                               bool
	named, methods                       int
	values, operators, delegates, stacks int // sums over all methods
	instructions                         map[pte.InstructionKind]int
	kinds                                map[tensor.Kind]int
	storages                             map[pte.Storage]int
}

func factsOf(p *pte.Program) facts {
	f := facts{header: p.Header != nil, named: len(p.Named), methods: len(p.Methods),
		instructions: map[pte.InstructionKind]int{}, kinds: map[tensor.Kind]int{}, storages: map[pte.Storage]int{}}
	for _, m := range p.Methods {
		f.values += len(m.Values)
		f.operators += len(m.Operators)
		f.delegates += len(m.Delegates)
		for _, v := range m.Values {
			f.kinds[v.Kind]++
			if v.Tensor != nil {
				f.storages[v.Tensor.Storage]++
			}
		}
		for _, c := range m.Chains {
			f.stacks += len(c.Stacks)
			for _, in := range c.Instructions {
				f.instructions[in.Kind]++
			}
		}
	}
	return f
}

// TestTruncated truncates each file at every length: no prefix is a valid program.
func TestTruncated(t *testing.T) {
	files, err := filepath.Glob(testdata + "/*.pte")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, path := range files {
		data := readFile(t, filepath.Base(path))
		for n := range data {
			p, err := pte.Parse(data[:n], pte.Limits{})
			if fe, ok := errors.AsType[*pte.FormatError](err); p != nil || !ok || fe.Offset < 0 || fe.Offset > int64(n) {
				t.Fatalf("%s cut to %d of %d bytes: program %v, error %v, want a FormatError inside the bytes", filepath.Base(path), n, len(data), p != nil, err)
			}
		}
	}
}
