package serve_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/internal/await"
	"github.com/etrun-go/etrun/serve"
)

// TestReload reloads a model during requests, also from a broken file; each request gets the answer
// of one of the two programs.
func TestReload(t *testing.T) {
	files := []string{"digits/portable.pte", "digits/xnnpack.pte"}
	var next atomic.Int64
	var failed atomic.Int64
	c := serve.Config{Name: "m", Queue: 100, Loaded: func(err error) {
		if err != nil {
			failed.Add(1)
		}
	}, Open: func(ctx context.Context) (*etrun.Program, error) {
		if n := int(next.Add(1)); n%4 != 3 {
			return program(files[n%2])(ctx)
		}
		return etrun.Parse([]byte("no program"))
	}}
	s := server(t, serve.Options{Control: true}, c)
	image := digits(t)[:64]
	var want [2][]byte
	for i, f := range files {
		want[i] = library(t, program(f), "", image)[0]
	}
	stop := make(chan struct{})
	var callers sync.WaitGroup
	var answers atomic.Int64
	for range 4 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				got, w := infer(t, s, "/v2/models/m/infer", floats("input_0", []int{1, 1, 8, 8}, image...))
				if got == nil || !bytes.Equal(got.Outputs[0].Data, want[0]) && !bytes.Equal(got.Outputs[0].Data, want[1]) {
					t.Errorf("%d, %s", w.Code, w.Body)
					return
				}
				answers.Add(1)
			}
		})
	}
	codes := make(map[int]int)
	for range 10 {
		w := ask(s, "POST", "/v2/repository/models/m/load", "{}")
		codes[w.Code]++
		if before := answers.Load(); w.Code == 500 {
			await.True(t, "requests continue", func() bool { return answers.Load() > before })
		}
	}
	close(stop)
	callers.Wait()
	if codes[200] == 0 || codes[500] == 0 || failed.Load() != int64(codes[500]) {
		t.Errorf("codes %v, %d loads failed", codes, failed.Load())
	}
}

// TestSelfTest checks that a load that fails its self-test keeps the old program.
func TestSelfTest(t *testing.T) {
	bad := false
	c := serve.Config{Name: "m", Open: program("digits/portable.pte"), Check: func(ctx context.Context, m *etrun.Method) error {
		if bad {
			return errors.New("wrong numbers")
		}
		return serve.TryMethod(ctx, m)
	}}
	s := server(t, serve.Options{Control: true}, c)
	bad = true
	if w := ask(s, "POST", "/v2/repository/models/m/load", ""); w.Code != 500 || !strings.Contains(w.Body.String(), "wrong numbers") {
		t.Errorf("%d, %s", w.Code, w.Body)
	}
	if got, w := infer(t, s, "/v2/models/m/infer", floats("input_0", []int{1, 1, 8, 8}, make([]float32, 64)...)); got == nil {
		t.Errorf("%d, %s", w.Code, w.Body)
	}
}

// TestLoadParameters checks that loads take no parameters.
func TestLoadParameters(t *testing.T) {
	s := server(t, serve.Options{Control: true}, serve.Config{Name: "m", Open: program("digits/portable.pte")})
	for _, c := range []struct {
		path, body string
		code       int
	}{
		{"m/load", `{"parameters":{"config":"{}"}}`, 400},
		{"m/load", `{"parameters":{"file:1/model.pte":"AAAA"}}`, 400},
		{"m/load", `[`, 400},
		{"m/load", `{"parameters":{"config":null}}`, 200},
		{"m/load", `{"parameters":null}`, 200},
		{"m/load", `{"parameters":[]}`, 400},
		{"m/load", `{"config":"{}"}`, 400},
		{"m/load", `{} {}`, 400},
		{"gone/load", ``, 404},
		{"m/load", ``, 200},
		{"m/unload", `{"parameters":{"unload_dependents":false}}`, 200},
		{"m/unload", `{}`, 503},
		{"m/load", `{"parameters":{}}`, 200},
	} {
		if w := ask(s, "POST", "/v2/repository/models/"+c.path, c.body); w.Code != c.code {
			t.Errorf("%s %s: %d, %s, want %d", c.path, c.body, w.Code, w.Body, c.code)
		}
	}
}

