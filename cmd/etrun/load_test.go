package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/load"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/grpc"
	"github.com/etrun-go/etrun/serve/openai"
	"github.com/etrun-go/etrun/serve/openai/embed"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// measured is a running server of digits and a language model, as http://HOST:PORT.
func measured(t *testing.T) string {
	t.Helper()
	open := func(path string) func(context.Context) (*etrun.Program, error) {
		return func(ctx context.Context) (*etrun.Program, error) {
			return etrun.OpenSource(ctx, etrun.File(path), etrun.WithDelegates(all.Backends()...))
		}
	}
	tok, err := tokenizer.Open(filepath.Join(root, "text", "testdata", "bytes.json"))
	must(t, err)
	s, err := serve.New(serve.Options{}, serve.Config{Name: "digits", Open: open(digits(t, "portable.pte")), Queue: 100},
		serve.Config{Name: "lm", Open: open(textFile(t, "dynamic.pte")), Queue: 100,
			Attach: openai.Attach(openai.Config{Tokenizer: tok, Sessions: 4})},
		serve.Config{Name: "vec", Open: open(textFile(t, filepath.Join("encoders", "sentence.pte"))),
			Attach: embed.Attach(embed.Config{})})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	must(t, s.LoadAll(t.Context()))
	mux := http.NewServeMux()
	mux.Handle("/", s)
	texts := openai.New(s, openai.Options{})
	for _, pattern := range openai.Patterns {
		mux.Handle(pattern, texts)
	}
	calls := grpc.New(s, grpc.Options{})
	h := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if grpc.Serves(r) {
			calls.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	h.Config.Protocols = new(http.Protocols)
	h.Config.Protocols.SetHTTP1(true)
	h.Config.Protocols.SetUnencryptedHTTP2(true)
	h.Start()
	t.Cleanup(h.Close)
	return h.URL
}

// TestLoad measures a server of this process, in each form of requests and loops.
func TestLoad(t *testing.T) {
	url := measured(t)
	folder := t.TempDir()
	prompts := filepath.Join(folder, "prompts")
	write(t, prompts, []byte("one\n\ntwo\r\nthree\n"))
	page := filepath.Join(folder, "load.html")
	for _, tt := range []struct {
		flags  string
		levels int
		kind   string
		want   func(r *load.Report) bool
	}{
		{"--model digits --clients 1,3", 2, load.KindInfer, func(r *load.Report) bool {
			return r.Loop == "closed" && r.Levels[1].Clients == 3 && r.Tensors == "binary" && r.Bytes < 600
		}},
		{"--model digits --tensors json --model-version forward -i ones --next -i rand", 1, load.KindInfer, func(r *load.Report) bool {
			return r.Requests == 2 && r.Method == "forward" && r.Bytes > 600
		}},
		{"grpc --model digits --clients 2", 1, load.KindInfer, func(r *load.Report) bool {
			return strings.HasPrefix(r.URL, "grpc:") && r.Tensors == "binary" && r.Bytes > 256 && r.Levels[0].Answered > 0
		}},
		{"--model digits --rate 300 --arrivals random --html " + page, 1, load.KindInfer, func(r *load.Report) bool {
			return r.Loop == "random" && r.Levels[0].Rate == 300 && r.Levels[0].SendDelay != nil && r.InFlight == 256
		}},
		{"--text --max-tokens 4 --prompts " + prompts + " --prompt zero", 1, load.KindTexts, func(r *load.Report) bool {
			return r.Requests == 4 && r.Model == "lm" && r.Levels[0].FirstToken.N > 0 && r.Levels[0].Tokens.Value > 0
		}},
	} {
		to := url
		if flags, ok := strings.CutPrefix(tt.flags, "grpc "); ok {
			to, tt.flags = strings.Replace(url, "http:", "grpc:", 1), flags
		}
		out, notes, code := runCLI(t, "load "+to+" --json --duration 150ms --warmup 10ms "+tt.flags)
		r := &load.Report{}
		if err := json.Unmarshal([]byte(out), r); err != nil || code != 0 {
			t.Errorf("%s: exit code %d, %v, %s", tt.flags, code, err, notes)
			continue
		}
		if len(r.Levels) != tt.levels || r.Kind != tt.kind || r.Schema != "etrun.load/1" || !tt.want(r) {
			t.Errorf("%s: %s", tt.flags, out)
		}
		for _, l := range r.Levels {
			if x := &l.Latency; l.Failed != 0 || l.Answered == 0 || x.N != l.Answered || x.P50.Value < x.Min || x.P99.Value > x.Max {
				t.Errorf("%s: %+v", tt.flags, l)
			}
		}
	}
	text, err := os.ReadFile(page)
	if must(t, err); !bytes.Contains(text, []byte("<svg")) {
		t.Errorf("page: %.200s", text)
	}
	out, _, code := runCLI(t, "load "+url+" --model digits --duration 50ms --warmup 0s")
	for _, want := range []string{"model digits: inferences with binary tensors", "clients 1: ", " answers/s; ", "latency ", "p99 "} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit code %d, no %q in %s", code, want, out)
		}
	}
}

