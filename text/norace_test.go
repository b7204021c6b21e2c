//go:build !race

package text

import (
	"context"
	"testing"
)

// TestAllocations checks that a token costs no allocations but those of its piece.
func TestAllocations(t *testing.T) {
	s := newSession(t, openProgram(t, "testdata/dynamic.pte"))
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
		t.Errorf("20 more tokens cost %v allocations", long-short)
	}
}