// TestIndex checks that the index lists the models that a request asks for, and that errors have the words of JSON.
func TestIndex(t *testing.T) {
	c := serve.Config{Name: "m", Open: program("digits/portable.pte")}
	other := c
	other.Name = "other"
	s := server(t, serve.Options{Control: true}, c, other)
	if w := ask(s, "POST", "/v2/repository/models/other/unload", ""); w.Code != 200 {
		t.Fatal(w.Body)
	}
	for _, c := range []struct {
		body string
		code int
		want string // of the answer
		not  string
	}{
		{``, 200, `"other"`, ""},
		{`{}`, 200, `"other"`, ""},
		{`null`, 200, `"other"`, ""},
		{`{"ready":null}`, 200, `"other"`, ""},
		{`{"ready":false}`, 200, `"other"`, ""},
		{`{"ready":true}`, 200, `"m"`, `"other"`},
		{`{"ready":"yes"}`, 400, "ready: a string, want true or false", ""},
		{`{"ready":1}`, 400, "ready: a number, want true or false", ""},
		{`[]`, 400, "an array, want an object", ""},
		{`{"reedy":true}`, 400, "unknown field", ""},
		{`x`, 400, "invalid character", ""},
		{`{"ready":`, 400, "unexpected end", ""},
		{`{"ready":"` + strings.Repeat("x", 1<<20) + `"}`, 413, "", ""},
	} {
		w := ask(s, "POST", "/v2/repository/index", c.body)
		text := w.Body.String()
		if w.Code != c.code || !strings.Contains(text, c.want) || c.not != "" && strings.Contains(text, c.not) || strings.Contains(text, "json:") {
			t.Errorf("%.40s: got %d %s, want %d with %s and without %s", c.body, w.Code, text, c.code, c.want, c.not)
		}
	}
}

// TestUnloadDrains checks that an unload waits for requests in progress, and frees the model.
func TestUnloadDrains(t *testing.T) {
	g := newGate()
	var open atomic.Pointer[etrun.Program]
	c := adder("m", g.hear)
	opener := c.Open
	c.Open = func(ctx context.Context) (*etrun.Program, error) {
		p, err := opener(ctx)
		open.Store(p)
		return p, err
	}
	s := server(t, serve.Options{}, c)
	busy := send(s, t.Context(), request(100, ""))
	<-g.arrived
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := s.Model("m").Unload(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("unloaded under a request: %v", err)
	}
	if w := <-send(s, t.Context(), request(1, "")); w.Code != 404 {
		t.Errorf("after an unload: %d", w.Code)
	}
	close(g.open)
	if w := <-busy; w.Code != 200 {
		t.Errorf("the request before it: %d, %s", w.Code, w.Body)
	}
	await.True(t, "the program is closed", func() bool {
		_, err := open.Load().Load(t.Context(), "")
		return errors.Is(err, etrun.ErrClosed)
	})
}

// TestReloadEndsSequences checks that a load ends sequences.
func TestReloadEndsSequences(t *testing.T) {
	g := newGate()
	s := server(t, serve.Options{}, adder("m", g.hear))
	sum(t, s, 1, `"sequence_id":"idle","sequence_start":true`)
	busy := send(s, t.Context(), request(100, `"sequence_id":"busy","sequence_start":true`))
	<-g.arrived
	if err := s.LoadAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(g.open)
	if w := <-busy; w.Code != 200 {
		t.Errorf("the request in flight: %d, %s", w.Code, w.Body)
	}
	for _, id := range []string{"idle", "busy"} {
		if got := sum(t, s, 1, `"sequence_id":"`+id+`"`); got != "410" {
			t.Errorf("sequence %s: %s", id, got)
		}
	}
}

// TestTry checks that Try runs every model.
func TestTry(t *testing.T) {
	var executes atomic.Int64
	s := server(t, serve.Options{}, adder("m", func([]float32) { executes.Add(1) }))
	before := executes.Load()
	if err := s.Try(t.Context()); err != nil || executes.Load() != before+1 {
		t.Errorf("%v, %d runs", err, executes.Load()-before)
	}
}
