package collect

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
)

// TestOften checks that collections become more frequent for files that are large together, and for what is no file.
func TestOften(t *testing.T) {
	dir := t.TempDir()
	half, tiny := filepath.Join(dir, "half"), filepath.Join(dir, "tiny")
	for name, size := range map[string]int64{half: Small / 2, tiny: 10} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(name, size); err != nil {
			t.Fatal(err)
		}
	}
	percent := func() int {
		n := debug.SetGCPercent(100)
		debug.SetGCPercent(n)
		return n
	}
	usual := percent()
	for _, c := range []struct {
		files []string
		often bool
	}{{[]string{tiny, half}, false}, {[]string{half, half}, true}, {[]string{tiny, os.DevNull}, true}, {[]string{filepath.Join(dir, "none")}, true}} {
		restore := Often(c.files...)
		if often := percent() < usual; often != c.often {
			t.Errorf("%v: more often %v, want %v", c.files, often, c.often)
		}
		if restore(); percent() != usual {
			t.Errorf("%v: %d %% afterwards, want %d", c.files, percent(), usual)
		}
	}
}

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
