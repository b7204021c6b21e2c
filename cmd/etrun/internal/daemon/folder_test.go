package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/bytesize"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// numbered returns a program whose answer shows a number, and whose file has a size.
func numbered(t *testing.T, number float32, size int) []byte {
	t.Helper()
	file, err := os.ReadFile(adder)
	if err != nil {
		t.Fatal(err)
	}
	p, err := pte.Parse(file, pte.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range p.Methods[0].Values {
		if v.Tensor != nil && v.Tensor.Storage == pte.PlannedInit {
			v.Tensor.Data = tensor.BytesOf([]float32{number, number, number, number})
		}
	}
	p.Named = map[string][]byte{"padding": make([]byte, size)}
	return ptetest.Write(p, ptetest.Layout{})
}

// answerOf is the first element that a program returns for adderBody.
func answerOf(t *testing.T, program []byte) float32 {
	t.Helper()
	p, err := etrun.Parse(program, etrun.WithThreads(1))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m, err := p.Load(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	y, err := etrun.Run[float32](t.Context(), m, []float32{1, 2, 3, 4})
	if err != nil {
		t.Fatal(err)
	}
	return y[0]
}

// place writes a file as a whole, by renaming.
func place(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	hidden := filepath.Join(filepath.Dir(path), "."+filepath.Base(path))
	if err := errors.Join(os.WriteFile(hidden, data, 0o600), os.Rename(hidden, path)); err != nil {
		t.Fatal(err)
	}
}

// firstOf asks a model, and returns the first element of its output.
func (r *running) firstOf(name string) (y float32, code int, text string) {
	code, text, _ = r.ask("POST", "/v2/models/"+name+"/infer", adderBody)
	var object struct{ Outputs []struct{ Data []float32 } }
	if code == http.StatusOK && (json.Unmarshal([]byte(text), &object) != nil || len(object.Outputs[0].Data) != 4) {
		r.t.Errorf("model %s: %s", name, text)
		return 0, code, text
	}
	if code == http.StatusOK {
		y = object.Outputs[0].Data[0]
	}
	return y, code, text
}

// startFolder runs a daemon with the models of a folder.
func startFolder(t *testing.T, folder string, change func(*Daemon), models ...*Model) *running {
	limits := DefaultLimits()
	return start(t, func(d *Daemon) {
		d.Folder, d.Interval, d.Control = folder, 0, true
		d.Common, d.CommonLimits = &session.Options{Threads: 1}, &limits
		if change != nil {
			change(d)
		}
	}, models...)
}

// TestFolder adds, replaces, breaks and removes models of a folder, in all its layouts.
func TestFolder(t *testing.T) {
	folder := t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	one, two := numbered(t, 1, 10), numbered(t, 2, 10)
	place(t, in("flat.pte"), one)
	place(t, in("flat.json"), []byte(`{"instances": 1}`))
	place(t, in("single/program.pte"), one)
	place(t, in("usual/other.pte"), two)
	place(t, in("usual/model.pte"), one)
	place(t, in("versions/2/model.pte"), one)
	place(t, in("versions/10/model.pte"), two)
	place(t, in("versions/model.json"), []byte(`{"queue": 3}`))
	place(t, in("broken.pte"), []byte("broken"))
	place(t, in("empty/readme"), nil)
	place(t, in("notes.txt"), nil)
	place(t, in("fixed.pte"), two)
	place(t, in("not valid.pte"), one)
	r := startFolder(t, folder, nil, model("fixed", adder))
	r.wait("the server is ready", func() bool { code, _, _ := r.ask("GET", "/v2/health/ready", ""); return code == 200 })
	a, b := answerOf(t, one), answerOf(t, two)
	const none, failed = -1, -2
	check := func(when string, want map[string]float32) {
		t.Helper()
		for name, y := range want {
			got, code, text := r.firstOf(name)
			if y == none && code != 404 || y == failed && (code != 503 || !strings.Contains(text, "UNAVAILABLE")) || y >= 0 && (code != 200 || got != y) {
				t.Errorf("%s: model %s: %v, %d %s, want %v", when, name, got, code, text, y)
			}
		}
	}
	if a == b {
		t.Fatal("the programs answer alike")
	}
	check("at the start", map[string]float32{"flat": a, "single": a, "usual": a, "versions": b, "broken": failed, "empty": failed, "notes": none})
	if code, text, _ := r.ask("POST", "/v2/models/versions/versions/10/infer", adderBody); code != 200 {
		t.Errorf("by the number of the version: %d %s", code, text)
	}
	if n := len(r.log.lines("model not loaded")); n < 4 {
		t.Errorf("%d faults are logged", n)
	}
	loaded := len(r.log.lines("model loaded"))
	r.reload(t.Context())
	if n := len(r.log.lines("model loaded")); n != loaded {
		t.Errorf("%d models without changes are loaded again", n-loaded)
	}
	place(t, in("flat.pte"), two)
	place(t, in("single/program.pte"), []byte("broken"))
	place(t, in("broken.pte"), one)
	place(t, in("versions/11/model.pte"), one)
	if err := os.RemoveAll(in("usual")); err != nil {
		t.Fatal(err)
	}
	_ = r.look(t.Context(), "")
	check("after one look", map[string]float32{"flat": a, "usual": a, "versions": b, "broken": failed})
	_ = r.look(t.Context(), "")
	check("after two", map[string]float32{"flat": b, "single": a, "usual": none, "versions": a, "broken": a})
	for _, message := range []string{"model added", "model changed", "model removed"} {
		if len(r.log.lines(message)) == 0 {
			t.Errorf("%q is not in the log", message)
		}
	}
	if err := os.Rename(folder, folder+".away"); err != nil {
		t.Fatal(err)
	}
	r.reload(t.Context())
	check("without the folder", map[string]float32{"flat": b, "broken": a})
	_ = os.Rename(folder+".away", folder)
}

// TestFolderOptions refuses options that a folder's model may not have.
func TestFolderOptions(t *testing.T) {
	secret := file(t, "secret", "x")
	for text, want := range map[string]string{
		`{"name": "x"}`:                   "not in the file of a model",
		`{"path": "x.pte"}`:               "not in the file of a model",
		`{"trust": "x"}`:                  "not in the file of a model",
		`{"weights-cache": "/tmp"}`:       "not in the file of a model",
		`{"mmap": true}`:                  "not in the file of a model",
		`{"isolate": false}`:              "the server has --isolate",
		`{"data": "` + secret + `"}`:      "want a file in",
		`{"data": ["a", "../secret"]}`:    "want a file in",
		`{"tokenizer": "../x"}`:           "want a file in",
		`{"template": "/etc/passwd"}`:     "want a file in",
		`{"listen": "127.0.0.1:0"}`:       "no flag --listen",
		`{"queue": 1} {}`:                 "extra bytes",
		`{"queue": 1`:                     "ends too early",
		`[]`:                              "not an object",
		`{"instances": 1000000}`:          "at most 1024",
		`{"load": "never"}`:               "want start or demand",
		`{"load": "start", "idle": "1s"}`: "--idle with --load start",
	} {
		folder, limits := t.TempDir(), DefaultLimits()
		limits.Isolate = strings.Contains(text, "isolate")
		place(t, filepath.Join(folder, "m", "model.pte"), nil)
		place(t, filepath.Join(folder, "m", optionsFile), []byte(text))
		entries, err := entriesOf(folder)
		if err != nil || len(entries) != 1 {
			t.Fatal(entries, err)
		}
		if _, err := entries[0].model(t.Context(), &session.Options{}, &limits); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want one with %q", text, err, want)
		}
	}
}

// folderTime is how long TestFolderChurn sends requests, to a hundred models of 1 MB.
const folderTime = "ETRUN_SERVE_CHURN"

// TestFolderChurn sends requests to models of a folder, some of which fit into memory, while files are added, replaced, broken and
// removed: none is lost or gets the answer of another model, and memory stays within the limit.
func TestFolderChurn(t *testing.T) {
	t.Parallel()
	models, size, clients, limit := 20, 64<<10, 8, 600*time.Millisecond
	if d, err := time.ParseDuration(os.Getenv(folderTime)); err == nil {
		models, size, clients, limit = 100, 1<<20, 32, d
	}
	folder := t.TempDir()
	path := func(i int) string { return filepath.Join(folder, fmt.Sprintf("m%d.pte", i)) }
	base := answerOf(t, numbered(t, 0, 0))
	step := answerOf(t, numbered(t, 1, 0)) - base
	changed := make([]atomic.Int64, models) // even if the file has not been touched since it was valid
	for i := range models {
		place(t, path(i), numbered(t, float32(100*i), size))
	}
	bound := int64(size+8<<10) * int64(models/5)
	r := startFolder(t, folder, func(d *Daemon) {
		d.Memory, d.Interval, d.AccessLog = bytesize.Size(bound), 10*time.Millisecond, false
		d.CommonLimits.Load, d.CommonLimits.Timeout = onDemand, time.Minute
	})
	r.wait("the server is ready", func() bool { code, _, _ := r.ask("GET", "/v2/health/ready", ""); return code == 200 })
	end := time.Now().Add(limit)
	var all sync.WaitGroup
	var answers, most atomic.Int64
	goesOn := func() bool { return time.Now().Before(end) || answers.Load() < 20 } // a slow machine takes longer
	for client := range clients {
		all.Go(func() {
			random := rand.New(rand.NewPCG(3, uint64(client)))
			for goesOn() {
				i := int(min(random.ExpFloat64()*float64(models)/5, float64(models-1)))
				before := changed[i].Load()
				y, code, text := r.firstOf(fmt.Sprintf("m%d", i))
				touched := before%2 == 1 || changed[i].Load() != before
				number := (y - base) / step
				switch {
				case code == 200 && number >= float32(100*i) && number < float32(100*i+100):
					answers.Add(1)
				case code == 200 || !touched && code != 200:
					t.Errorf("model %d: %v, %d %s", i, number, code, text)
				}
				most.Store(max(most.Load(), r.server.MemoryBytes()))
			}
		})
	}
	all.Go(func() {
		random := rand.New(rand.NewPCG(5, 6))
		for n := 1; goesOn(); n++ {
			i := random.IntN(models)
			if changed[i].Load()%2 == 0 {
				changed[i].Add(1)
			}
			switch random.IntN(3) {
			case 0:
				_ = os.Remove(path(i))
			case 1:
				place(t, path(i), []byte("broken"))
			default:
				place(t, path(i), numbered(t, float32(100*i+n%100), size))
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	all.Wait()
	if most.Load() > bound || most.Load() == 0 {
		t.Errorf("%d answers, at most %d bytes of %d", answers.Load(), most.Load(), bound)
	}
	t.Logf("%d answers, at most %d bytes of %d, %d loads, %d unloads", answers.Load(), most.Load(), bound,
		len(r.log.lines("model loaded")), len(r.log.lines("model unloaded")))
}

// TestFolderSeries checks that models that are removed have no metrics any more.
func TestFolderSeries(t *testing.T) {
	folder := t.TempDir()
	place(t, filepath.Join(folder, "away.pte"), numbered(t, 1, 10))
	r := startFolder(t, folder, nil)
	r.wait("the server is ready", func() bool { code, _, _ := r.ask("GET", "/v2/health/ready", ""); return code == 200 })
	if _, code, text := r.firstOf("away"); code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	has := func() bool { return strings.Contains(strings.Join(r.scrape(), "\n"), `model="away"`) }
	if !has() {
		t.Error("no series while it is there")
	}
	if n := strings.Count(strings.Join(r.scrape(), "\n"), `etrun_model_info{method="forward",model="away"`); n != 1 {
		t.Errorf("%d series of etrun_model_info, want 1", n)
	}
	if err := os.Remove(filepath.Join(folder, "away.pte")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_ = r.look(t.Context(), "")
	}
	if has() {
		t.Errorf("series after it has been removed:\n%s", strings.Join(r.scrape(), "\n"))
	}
}
