//go:build linux

package campaign

import (
	"errors"
	"maps"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"
)

// TestRun makes seeds fail in all ways that a campaign must detect and continue after.
func TestRun(t *testing.T) {
	process := os.Getenv(envProcess) != ""
	if !process {
		t.Setenv(EnvRuns, "")
		t.Setenv(EnvFindings, "")
	}
	found := make(map[uint64]string)
	c := &Campaign{Test: "TestRun", Usual: 40, Memory: 32 << 20, Counters: []string{"seeds", "odd ones"},
		Start: func(t *testing.T, p *Process) func(uint64) error {
			return func(seed uint64) error {
				p.Count(0, 1)
				p.Count(1, int(seed%2))
				switch seed {
				case 5:
					return errors.New("wrong by 7.5")
				case 9:
					panic("planted")
				case 14:
					syscall.Kill(os.Getpid(), syscall.SIGABRT)
					time.Sleep(MaxTime) // not forever: the runtime's report of a deadlock can block that of the signal
				case 21:
					b := make([]byte, 64<<20)
					for i := range b {
						b[i] = 1
					}
					if b[len(b)/2] == 0 {
						return errors.New("not set")
					}
				case 40:
					return &Finding{Kind: "own", Message: "last"}
				}
				return nil
			}
		},
		Found: func(_ *testing.T, f *Finding, _ string) { found[f.Seed] = f.Kind },
	}
	if c.Run(t); process {
		return
	}
	want := map[uint64]string{5: "error", 9: "crash", 14: "crash", 21: "memory", 40: "own"}
	if !maps.Equal(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}
	if g := General("wrong by 7.5 of 0x1f at 3e-5"); g != "wrong by # of # at #" {
		t.Error(g)
	}
	if !slices.Equal(Corpus(".go"), nil) {
		t.Error("files of no corpus")
	}
}
