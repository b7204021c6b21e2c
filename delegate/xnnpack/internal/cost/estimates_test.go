package cost

import (
	"testing"
	"time"
)

// TestMargin checks that the library runs a graph only if it saves more than the margin.
func TestMargin(t *testing.T) {
	for _, test := range []struct {
		library, inGo time.Duration
		want          bool
	}{
		{90, 100, false}, {95, 100, false}, {97, 100, true}, {100, 100, true}, {120, 100, true}, {Never / time.Microsecond, 100, true}, {1, 3, false},
		{9, 10, false}, {1, 2, false},
	} {
		if e := (Estimates{ByLibrary: test.library * time.Microsecond, ByGo: test.inGo * time.Microsecond}); e.PrefersGo() != test.want {
			t.Errorf("%v: got Go %v, want %v", e, e.PrefersGo(), test.want)
		}
	}
}
