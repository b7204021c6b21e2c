package load

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/input"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/oip"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newModels returns a server of the models of digits and of a sum with state.
func newModels(t *testing.T) *serve.Server {
	t.Helper()
	var configs []serve.Config
	for name, path := range map[string]string{"digits": "digits/portable.pte", "sums": "pte/initial_state.pte"} {
		configs = append(configs, serve.Config{Name: name, Open: func(ctx context.Context) (*etrun.Program, error) {
			return etrun.OpenSource(ctx, etrun.File(filepath.Join("../../../../testdata", path)), etrun.WithDelegates(all.Backends()...))
		}})
	}
	s, err := serve.New(serve.Options{}, configs...)
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	must(t, s.LoadAll(t.Context()))
	return s
}

func newTestClient(t *testing.T, o Options) *Client {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	c, err := NewClient(o)
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

// inferOf returns a sender of random inputs for a model.
func inferOf(t *testing.T, c *Client, model, version string, binary bool) *Infer {
	t.Helper()
	m, err := c.Describe(t.Context(), model, version)
	must(t, err)
	slots, err := m.Slots()
	must(t, err)
	var calls [][]tensor.Value
	for seed := range uint64(3) {
		r := &input.Resolver{Seed: seed, Limit: 1 << 20}
		values, err := r.Resolve(t.Context(), input.Random(slots), slots)
		must(t, err)
		calls = append(calls, values)
	}
	s, err := c.NewInfer(m, slots, calls, binary)
	must(t, err)
	return s
}

// Requests of both forms are answered by package serve, over TCP and a unix socket; different requests are sent in turn.
func TestInfer(t *testing.T) {
	models := newModels(t)
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/below/v2/models/digits" {
			http.StripPrefix("/below", models).ServeHTTP(w, r)
			return
		}
		models.ServeHTTP(w, r)
	}))
	defer h.Close()
	path := filepath.Join(t.TempDir(), "s")
	socket, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	must(t, err)
	local := &http.Server{Handler: models, ReadHeaderTimeout: time.Minute}
	go func() { _ = local.Serve(socket) }()
	defer local.Close()
	for _, url := range []string{h.URL, h.URL + "/", "unix:" + path} {
		c := newTestClient(t, Options{URL: url})
		for _, binary := range []bool{false, true} {
			for _, version := range []string{"", "forward"} {
				s := inferOf(t, c, "digits", version, binary)
				if string(s.requests[0].body) == string(s.requests[1].body) {
					t.Error("the requests are alike")
				}
				for n := range int64(5) {
					if a, err := s.Send(t.Context(), n); err != nil || a.Tokens != 0 {
						t.Errorf("%s, binary %v: %v", url, binary, err)
					}
				}
				if (s.requests[0].headerLength != "") != binary || s.Bytes() < 256 {
					t.Errorf("binary %v: header length %q, %d bytes", binary, s.requests[0].headerLength, s.Bytes())
				}
			}
		}
	}
	if _, err := newTestClient(t, Options{URL: h.URL + "/below/"}).Describe(t.Context(), "digits", ""); err != nil {
		t.Errorf("below a path: %v", err)
	}
	l := (&Plan{Clients: 2, Duration: 300 * ms}).Run(t.Context(), inferOf(t, newTestClient(t, Options{URL: h.URL}), "sums", "", true))
	if l.Answered == 0 || l.Failed != 0 {
		t.Errorf("%+v", l)
	}
}

// A model is listed once, however many versions it has.
func TestModels(t *testing.T) {
	for list, want := range map[string][]string{
		`[{"name":"m","version":"a"},{"name":"l"},{"name":"m","version":"b"}]`: {"l", "m"}, `[]`: nil,
	} {
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, list) }))
		if names, err := newTestClient(t, Options{URL: h.URL}).Models(t.Context()); err != nil || !slices.Equal(names, want) {
			t.Errorf("%s: %q, %v", list, names, err)
		}
		h.Close()
	}
}

