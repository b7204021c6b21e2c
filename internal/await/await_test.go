package await

import (
	"testing"
	"testing/synctest"
	"time"
)

// The clock of the bubble shows that a condition is asked for until it is true, and no longer than the limit.
func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		since := func() time.Duration { return time.Since(begun) }
		if !Until(func() bool { return true }) || since() != 0 {
			t.Errorf("a true condition: after %v", since())
		}
		if !Until(func() bool { return since() >= 10*time.Millisecond }) || since() != 10*time.Millisecond {
			t.Errorf("true after 10 ms: after %v", since())
		}
		begun = time.Now()
		if Until(func() bool { return false }) || since() != limit {
			t.Errorf("a false condition: after %v", since())
		}
	})
}
