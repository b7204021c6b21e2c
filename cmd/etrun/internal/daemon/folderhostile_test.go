package daemon

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestFolderHostile looks at a folder with names, kinds of files and doubles that are no models. The others are served, each fault
// is logged once, and a second look changes nothing.
func TestFolderHostile(t *testing.T) {
	folder := t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	one, two := numbered(t, 1, 10), numbered(t, 2, 10)
	faults := []string{"\xff.pte", "a\nb.pte", "stats.pte", strings.Repeat("x", 200) + ".pte",
		"loop", "twice.pte", "fixed.pte", "pipes", "piped"}
	for _, name := range faults[:4] {
		place(t, in(name), one)
	}
	place(t, in("twice/model.pte"), one)
	place(t, in("twice-again.pte"), two)
	place(t, in("twice.pte"), two)
	place(t, in("fixed.pte"), two)
	place(t, in("good.pte"), one)
	place(t, in("pipes/readme"), nil)
	place(t, in("piped/model.pte"), one)
	for _, err := range []error{os.Symlink("loop", in("loop.pte")), os.MkdirAll(in("loop"), 0o700),
		syscall.Mkfifo(in("pipes/model.pte"), 0o600),
		syscall.Mkfifo(in("piped/model.json"), 0o600), syscall.Mkfifo(in("other.fifo"), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := readFolder(in("other.fifo"), maxEntries); err == nil {
		t.Error("a FIFO is a folder")
	}
	r := startFolder(t, folder, nil, model("fixed", adder))
	r.wait("the server is ready", func() bool { code, _, _ := r.ask("GET", "/v2/health/ready", ""); return code == 200 })
	lines := func() int { return len(r.log.lines("model not loaded")) }
	for _, name := range []string{"good", "twice", "twice-again", "fixed"} {
		if _, code, text := r.firstOf(name); code != 200 {
			t.Errorf("%s: %d %s", name, code, text)
		}
	}
	changes := func() int { return len(r.log.lines("model added")) + len(r.log.lines("model changed")) }
	had, added := lines(), changes()
	if had < len(faults) {
		t.Errorf("%d faults are logged, want at least %d", had, len(faults))
	}
	for range 3 {
		_ = r.look(t.Context(), "")
	}
	if lines() != had || changes() != added {
		t.Errorf("further looks without changes: %d faults, %d changes", lines()-had, changes()-added)
	}
	if _, text, _ := r.ask("GET", metricsPath, ""); strings.Contains(text, `model="stats"`) || strings.Contains(text, "xxxx") {
		t.Error("files that are no models have metrics")
	}
}

// TestLargeFolder refuses a folder with too many entries, before it looks at them.
func TestLargeFolder(t *testing.T) {
	folder := t.TempDir()
	for i := range 4 {
		if err := os.Mkdir(filepath.Join(folder, fmt.Sprint("m", i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if names, err := readFolder(folder, 4); err != nil || len(names) != 4 {
		t.Errorf("%q, %v", names, err)
	}
	if _, err := readFolder(folder, 3); err == nil || !strings.Contains(err.Error(), "more than 3 entries") {
		t.Error(err)
	}
}

// TestNames rejects names that no model can have, before the server starts.
func TestNames(t *testing.T) {
	for _, name := range []string{"", "\xff", "a b", "a/b", "stats"} {
		if err := checkNames([]*Model{model("good", adder), model(name, adder)}); err == nil {
			t.Errorf("%q is the name of a model", name)
		}
		d := &Daemon{Settings: Defaults(), Models: []*Model{model(name, adder)}, Log: io.Discard}
		if err := d.prepare(t.Context()); err == nil || !strings.Contains(err.Error(), "model name") {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := checkNames([]*Model{model("a", adder), model("a", adder)}); err == nil || !strings.Contains(err.Error(), "two models") {
		t.Error(err)
	}
}
