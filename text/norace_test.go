//go:build !race

package text

import (
	"context"
	"testing"
)

// TestAllocations checks that a token costs no allocations but those of its piece, also where it becomes a row.
func TestAllocations(t *testing.T) {
	for _, name := range []string{"testdata/dynamic.pte", "testdata/pictures/model.pte"} {
		s := newSession(t, openProgram(t, name))
		run := func(n int) func() {
			return func() {
				for _, err := range s.GenerateTokens(context.Background(), []int{1, 2}, Options{MaxTokens: n, IgnoreEOS: true}) {
					if err != nil {
						t.Error(err)
					}
				}
			}
		}
		run(28)()
		short, long := testing.AllocsPerRun(20, run(8)), testing.AllocsPerRun(20, run(28))
		if long > short {
			t.Errorf("%s: 20 more tokens cost %v allocations", name, long-short)
		}
	}
}
