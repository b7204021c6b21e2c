package daemon

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/etrun-go/etrun/cmd/etrun/internal/browsertest"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/internal/await"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == WorkerCommand {
		if err := Work(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(browsertest.Main{M: m})
}

const (
	digits = "../../../../testdata/digits/xnnpack.pte"
	adder  = "../../../../testdata/pte/initial_state.pte"
	bundle = "../../../../testdata/pte/bundle.bpte"
)

// record stores the log for tests.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(b)
}

// lines returns the log records with a message.
func (r *record) lines(message string) (list []map[string]any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for line := range bytes.Lines(r.text.Bytes()) {
		var object map[string]any
		if json.Unmarshal(line, &object) == nil && object["msg"] == message {
			list = append(list, object)
		}
	}
	return list
}

// running is a daemon in this process.
type running struct {
	*Daemon
	t      *testing.T
	log    *record
	url    string
	client *http.Client
	cancel context.CancelFunc
	ended  chan error
}

// model returns a model with the default flags.
func model(name, path string) *Model {
	return &Model{Name: name, Path: path, Options: session.Options{Threads: 1}, Limits: DefaultLimits()}
}

// start runs a daemon and waits until it is ready.
func start(t *testing.T, change func(*Daemon), models ...*Model) *running {
	t.Helper()
	r := &running{Daemon: &Daemon{Settings: Defaults(), Models: models, Backends: all.Backends()}, t: t, log: &record{}, ended: make(chan error, 1)}
	r.Listen, r.LogFormat, r.Log = []string{"127.0.0.1:0"}, "json", r.log
	r.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: time.Minute}
	if change != nil {
		change(r.Daemon)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() { r.ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
	r.wait("the daemon is ready", func() bool {
		select {
		case err := <-r.ended:
			r.ended <- err
			t.Fatalf("ended: %v\n%s", err, r.log.text.String())
		default:
		}
		return len(r.log.lines("model loaded")) >= len(models) && len(r.log.lines("listening")) > 0
	})
	r.url = "http://" + r.address()
	return r
}

// address returns its first address.
func (r *running) address() string {
	return r.log.lines("listening")[0]["address"].(string)
}

// stop ends the daemon like a signal, once.
func (r *running) stop() error {
	r.client.CloseIdleConnections()
	r.cancel()
	err := <-r.ended
	r.ended <- nil
	return err
}

func (r *running) wait(what string, ok func() bool) {
	r.t.Helper()
	if !await.Until(ok) {
		r.t.Fatalf("%s: not within a minute\n%s", what, r.log.text.String())
	}
}

// ask sends a request and reads its answer.
func (r *running) ask(method, path, body string, header ...string) (code int, text string, h http.Header) {
	r.t.Helper()
	request, err := http.NewRequest(method, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	answer, err := r.client.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		r.t.Error(err)
	}
	return answer.StatusCode, string(b), answer.Header
}

const adderBody = `{"inputs":[{"name":"input_0","shape":[4],"datatype":"FP32","data":[1,2,3,4]}]}`

// TestRequestIDs checks that requests have an id and a trace, in the answer and in the log.
func TestRequestIDs(t *testing.T) {
	r := start(t, nil, model("m", adder))
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	_, _, h := r.ask("POST", "/v2/models/m/infer", adderBody, headerID, "mine-7", headerTrace, trace)
	if h.Get(headerID) != "mine-7" || h.Get(headerTrace) != trace {
		t.Errorf("got %v", h)
	}
	_, _, h = r.ask("GET", "/v2", "", headerID, "not {} good", headerTrace, "00-zz")
	if id := h.Get(headerID); id == "" || strings.ContainsAny(id, " {}") || h.Get(headerTrace) != "" {
		t.Errorf("got %v", h)
	}
	r.wait("both requests are logged", func() bool { return len(r.log.lines("request")) == 2 })
	line := r.log.lines("request")[0]
	for name, want := range map[string]any{"id": "mine-7", "trace": trace[3:35], "status": 200.0, "path": "/v2/models/m/infer", "method": "POST", "received": float64(len(adderBody))} {
		if line[name] != want {
			t.Errorf("log: %s is %v, want %v", name, line[name], want)
		}
	}
}

// TestMetrics checks that the documented metrics exist and are well formed.
func TestMetrics(t *testing.T) {
	r := start(t, nil, model("m", adder))
	for range 3 {
		r.ask("POST", "/v2/models/m/infer", adderBody)
	}
	r.ask("POST", "/v2/models/m/infer", "{")
	code, text, _ := r.ask("GET", "/metrics", "")
	for _, line := range []string{`etrun_inferences_total{method="forward",model="m",result="ok"} 5`, // two of the self-test
		`etrun_queue_wait_seconds_count{model="m"} 3`, `etrun_queue_length{model="m"} 0`, `etrun_reloads_total{model="m",result="ok"} 1`,
		`etrun_http_requests_total{code="200"} 3`, `etrun_http_requests_total{code="400"} 1`, `etrun_sequences{model="m"} 0`,
		`etrun_model_info{method="forward",model="m",sha256="`, `etrun_last_reload_success_timestamp_seconds{model="m"} 1.`} {
		if code != 200 || !strings.Contains(text, line) {
			t.Errorf("%d, %s is not there", code, line)
		}
	}
	if problems, err := testutil.GatherAndLint(r.counts.registry); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// TestBundle checks that the self-test runs the cases of a bundle, and refuses a program that fails
// one.
func TestBundle(t *testing.T) {
	start(t, nil, model("m", bundle))
	good, err := os.ReadFile(bundle)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.bpte")
	write := func(b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(good)
	r := start(t, func(d *Daemon) { d.Control = true }, model("m", path))
	before := r.log.lines("model loaded")[0]["sha256"]
	write(movedOutput(t, good))
	if code, text, _ := r.ask("POST", "/v2/repository/models/m/load", ""); code != 500 || !strings.Contains(text, "results differ") {
		t.Errorf("a model that differs: %d, %s", code, text)
	}
	if code, _, _ := r.ask("GET", "/v2/health/ready", ""); code != 200 {
		t.Errorf("the old model: %d", code)
	}
	if lines := r.log.lines("model not loaded"); len(lines) != 1 || before == nil {
		t.Errorf("log: %v", lines)
	}
}

// TestBrokenModel checks that a daemon does not start if a model fails to load.
func TestBrokenModel(t *testing.T) {
	d := &Daemon{Settings: Defaults(), Models: []*Model{model("m", "daemon_test.go")}, Log: io.Discard}
	d.Listen = []string{"127.0.0.1:0"}
	if err := d.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "model m") {
		t.Errorf("got %v", err)
	}
}

// TestDrain checks that the daemon completes a request in progress and is not ready for new ones.
func TestDrain(t *testing.T) {
	r := start(t, nil, model("m", adder))
	conn, err := net.Dial("tcp", r.address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	half := len(adderBody) / 2
	reader := begin(t, conn, adderBody[:half])
	r.cancel()
	r.wait("the daemon does not listen", func() bool {
		other, err := net.Dial("tcp", r.address())
		if err == nil {
			other.Close()
		}
		return err != nil
	})
	if _, err := io.WriteString(conn, adderBody[half:]); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(reader)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 200 OK") {
		t.Errorf("%v, %s", err, answer)
	}
}

// begin sends a request's header, and the first part of its body once the server reads that. The result reads the answer.
func begin(t *testing.T, conn net.Conn, part string) *bufio.Reader {
	t.Helper()
	if _, err := io.WriteString(conn, "POST /v2/models/m/infer HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: "+
		itoa(len(adderBody))+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	for _, want := range []string{"HTTP/1.1 100 Continue\r\n", "\r\n"} {
		if line, err := reader.ReadString('\n'); err != nil || line != want {
			t.Fatalf("%q, %v, want %q", line, err, want)
		}
	}
	if _, err := io.WriteString(conn, part); err != nil {
		t.Fatal(err)
	}
	return reader
}

// TestDrainEnds checks that a request delays the end of the daemon by the drain time only.
func TestDrainEnds(t *testing.T) {
	r := start(t, func(d *Daemon) { d.Drain = 200 * time.Millisecond }, model("m", adder))
	conn, err := net.Dial("tcp", r.address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	begin(t, conn, "{")
	begun := time.Now()
	if err := r.stop(); !errors.Is(err, errDrain) || time.Since(begun) > 5*time.Second {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
}

// TestKeptConnection checks that time limits of a request do not affect the next one on its
// connection.
func TestKeptConnection(t *testing.T) {
	t.Parallel()
	r := start(t, func(d *Daemon) { d.BodyTimeout = 300 * time.Millisecond }, model("m", adder))
	r.client.Transport = &http.Transport{MaxConnsPerHost: 1}
	for range 2 {
		for _, c := range []struct {
			method, path, body string
			code               int
		}{{"POST", "/v2/models/m/infer", adderBody, 200}, {"POST", "/v2/models/m/infer", "{", 400}, {"GET", "/metrics", "", 200}, {"GET", "/v2", "", 200}} {
			if code, text, _ := r.ask(c.method, c.path, c.body); code != c.code {
				t.Errorf("%s: %d, %s", c.path, code, text)
			}
			time.Sleep(350 * time.Millisecond) // longer than that
		}
	}
	if n := len(r.log.lines("request")); n != 6 {
		t.Errorf("%d requests are logged, want those that are no scrapes", n)
	}
}

// TestDebug checks that profiles are served on their own address only.
func TestDebug(t *testing.T) {
	t.Parallel()
	r := start(t, func(d *Daemon) { d.Debug = "127.0.0.1:0" }, model("m", adder))
	if code, _, _ := r.ask("GET", "/debug/pprof/", ""); code != 404 {
		t.Errorf("on the main address: %d", code)
	}
	r.url = "http://" + r.log.lines("profiles")[0]["address"].(string)
	if code, text, _ := r.ask("GET", "/debug/pprof/goroutine?debug=1", ""); code != 200 || !strings.Contains(text, "goroutine profile") {
		t.Errorf("on its own: %d, %s", code, text)
	}
	for path, want := range map[string]struct {
		code int
		text string
	}{
		"":                  {200, "goroutine "},
		"heap":              {200, "\x1f\x8b"}, // gzip
		"profile?seconds=1": {200, "\x1f\x8b"},
		"trace?seconds=1":   {200, "go 1."},
		"trace?seconds=0":   {400, "want 1 to"},
		"none":              {404, "no such profile"},
	} {
		if code, text, _ := r.ask("GET", "/debug/pprof/"+path, ""); code != want.code || !strings.Contains(text, want.text) {
			t.Errorf("%s: got %d %.20q, want %d and %q", path, code, text, want.code, want.text)
		}
	}
	d := &Daemon{Settings: Defaults(), Models: []*Model{model("m", adder)}, Log: io.Discard}
	d.Listen, d.Debug = []string{"127.0.0.1:0"}, "0.0.0.0:0"
	if err := d.Run(t.Context()); !errors.Is(err, session.ErrUsage) {
		t.Errorf("on an address for other machines: %v", err)
	}
}

// TestOtherOrigins refuses browser requests from pages of other origins.
func TestOtherOrigins(t *testing.T) {
	r := start(t, nil, model("m", adder))
	for origin, want := range map[string]int{"": 200, r.url: 200, "https://elsewhere.example": 403} {
		header := []string{}
		if origin != "" {
			header = []string{"Origin", origin}
		}
		if code, text, _ := r.ask("POST", "/v2/models/m/infer", adderBody, header...); code != want {
			t.Errorf("origin %q: %d, %s, want %d", origin, code, text, want)
		}
	}
}
