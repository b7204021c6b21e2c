package etrun_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sleeps are the test files that may sleep, how often, and why. A sleep that waits for something is too long on an idle
// machine and too short on a loaded one: wait for the thing itself, with a channel or package await.
var sleeps = map[string]struct {
	calls  int
	reason string
}{
	"cmd/etrun/bench_test.go":                    {1, "the end of the warm-up, which nothing announces"},
	"cmd/etrun/internal/bench/bench_test.go":     {1, "the clock of a synctest bubble"},
	"cmd/etrun/internal/daemon/attack_test.go":   {8, "the pace of attackers"},
	"cmd/etrun/internal/daemon/daemon_test.go":   {1, "requests further apart than a time limit"},
	"cmd/etrun/internal/daemon/folder_test.go":   {1, "the pace of changes to files"},
	"cmd/etrun/internal/daemon/hostile_test.go":  {1, "the pace of clients"},
	"cmd/etrun/internal/daemon/isolated_test.go": {1, "the period in which processes are killed"},
	"cmd/etrun/internal/daemon/load_test.go":     {3, "the pace of refused clients and of reloads"},
	"cmd/etrun/internal/output/file_test.go":     {1, "a slow reader"},
	"cmd/etrun/internal/session/overdue_test.go": {1, "a callee that ignores its context"},
	"cmd/etrun/serve_test.go":                    {1, "a signal at several times of the startup"},
	"hal/cpu/stop_test.go":                       {1, "a slow loop"},
	"hal/ethosu/arm_test.go":                     {1, "a slow device"},
	"internal/campaign/campaign_test.go":         {1, "a process that does not end"},
	"internal/openfile/openfile_test.go":         {1, "a slow writer"},
	"load_test.go":                               {1, "a slow compilation"},
	"methods_test.go":                            {1, "a slow loop"},
	"serve/bodies_test.go":                       {1, "a slow client"},
	"serve/demand_test.go":                       {2, "an idle time, and the pace of changes"},
	"serve/isolate/workers_test.go":              {1, "a process that does not end"},
	"serve/queue_test.go":                        {1, "a slow model"},
	"tuning_test.go":                             {1, "a unit that takes as long as the test says"},
}

// TestSleeps compares the sleeps in tests with the table.
func TestSleeps(t *testing.T) {
	found := make(map[string]int)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		found[filepath.ToSlash(path)] = bytes.Count(text, []byte("time."+"Sleep("))
		return err
	})
	if err != nil || len(found) < 100 {
		t.Fatalf("%d files, %v", len(found), err)
	}
	for path, n := range found {
		if want := sleeps[path].calls; n != want {
			t.Errorf("%s: %d calls of time.Sleep, want %d", path, n, want)
		}
	}
	for path := range sleeps {
		if found[path] == 0 {
			t.Errorf("%s: no such test, or it does not sleep", path)
		}
	}
}
