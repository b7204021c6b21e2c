package text

import (
	"context"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/internal/cases"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// TestMutants loads changed programs and generates with those that load: any error is fine, a panic
// is not. Payloads run on the engine in Go.
func TestMutants(t *testing.T) {
	n := cases.Of(100, 300)
	for _, file := range []string{"testdata/dynamic.pte", "testdata/counted.pte"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		loaded := 0
		for seed := range uint64(n) {
			mutant, changes := ptetest.Mutate(data, seed, 1+int(seed%3))
			if err := tryProgram(mutant, seed); err == nil {
				loaded++
			} else if is[*etrun.PanicError](err) {
				t.Errorf("%s, seed %d, %q: %v", file, seed, changes, err)
			}
		}
		if loaded == 0 || loaded == n {
			t.Errorf("%s: %d of %d mutants run", file, loaded, n)
		}
	}
}

// tryProgram generates some tokens.
func tryProgram(data []byte, seed uint64) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	limits := etrun.Limits{PlannedBytes: 64 << 20, Instructions: 1e5}
	p, err := etrun.Parse(data, etrun.WithDelegates(xnnpack.Backend{Engine: xnnpack.EngineGo}), etrun.WithLimits(limits))
	if err != nil {
		return err
	}
	defer p.Close()
	m, err := Load(ctx, p, nil)
	if err != nil {
		return err
	}
	defer m.Close()
	s, err := m.NewSession(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	r := rand.New(rand.NewPCG(seed, 1))
	for range 3 {
		prompt := make([]int, 1+r.IntN(12))
		for i := range prompt {
			prompt[i] = r.IntN(m.info.Vocabulary)
		}
		if _, _, _, err := collect(s.GenerateTokens(ctx, prompt, Options{MaxTokens: 6, Lookup: 3})); err != nil {
			return err
		}
	}
	return nil
}
