package serve_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/etrun-go/etrun/internal/await"
	"github.com/etrun-go/etrun/runtime/trace"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/oip"
)

// gate blocks runs whose sum is 100 or more until it is opened.
type gate struct {
	arrived chan struct{}
	open    chan struct{}
}

func newGate() *gate { return &gate{make(chan struct{}, 100), make(chan struct{})} }

func (g *gate) hear(sum []float32) {
	if sum[0] >= 100 {
		g.arrived <- struct{}{}
		<-g.open
	}
}

// send sends a request in the background.
func send(s http.Handler, ctx context.Context, body string, header ...string) <-chan *httptest.ResponseRecorder {
	done := make(chan *httptest.ResponseRecorder, 1)
	go func() {
		r := httptest.NewRequestWithContext(ctx, "POST", "/v2/models/m/infer", strings.NewReader(body))
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		done <- w
	}()
	return done
}

// request returns the JSON of a request to an adder.
func request(x float32, parameters string) string {
	text := strconv.FormatFloat(float64(x), 'g', -1, 32)
	return `{"parameters":{` + parameters + `},"inputs":[{"name":"input_0","shape":[4],"datatype":"FP32","data":[` + text + `,1,1,1]}]}`
}

// TestQueue runs one request, queues two and refuses the next; deadlines of client and server end
// waits.
func TestQueue(t *testing.T) {
	g := newGate()
	var waits, refused atomic.Int64
	c := adder("m", g.hear)
	c.Instances, c.Queue, c.Timeout = 1, 2, time.Minute
	c.Observer = trace.Func{Kinds: trace.Pools, Do: func(e *trace.Event) {
		if waits.Add(1); e.Reason == "busy" {
			refused.Add(1)
		}
	}}
	s := server(t, serve.Options{}, c)
	first := send(s, t.Context(), request(100, ""))
	<-g.arrived
	second := send(s, t.Context(), request(1, ""))
	await.True(t, "the second waits", func() bool { return s.Model("m").Waiting() == 1 })
	if w := <-send(s, t.Context(), request(1, `"timeout":20000`)); w.Code != 504 || !strings.Contains(w.Body.String(), "20ms") {
		t.Errorf("the client's deadline: %d, %s", w.Code, w.Body)
	}
	gone, leave := context.WithCancel(t.Context())
	third := send(s, gone, request(1, ""))
	await.True(t, "the third waits", func() bool { return s.Model("m").Waiting() == 2 })
	w := <-send(s, t.Context(), request(1, ""))
	if after, err := strconv.Atoi(w.Header().Get("Retry-After")); w.Code != 429 || err != nil || after < 1 {
		t.Errorf("a full queue: %d, Retry-After %d, %s", w.Code, after, w.Body)
	}
	leave()
	<-third
	if n := s.Model("m").Waiting(); n != 1 {
		t.Errorf("%d requests wait after a client disconnected, want 1", n)
	}
	close(g.open)
	for _, done := range []<-chan *httptest.ResponseRecorder{first, second} {
		if w := <-done; w.Code != 200 {
			t.Errorf("%d, %s", w.Code, w.Body)
		}
	}
	if waits.Load() != 5 || refused.Load() != 1 {
		t.Errorf("got %d waits and %d refusals, want 5 and 1", waits.Load(), refused.Load())
	}
}

// TestTimeout checks that an answer after its deadline is an error.
func TestTimeout(t *testing.T) {
	c := adder("m", func(sum []float32) {
		if sum[0] >= 100 {
			time.Sleep(50 * time.Millisecond)
		}
	})
	c.Timeout = 20 * time.Millisecond
	s := server(t, serve.Options{}, c)
	if w := <-send(s, t.Context(), request(100, "")); w.Code != 504 {
		t.Errorf("got %d, %s", w.Code, w.Body)
	}
	if w := <-send(s, t.Context(), request(1, "")); w.Code != 200 {
		t.Errorf("got %d, %s", w.Code, w.Body)
	}
}

// TestBusyBytes checks that the bodies of all requests in progress share a limit.
func TestBusyBytes(t *testing.T) {
	g := newGate()
	c := adder("m", g.hear)
	c.Instances = 2
	s := server(t, serve.Options{BusyBytes: 400}, c)
	first := send(s, t.Context(), request(100, ""))
	<-g.arrived
	if w := <-send(s, t.Context(), request(1, "")+strings.Repeat(" ", 200)); w.Code != 429 || !strings.Contains(w.Body.String(), "bytes") {
		t.Errorf("got %d, %s", w.Code, w.Body)
	}
	close(g.open)
	if w := <-first; w.Code != 200 {
		t.Errorf("got %d, %s", w.Code, w.Body)
	}
	if w := <-send(s, t.Context(), request(1, "")+strings.Repeat(" ", 200)); w.Code != 200 {
		t.Errorf("got %d, %s", w.Code, w.Body)
	}
}

