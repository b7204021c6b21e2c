//go:build linux

package guard

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// accesses are accesses inside and outside guarded memory.
var accesses = []struct {
	name  string
	fault bool
	run   func(m *Memory) byte
}{
	{"last byte", false, func(m *Memory) byte { return m.End(7, 0)[6] }},
	{"first byte", false, func(m *Memory) byte { return m.Start(7, 0)[0] }},
	{"slack behind", false, func(m *Memory) byte { return m.Behind(7, 3, 64)[9] }},
	{"beyond the slack", true, func(m *Memory) byte { return m.Behind(7, 3, 64)[10] }},
	{"over-read", true, func(m *Memory) byte { return m.Behind(7, 0, 64)[7] }},
	{"over-write", true, func(m *Memory) byte { m.Behind(7, 0, 64)[7] = 1; return 0 }},
	{"under-read", true, func(m *Memory) byte { return m.mapped[os.Getpagesize()-1] }},
}

const envAccess = "ETRUN_GUARD_ACCESS"

// TestAccess performs each access in its own process.
func TestAccess(t *testing.T) {
	if name := os.Getenv(envAccess); name != "" {
		m, err := Map(1)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range accesses {
			if a.name == name {
				t.Log(a.run(m))
			}
		}
		return
	}
	for _, a := range accesses {
		cmd := exec.Command(os.Args[0], "-test.run=^TestAccess$")
		cmd.Env = append(os.Environ(), envAccess+"="+a.name)
		out, err := cmd.CombinedOutput()
		if fault := err != nil && strings.Contains(string(out), "SIGSEGV"); fault != a.fault {
			t.Errorf("%s: fault %v, want %v: %v\n%s", a.name, fault, a.fault, err, out)
		}
	}
}

func TestSlices(t *testing.T) {
	var arena Arena
	page := os.Getpagesize()
	for _, n := range []int{0, 1, page - 1, page, page + 1, 5 * page} {
		m, err := arena.Allocate(n + 33)
		if err != nil {
			t.Fatal(err)
		}
		for slack := range 33 {
			end, start := m.End(n, slack), m.Start(n, slack)
			if len(end) != n || cap(end) != n || len(start) != n || cap(start) != n {
				t.Fatalf("%d bytes with slack %d: %d of %d, %d of %d", n, slack, len(end), cap(end), len(start), cap(start))
			}
			for i := range end {
				end[i], start[i] = 1, 2
			}
		}
	}
	arena.Reset()
	before := 0
	for _, f := range arena.free {
		before += len(f)
	}
	for range 1000 {
		m, err := arena.Allocate(page)
		if err != nil {
			t.Fatal(err)
		}
		m.Fill(3)
		arena.Reset()
	}
	after := 0
	for _, f := range arena.free {
		after += len(f)
	}
	if before != 6 || after > before+1 {
		t.Errorf("%d mappings after 6 uses, %d after 1000 more", before, after)
	}
}