// Failed requests are exit code 1, unless as many are allowed; what was measured is printed in any case.
func TestLoadFails(t *testing.T) {
	url := measured(t)
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = w.Write([]byte(`{"name":"m","inputs":[{"name":"x","datatype":"FP32","shape":[1]}],"outputs":[]}`))
			return
		}
		http.Error(w, `{"error":"out of order"}`, http.StatusInternalServerError)
	}))
	t.Cleanup(broken.Close)
	short := " --duration 50ms --warmup 0s"
	for _, tt := range []struct {
		args string
		code int
		want string // in stdout or stderr
	}{
		{broken.URL + " --model m" + short, 1, "more than 0 % (--max-errors)"},
		{broken.URL + " --model m" + short, 1, "status 500"},
		{broken.URL + " --model m --max-errors 100" + short, 0, "out of order"},
		{url + " --model lm" + short, 2, "needs --text"},
		{url + " --model none" + short, 1, "the server has digits, lm, vec"},
		{url + short, 2, "the server has 3 models, digits, lm, vec"},
		{url + " --model vec" + short, 2, "computes vectors of texts"},
		{url + " --text --model vec" + short, 2, "cannot generate texts; the server has lm"},
		{url + " --text --model digits" + short, 1, "the server lists lm, vec"},
		{url + " --text --model lm --chat" + short, 2, "cannot chat: it has no template; no model of the server can"},
		{url + " --text --chat" + short, 2, "no model that can chat"},
		{url + " --model digits -i ones -i ones" + short, 5, "input"},
		{url + " --model digits -i ones:float32:1x3" + short, 1, "status 400"},
		{url + " --text --prompt x --chat -i ones", 2, "--input cannot be used with --text"},
		{url + " --prompt x", 2, "--prompt needs --text"},
		{url + " --max-tokens 3", 2, "--max-tokens needs --text"},
		{url + " --text --tensors json", 2, "--tensors cannot be used with --text"},
		{url + " --text=false --chat", 2, "--chat needs --text"},
		{url + " --arrivals random", 2, "--arrivals needs --rate"},
		{url + " --clients 2 --in-flight 3", 2, "--in-flight needs --rate"},
		{url + " --ca x.pem", 2, "is without TLS"},
		{"grpc://127.0.0.1:1 --ca x.pem", 2, "is without TLS"},
		{"grpc://127.0.0.1:1 --text", 2, "--text with gRPC"},
		{"grpc://127.0.0.1:1 --tensors json", 2, "--tensors json with gRPC"},
		{"grpc://127.0.0.1:1 --model digits" + short, 1, "connect"},
		{url + " --clients 1 --rate 2", 2, "choose one"},
		{url + " --clients 0", 2, "--clients 0"},
		{url + " --rate NaN", 2, "--rate NaN"},
		{url + " --rate 900000", 2, "want more than 0 and at most"},
		{url + " --arrivals x", 2, "want constant or random"},
		{"https://127.0.0.1:1 --tls-cert x", 2, "given together"},
		{url + " --token-file /nowhere/x", 2, "/nowhere/x"},
		{"localhost:80", 2, "want http://HOST:PORT"},
		{"http://127.0.0.1:1 --model m", 1, "connect"},
		{"", 2, "want one URL"},
	} {
		out, notes, code := runCLI(t, "load "+tt.args)
		if code != tt.code || !strings.Contains(out+notes, tt.want) {
			t.Errorf("%s: exit code %d, want %d and %q:\n%s%s", tt.args, code, tt.code, tt.want, out, notes)
		}
	}
}

// runCLI runs a command line and returns what it prints.
func runCLI(t *testing.T, line string) (out, notes string, code int) {
	t.Helper()
	var o, n bytes.Buffer
	code = run(strings.Fields(line), strings.NewReader(""), &o, &n)
	return o.String(), n.String(), code
}
