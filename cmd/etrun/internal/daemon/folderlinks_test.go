package daemon

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etrun-go/etrun/cmd/etrun/internal/bytesize"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
)

// TestFolderLinks follows links within the folder, as those of mounted volumes, and refuses those that leave it.
func TestFolderLinks(t *testing.T) {
	folder, away := t.TempDir(), t.TempDir()
	in, out := func(name string) string { return filepath.Join(folder, name) }, func(name string) string { return filepath.Join(away, name) }
	one := numbered(t, 1, 10)
	place(t, out("model.pte"), one)
	place(t, out("model.json"), []byte("{}"))
	place(t, out("secret"), []byte("secret"))
	place(t, in(".data/inner.pte"), one)
	place(t, in(".data/inner.json"), []byte(`{"queue": 3}`))
	place(t, in("options/model.pte"), one)
	place(t, in("data/model.pte"), one)
	place(t, in("data/model.json"), []byte(`{"data": "x.ptd"}`))
	place(t, in("texts/model.pte"), one)
	place(t, in("texts/model.json"), []byte(`{"tokenizer": "words"}`))
	place(t, in("texts/words/readme"), nil)
	for link, target := range map[string]string{
		"inner.pte": ".data/inner.pte", "inner.json": ".data/inner.json", "file.pte": out("model.pte"), "folder": away,
		"relative.pte": "../" + filepath.Base(away) + "/model.pte", "options/model.json": out("model.json"), "data/x.ptd": out("secret"),
		"texts/words/tokenizer.json": out("secret"), "chain.pte": "second.link", "second.link": out("model.pte"),
	} {
		if err := os.Symlink(target, in(link)); err != nil {
			t.Fatal(err)
		}
	}
	root := filepath.Join(t.TempDir(), "linked")
	if err := os.Symlink(folder, root); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{folder, root} {
		entries, err := entriesOf(path)
		if err != nil || len(entries) != 8 {
			t.Fatal(entries, err)
		}
		for _, e := range entries {
			limits := DefaultLimits()
			_, err := e.model(t.Context(), &session.Options{}, &limits)
			if e.name == "inner" && err != nil || e.name != "inner" && (err == nil || !strings.Contains(err.Error(), "a link out of the folder")) {
				t.Errorf("%s: %v", e.name, err)
			}
		}
	}
}

// TestFolderLinksLater replaces files of a served model by links out of the folder: they are not read when it is loaded again.
func TestFolderLinksLater(t *testing.T) {
	for _, isolate := range []bool{false, true} {
		if isolate && !canIsolate {
			continue
		}
		folder, away := t.TempDir(), t.TempDir()
		in, out := func(name string) string { return filepath.Join(folder, name) }, filepath.Join(away, "model.pte")
		one, two := numbered(t, 1, 10), numbered(t, 2, 10)
		place(t, in("a.pte"), one)
		place(t, in("b.pte"), one)
		place(t, in("b.json"), []byte(`{"queue": 3}`))
		place(t, out, two)
		r := startFolder(t, folder, func(d *Daemon) { d.CommonLimits.Isolate = isolate })
		r.wait("the server is ready", func() bool { code, _, _ := r.ask("GET", "/v2/health/ready", ""); return code == 200 })
		for _, name := range []string{"a", "b"} {
			if err := errors.Join(os.Remove(in(name+".pte")), os.Symlink(out, in(name+".pte"))); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				_ = r.look(t.Context(), "")
			}
			if y, code, text := r.firstOf(name); code != 200 || y != answerOf(t, one) {
				t.Errorf("before it is loaded again: %g, %d %s", y, code, text)
			}
			code, text, _ := r.ask("POST", "/v2/repository/models/"+name+"/load", "{}")
			if y, _, _ := r.firstOf(name); code == 200 || y == answerOf(t, two) || !strings.Contains(text, "a link out of the folder") {
				t.Errorf("isolate %v, model %s: %g, %d %s", isolate, name, y, code, text)
			}
		}
		if n := len(r.log.lines("model not loaded")); n < 2 {
			t.Errorf("%d lines of the log name the links", n)
		}
	}
}

// TestFolderDangling refuses a model whose options are a link to nothing: they were given, and would be ignored.
func TestFolderDangling(t *testing.T) {
	folder := t.TempDir()
	place(t, filepath.Join(folder, "a.pte"), numbered(t, 1, 10))
	if err := os.Symlink("nothing", filepath.Join(folder, "a.json")); err != nil {
		t.Fatal(err)
	}
	entries, err := entriesOf(folder)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	limits := DefaultLimits()
	if m, err := entries[0].model(t.Context(), &session.Options{}, &limits); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, %v", m, err)
	}
}

// TestFolderMapped refuses to map files that others can truncate.
func TestFolderMapped(t *testing.T) {
	with, err := new(session.Options).With([]string{"--mmap"})
	if err != nil {
		t.Fatal(err)
	}
	limits := DefaultLimits()
	if err := checkMapped("folder", with, &limits); err == nil || !strings.Contains(err.Error(), "--mmap with --models") {
		t.Error(err)
	}
	apart := limits
	apart.Isolate = true
	for _, err := range []error{checkMapped("", with, &limits), checkMapped("folder", with, &apart),
		checkMapped("folder", &session.Options{}, &limits)} {
		if err != nil {
			t.Error(err)
		}
	}
}

// TestFolderRoom tries a model again for which there was no room, after others have been removed. The fault is logged once.
func TestFolderRoom(t *testing.T) {
	folder, size := t.TempDir(), 64<<10
	in := func(name string) string { return filepath.Join(folder, name) }
	for i, name := range []string{"a", "b"} {
		place(t, in(name+".pte"), numbered(t, float32(i), size))
		place(t, in(name+".json"), []byte(`{"load": "start"}`))
	}
	r := startFolder(t, folder, func(d *Daemon) { d.Memory = bytesize.Size(size * 3 / 2) })
	r.wait("the server is ready", func() bool { code, _, _ := r.ask("GET", "/v2/health/ready", ""); return code == 200 })
	check := func(when string, a, b int) {
		t.Helper()
		_, first, _ := r.firstOf("a")
		if _, second, text := r.firstOf("b"); first != a || second != b {
			t.Errorf("%s: statuses %d, %d (%s), want %d, %d", when, first, second, text, a, b)
		}
	}
	due := func() { // as if the pause were over
		r.reloading.Lock()
		defer r.reloading.Unlock()
		for name, x := range r.applied.retries {
			r.applied.retries[name] = retry{time.Now(), x.pause}
		}
	}
	check("at the start", 200, 503)
	pauses := []time.Duration{r.applied.retries["b"].pause}
	for range 7 {
		due()
		_ = r.look(t.Context(), "")
		pauses = append(pauses, r.applied.retries["b"].pause)
	}
	if pauses[0] != minPause || pauses[1] != 2*minPause || pauses[7] != maxPause || len(r.log.lines("model not loaded")) != 1 {
		t.Errorf("pauses %v, %d lines", pauses, len(r.log.lines("model not loaded")))
	}
	if err := os.Remove(in("a.pte")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_ = r.look(t.Context(), "")
	}
	check("before the pause is over", 404, 503)
	due()
	_ = r.look(t.Context(), "")
	check("with room", 404, 200)
	if len(r.applied.retries) != 0 {
		t.Error("a model that is loaded is tried again")
	}
}