// A server that does not say what a model can do may have any.
func TestTextModels(t *testing.T) {
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"a","object":"model"},{"id":"b","capabilities":["embedding"]}]}`)
	}))
	defer h.Close()
	list, err := newTestClient(t, Options{URL: h.URL}).TextModels(t.Context())
	if err != nil || len(list) != 2 || !list[0].Can("chat") || list[1].Can("chat") || !list[1].Can("embedding") {
		t.Errorf("%+v, %v", list, err)
	}
}

// dropped closes connections in the middle of an answer.
func dropped(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	_, _ = io.WriteString(w, "{}")
	panic(http.ErrAbortHandler)
}

// status answers with a status and a body.
func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// switched switches to a protocol in which it says nothing.
func switched(w http.ResponseWriter, _ *http.Request) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
	}
}

// Each failure has its class, and the message of the server.
func TestClasses(t *testing.T) {
	stop := make(chan struct{})
	hangs := func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-stop:
		}
	}
	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
		class   Class
		message string
	}{
		{"full queue", status(429, `{"error":"the queue is full"}`), "status 429", "the queue is full"},
		{"OpenAI's form", status(404, `{"error":{"message":"no such model","code":"x"}}`), "status 404", "no such model"},
		{"text", status(502, "bad gateway\n"), "status 502", "bad gateway"},
		{"long message", status(429, `{"error":"`+strings.Repeat("x", 60_000)+`"}`), "status 429", "xxx"},
		{"another protocol", switched, "status 101", "another protocol"},
		{"redirect", status(302, ""), "status 302", ""},
		{"connection closed", dropped, Closed, "EOF"},
		{"no answer", hangs, Timeout, "no answer within 50ms"},
	} {
		h := httptest.NewServer(tt.handler)
		c := newTestClient(t, Options{URL: h.URL, Timeout: 50 * ms})
		if tt.class != Timeout {
			c.timeout = time.Minute
		}
		s := &Infer{c, []*request{{method: "POST", path: "/", body: []byte("{}")}}}
		_, err := s.Send(t.Context(), 0)
		f, ok := errors.AsType[*Failure](err)
		if !ok || f.Class != tt.class || !strings.Contains(f.Err.Error(), tt.message) || len(f.Err.Error()) > maxShown {
			t.Errorf("%s: %v, want %s: %s", tt.name, err, tt.class, tt.message)
		}
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("ended"))
		if _, err := s.Send(ended, 0); err == nil || err.Error() != "ended" {
			t.Errorf("%s, cancelled: %v", tt.name, err)
		}
		if tt.class != Timeout {
			h.Close()
			c.Close()
			if _, err := s.Send(t.Context(), 0); !isClass(err, Connect) {
				t.Errorf("after the server has ended: %v", err)
			}
		}
	}
	close(stop)
}

func isClass(err error, class Class) bool {
	f, ok := errors.AsType[*Failure](err)
	return ok && f.Class == class
}

// TLS needs an authority that the client knows; tokens are sent.
func TestTLS(t *testing.T) {
	h := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			status(401, `{"error":"no token"}`)(w, r)
			return
		}
		_, _ = io.WriteString(w, "{}")
	}))
	h.Config.ErrorLog = log.New(io.Discard, "", 0)
	h.StartTLS()
	defer h.Close()
	pool := x509.NewCertPool()
	pool.AddCert(h.Certificate())
	known := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	var v struct{}
	for _, tt := range []struct {
		name  string
		o     Options
		class Class
	}{
		{"all right", Options{URL: h.URL, TLS: known, Token: "secret"}, ""},
		{"another token", Options{URL: h.URL, TLS: known, Token: "wrong"}, "status 401"},
		{"unknown authority", Options{URL: h.URL, Token: "secret"}, Connect},
		{"without TLS", Options{URL: "http" + strings.TrimPrefix(h.URL, "https")}, "status 400"},
	} {
		err := newTestClient(t, tt.o).Get(t.Context(), "/v2", &v)
		if (err == nil) != (tt.class == "") || err != nil && !isClass(err, tt.class) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.class)
		}
	}
}

func TestURL(t *testing.T) {
	for _, url := range []string{"", "localhost:8080", "127.0.0.1:8080", "ftp://host", "http://", "http://host?x=1", "http://host/?",
		"http://user@host", "http://a b", "http://host/#x"} {
		if c, err := NewClient(Options{URL: url}); !errors.Is(err, ErrURL) || !strings.Contains(err.Error(), "want http") {
			t.Errorf("%q: %v, %v", url, c, err)
		}
	}
}

// Metadata that would take too much memory is refused.
func TestHostileMetadata(t *testing.T) {
	for _, tt := range []struct {
		fact TensorFact
		want string
	}{
		{TensorFact{Name: "x", Datatype: "FP32", Shape: []int64{1 << 40}}, "want at most"},
		{TensorFact{Name: "x", Datatype: "FP32", Shape: []int64{1 << 20, 1 << 20}}, "want at most"},
		{TensorFact{Name: "x", Datatype: "FP32", Shape: []int64{0, 1 << 62}}, "want at most"},
		{TensorFact{Name: "x", Datatype: "FP32", Shape: []int64{-2}}, "want at most"},
		{TensorFact{Name: "x", Datatype: "FP32", Shape: []int64{-1}, MaxShape: []int64{1 << 40}}, "want at most"},
		{TensorFact{Name: "x", Datatype: "FP32", Shape: make([]int64, 65)}, "65 dimensions"},
		{TensorFact{Name: "x", Datatype: "FP12", Shape: []int64{1}}, `unknown datatype "FP12"`},
	} {
		if _, err := (&Model{Inputs: []TensorFact{tt.fact}}).Slots(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v", tt.fact, err)
		}
	}
	m := Model{Inputs: []TensorFact{
		{Name: "a", Datatype: "INT64", Shape: []int64{-1, 3}}, {Name: "b", Datatype: "FP16", Shape: []int64{-1, 3}, MaxShape: []int64{8, 3}},
		{Name: "c", Datatype: "BYTES", Shape: []int64{1}}, {Name: "d", Datatype: "INT64", Shape: []int64{1}, Optional: true},
	}}
	slots, err := m.Slots()
	must(t, err)
	got := ""
	for _, s := range slots {
		got += fmt.Sprintln(s.Name, s.Kind, s.Sizes)
	}
	if want := "a tensor [1 3]\nb tensor [8 3]\nc string []\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Elements without a JSON form, and values without a datatype, are refused before anything is sent.
func TestRefusedTensors(t *testing.T) {
	c := newTestClient(t, Options{URL: "http://localhost"})
	half := etrun.ValueMeta{Kind: tensor.KindTensor, DType: tensor.Float16, Sizes: []int{2}, Name: "h"}
	value := tensor.TensorValue(half.NewTensor())
	if _, err := c.NewInfer(&Model{}, []etrun.ValueMeta{half}, [][]tensor.Value{{value}}, false); !errors.Is(err, oip.ErrNoJSON) {
		t.Errorf("half floats as JSON: %v", err)
	}
	if _, err := c.NewInfer(&Model{}, []etrun.ValueMeta{half}, [][]tensor.Value{{value}}, true); err != nil {
		t.Errorf("half floats as binary data: %v", err)
	}
	if _, err := c.NewInfer(&Model{}, []etrun.ValueMeta{half}, [][]tensor.Value{{tensor.IntValue(1)}}, true); err == nil {
		t.Error("an int is accepted")
	}
}

// What a server streams is read as events of a text, and refused if it is none.
func TestStreams(t *testing.T) {
	const delta = `data: {"choices":[{"delta":{"content":"x"}}],"usage":null}` + "\n\n"
	const usage = `data: {"choices":[],"usage":{"completion_tokens":7}}` + "\n\n"
	const done = "data: [DONE]\n\n"
	for _, tt := range []struct {
		name, body     string
		events, tokens int
		class          Class
	}{
		{"chat", `data: {"choices":[{"delta":{"role":"assistant","content":""}}]}` + "\n\n" + delta + delta + usage + done, 2, 7, ""},
		{"completion without usage",
			`data:{"choices":[{"text":"a"}]}` + "\r\n\r\n: comment\n" +
				`data: {"choices":[{"text":"b"}]}` + "\n\n" + done, 2, 2, ""},
		{"thoughts and calls",
			`data: {"choices":[{"delta":{"reasoning_content":"t"}}]}` + "\n" +
				`data: {"choices":[{"delta":{"tool_calls":[{}]}}]}` + "\n" +
				`data: {"choices":[{"delta":{"tool_calls":null}}]}` + "\n" + done, 2, 2, ""},
		{"no text", usage + done, 0, 7, ""},
		{"negative usage", `data: {"usage":{"completion_tokens":-3}}` + "\n" + done, 0, 0, ""},
		{"error", delta + `data: {"error":{"message":"broken"}}` + "\n\n" + done, 1, 0, Bad},
		{"not JSON", "data: {\n\n", 0, 0, Bad},
		{"no end", delta, 1, 0, Closed},
		{"long event", "data: " + strings.Repeat("x", maxEvent+1), 0, 0, Bad},
		{"many events", strings.Repeat(`data: {"choices":[{"text":"b"}]}`+"\n", 11) + done, 10, 0, Bad},
	} {
		a, err := readStream(strings.NewReader(tt.body), 10)
		fits := err == nil && tt.class == "" && a.Tokens == tt.tokens || isClass(err, tt.class)
		if len(a.Events) != tt.events || !fits {
			t.Errorf("%s: %d events, %d tokens, %v", tt.name, len(a.Events), a.Tokens, err)
		}
	}
}

// Streams are read to their end, so that the next one needs no new connection.
func TestStreamsShareConnection(t *testing.T) {
	var connections atomic.Int64
	h := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: [DONE]\n\n")
		_ = http.NewResponseController(w).Flush()
	}))
	h.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	h.Start()
	defer h.Close()
	s, err := newTestClient(t, Options{URL: h.URL}).NewTexts([]string{"a"}, TextOptions{MaxTokens: 1})
	must(t, err)
	for n := range int64(50) {
		if a, err := s.Send(t.Context(), n); err != nil || len(a.Events) != 1 {
			t.Fatal(a, err)
		}
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

// Metadata that is not as the protocol says is a bad answer, and not the end of a connection.
func TestBadMetadata(t *testing.T) {
	for _, body := range []string{`{"inputs":[{"name":5}]}`, `{"inputs":`, `{} {}`, `{"name":"` + strings.Repeat("x", maxFacts) + `"}`} {
		h := httptest.NewServer(status(200, body))
		if _, err := newTestClient(t, Options{URL: h.URL}).Describe(t.Context(), "m", ""); !isClass(err, Bad) {
			t.Errorf("%.30s: %v", body, err)
		}
		h.Close()
	}
}

func FuzzStream(f *testing.F) {
	f.Add([]byte("data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: [DONE]\n\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := readStream(strings.NewReader(string(body)), 10)
		if a.Tokens < 0 || err == nil && !strings.Contains(string(body), "[DONE]") {
			t.Errorf("%+v, %v", a, err)
		}
	})
}