// TestNeverFits checks that bodies that do not fit into the memory of all requests are refused for good, with both limits, and that a
// body of unknown size may have as many bytes as there are.
func TestNeverFits(t *testing.T) {
	body := request(1, "")
	s := server(t, serve.Options{BusyBytes: int64(len(body)) + 100, BodyBytes: 5000}, adder("m", func([]float32) {}))
	if w := <-send(s, t.Context(), body+strings.Repeat(" ", 101)); w.Code != 413 || !strings.Contains(w.Body.String(), fmt.Sprint(len(body)+100)) ||
		!strings.Contains(w.Body.String(), "5000") {
		t.Errorf("got %d, %s", w.Code, w.Body)
	}
	for extra, code := range map[int]int{0: 400, 101: 413} { // the answer does not fit beside a body of the largest size
		r := httptest.NewRequest("POST", "/v2/models/m/infer", io.MultiReader(strings.NewReader(body+strings.Repeat(" ", extra))))
		if r.ContentLength >= 0 {
			t.Fatal("the size is known")
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != code || code == 413 && !strings.Contains(w.Body.String(), fmt.Sprintf("more than %d bytes", len(body)+100)) {
			t.Errorf("%d more bytes: got %d, %s, want %d", extra, w.Code, w.Body, code)
		}
	}
}

// TestReadBodyTooLarge checks that a body of unknown size that is too large is refused with the limits.
func TestReadBodyTooLarge(t *testing.T) {
	for busy, want := range map[int64][]string{1000: {"more than 200 bytes", "200 are accepted"},
		100: {"more than 100 bytes", "100 are accepted", "5000"}} {
		s := server(t, serve.Options{BusyBytes: busy, BodyBytes: 5000})
		r := httptest.NewRequest("POST", "/", io.MultiReader(strings.NewReader(strings.Repeat("x", 300))))
		_, _, err := s.ReadBody(httptest.NewRecorder(), r, 200)
		if !errors.Is(err, oip.ErrTooLarge) || slices.ContainsFunc(want, func(part string) bool { return !strings.Contains(err.Error(), part) }) {
			t.Errorf("%d bytes for all: %v, want %q", busy, err, want)
		}
		if _, hold, err := s.ReadBody(httptest.NewRecorder(), httptest.NewRequest("POST", "/", strings.NewReader("x")), 200); err != nil {
			t.Error(err)
		} else {
			hold.Release()
		}
	}
}

// TestClaimedSizes checks that no memory is allocated for more elements than a body of its size can have.
func TestClaimedSizes(t *testing.T) {
	s := server(t, serve.Options{}, adder("m", func([]float32) {}))
	body := `{"inputs":[{"name":"input_0","datatype":"FP32","shape":[16000],"data":[1]}]}`
	w := ask(s, "POST", "/v2/models/m/infer", body)
	if w.Code != 400 || !strings.Contains(w.Body.String(), fmt.Sprintf("has %d bytes", len(body))) {
		t.Errorf("got %d, %s", w.Code, w.Body)
	}
}

// TestAnswerBytes checks that outputs and their form in an answer count as well, and that an output is sent once.
func TestAnswerBytes(t *testing.T) {
	body := request(1, "")
	for _, c := range []struct {
		limit int
		body  string
		code  int
		want  string
	}{
		{len(body) + 100, body, 200, "outputs"},
		{len(body) + 1, body, 400, "an answer of up to"},
		{1 << 20, strings.Replace(body, "{", `{"outputs":[{"name":"output_0"},{"name":"output_0"}],`, 1), 400, "twice"},
	} {
		s := server(t, serve.Options{BusyBytes: int64(c.limit)}, adder("m", func([]float32) {}))
		for range 3 { // what is counted is released
			if w := <-send(s, t.Context(), c.body); w.Code != c.code || !strings.Contains(w.Body.String(), c.want) {
				t.Errorf("limit %d: got %d, %s, want %d and %q", c.limit, w.Code, w.Body, c.code, c.want)
			}
		}
	}
}

// TestCallers checks that each of many clients gets the answer to its own request.
func TestCallers(t *testing.T) {
	s := server(t, serve.Options{}, serve.Config{Name: "m", Open: program("digits/xnnpack.pte"), Instances: 3, Queue: 100})
	images, open := digits(t), program("digits/xnnpack.pte")
	var want [][]byte
	for i := range 20 {
		want = append(want, library(t, open, "", images[i*64:][:64])[0])
	}
	var all sync.WaitGroup
	for caller := range 16 {
		all.Go(func() {
			for k := range 30 {
				i := (caller*7 + k) % 20
				in := floats("input_0", []int{1, 1, 8, 8}, images[i*64:][:64]...)
				in.Binary = k%2 == 0
				got, w := infer(t, s, "/v2/models/m/infer", in)
				if got == nil || string(got.Outputs[0].Data) != string(want[i]) {
					t.Errorf("caller %d, request %d: %d, %+v", caller, k, w.Code, got)
				}
			}
		})
	}
	all.Wait()
}

// BenchmarkInfer measures allocations per request.
func BenchmarkInfer(b *testing.B) {
	s, err := serve.New(serve.Options{}, serve.Config{Name: "m", Open: program("digits/xnnpack.pte")})
	if err == nil {
		err = s.LoadAll(b.Context())
	}
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	in := floats("input_0", []int{1, 1, 8, 8}, make([]float32, 64)...)
	in.Binary = true
	body, n, err := (&oip.Request{Inputs: []oip.Tensor{in}}).Append(nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if w := ask(s, "POST", "/v2/models/m/infer", string(body), headerLength(n)...); w.Code != 200 {
			b.Fatal(w.Body)
		}
	}
}
