package collect

import "testing"

// TestLook checks that garbage is collected once little is allocated, if there may be some.
func TestLook(t *testing.T) {
	for _, c := range []struct {
		name                 string
		freed                bool
		since, sinceLook     int64 // bytes allocated since the last collection and look
		collected, looksOnce bool
	}{
		{"nothing", false, 0, 0, false, true},
		{"a busy server", true, 9 * little, 2 * little, false, false},
		{"an idle one", false, 2 * little, 0, true, true},
		{"an idle one with little garbage", false, little / 2, 0, false, true},
		{"an idle one that has freed a text", true, 0, 0, true, true},
	} {
		now := allocated()
		freed.Store(c.freed)
		last.Store(now - c.since)
		watched.Store(true)
		look(now - c.sinceLook)
		if collected := last.Load() > now-c.since || !freed.Load() && c.freed; collected != c.collected || watched.Load() == c.looksOnce {
			t.Errorf("%s: collected %v, again %v; want %v, %v", c.name, collected, watched.Load(), c.collected, !c.looksOnce)
		}
	}
}
