package text

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// TestContextBeyondCaches checks that metadata that promise more positions than caches and tables have are bounded with a
// warning, at every lowering, and that texts then end as with any full context.
func TestContextBeyondCaches(t *testing.T) {
	t.Run("dynamic", func(t *testing.T) { testBeyondCaches(t, "testdata/dynamic.pte", 32) })
	t.Run("counted", func(t *testing.T) { testBeyondCaches(t, "testdata/counted.pte", 24) })
}

func testBeyondCaches(t *testing.T, path string, context int) {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := pte.Parse(data, pte.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, promised := range []int64{33, 64, 1 << 20} {
		changed := 0
		for i := range whole.Methods {
			if m := &whole.Methods[i]; m.Name == "get_max_context_len" || m.Name == "get_max_seq_len" {
				m.Values[m.Outputs[0]].Int = promised
				changed++
			}
		}
		if changed == 0 {
			whole.Methods = append(whole.Methods, constantMethod("get_max_context_len", int(promised)))
		}
		long := ptetest.Write(whole, ptetest.Layout{})
		for _, l := range []etrun.Lowering{etrun.LowerOff, etrun.LowerRewrite, etrun.LowerAuto} {
			p, err := etrun.Parse(long, etrun.WithDelegates(all.Backends()...), etrun.WithLowering(l))
			if err != nil {
				t.Fatal(err)
			}
			m, err := Load(t.Context(), p, nil)
			if err != nil {
				t.Fatal(err)
			}
			warnings := strings.Join(m.Warnings(), "\n")
			for _, want := range []string{fmt.Sprint(promised), fmt.Sprint(context), "tensor", "get_max"} {
				if !strings.Contains(warnings, want) {
					t.Errorf("%d positions: warnings %q without %q", promised, warnings, want)
				}
			}
			if m.Info().Context != context {
				t.Errorf("%d positions: got %+v", promised, m.Info())
			}
			got, _, last, err := collect(sessionOf(t, m).GenerateTokens(t.Context(), []int{1, 2, 3}, Options{IgnoreEOS: true}))
			if err != nil || last.Finish != FinishContext || len(got) != context-2 {
				t.Errorf("%d positions: %d tokens, %q, %v", promised, len(got), last.Finish, err)
			}
			p.Close()
		}
	}
}
