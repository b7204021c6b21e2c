//go:build corpus

package ethosu

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/hal/ethosu/ethosutest"
	"github.com/etrun-go/etrun/runtime/pte"
)

// A corpus is a folder of programs with test vectors for their delegate calls:
//
//	go test -tags corpus ./delegate/ethosu -run Corpus -corpus DIR
var corpus = flag.String("corpus", "", "folder of programs with vectors of their delegates' calls")

func TestCorpus(t *testing.T) {
	pool := cpu.NewPool(2)
	defer pool.Close()
	calls := 0
	err := filepath.WalkDir(*corpus, func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".pte" {
			t.Run(path, func(t *testing.T) { calls += runProgram(t, path, pool) })
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if calls == 0 {
		t.Errorf("no calls of delegates in the programs of %q", *corpus)
	}
	t.Logf("%d calls", calls)
}

// named finds data in the files next to a program.
type named map[string][]byte

func (n named) Named(key string) ([]byte, bool) { b, ok := n[key]; return b, ok }

func runProgram(t *testing.T, path string, pool *cpu.Pool) (calls int) {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := pte.Parse(b, pte.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	m, data := &p.Methods[0], dataBeside(t, path)
	for _, chain := range m.Chains {
		for _, in := range chain.Instructions {
			if in.Kind != pte.DelegateCall || m.Delegates[in.Index].ID != ID {
				continue
			}
			v := &ethosutest.Vector{Name: path, Files: map[string][]byte{}}
			files, _ := filepath.Glob(filepath.Join(filepath.Dir(path), fmt.Sprintf("call%d_*.bin", calls)))
			for _, f := range files {
				_, name, _ := strings.Cut(filepath.Base(f), "_")
				if v.Files[name], err = os.ReadFile(f); err != nil {
					t.Fatal(err)
				}
			}
			payload := &delegate.Payload{Method: m.Name, Index: in.Index, Data: m.Delegates[in.Index].Data, Named: data}
			for _, a := range in.Args {
				spec := m.Values[a].Tensor
				payload.Args = append(payload.Args, &delegate.ArgSpec{Value: a, DType: spec.DType, Sizes: spec.Sizes})
			}
			c, err := newCall(t, payload, pool)
			if err != nil {
				t.Fatal(err)
			}
			if calls++; len(files) == 0 {
				t.Log("no test vectors: only compiled")
				continue
			}
			c.run(t, v)
			c.check(t, v)
		}
	}
	return calls
}

func dataBeside(t *testing.T, path string) named {
	out := named{}
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.ptd"))
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		d, err := pte.ParseData(b, pte.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		for k, e := range d.Entries {
			out[k] = e.Data
		}
	}
	return out
}

// TestDamaged compiles and runs the corrupted payloads of a folder with the first input of the
// intact ones: all must fail.
func TestDamaged(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(*corpus, "*.vela"))
	if len(files) == 0 {
		t.Fatalf("no .vela files in %q", *corpus)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			err = compileAndRun(b)
			var e *delegate.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want a *delegate.Error", err)
			}
			t.Log(err)
		})
	}
}
