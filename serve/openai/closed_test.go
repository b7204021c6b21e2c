package openai_test

import (
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/etrun-go/etrun/serve"
)

// closedRequests are sent during and after Close.
var closedRequests = []struct{ method, path, body string }{
	{"GET", "/v1/models", ""},
	{"GET", "/v1/models/lm", ""},
	{"POST", "/v1/completions", `{"model":"lm","prompt":"x","max_tokens":2}`},
	{"POST", "/v1/completions", `{"model":"lm","prompt":"x","max_tokens":2,"stream":true,"n":2}`},
	{"POST", "/v1/chat/completions", `{"model":"lm","messages":[{"role":"user","content":"x"}],"max_tokens":2,"logprobs":true}`},
	{"POST", "/v1/completions", `{`},
	{"POST", "/tokenize", `{"prompt":"x"}`},
	{"POST", "/v1/responses", `{"model":"lm","input":"x","max_output_tokens":2,"stream":true}`},
	{"POST", "/v1/embeddings", `{"model":"lm","input":"x"}`},
}

// TestClosed sends requests after the model was unloaded, and after the server was closed: errors have the form of the protocol.
func TestClosed(t *testing.T) {
	p := newPeer(t, serve.Config{})
	check := func(when string) {
		for i, c := range closedRequests {
			status, text := ask(t, p, c.method, c.path, c.body)
			want := []int{200, 404, 404, 404, 404, 400, 404, 404, 404}[i]
			if status != want || status != 200 && !strings.Contains(string(text), `"error":{"message"`) {
				t.Errorf("%s: %s %s: got %d %s, want %d", when, c.method, c.path, status, text, want)
			}
		}
	}
	must(t, p.server.Model("lm").Unload(t.Context()))
	check("unloaded")
	must(t, p.server.Model("lm").Load(t.Context()))
	for range 2 {
		must(t, p.server.Close())
		check("closed")
	}
}

// TestDuringClose sends requests while the server is closed: each is answered, or refused as above.
func TestDuringClose(t *testing.T) {
	for round := range 8 {
		p := newPeer(t, serve.Config{})
		var all sync.WaitGroup
		all.Go(func() {
			for range round * 100 {
				runtime.Gosched()
			}
			must(t, p.server.Close())
		})
		for _, c := range closedRequests {
			all.Go(func() {
				status, text := ask(t, p, c.method, c.path, c.body)
				if status >= http.StatusInternalServerError && status != http.StatusServiceUnavailable {
					t.Errorf("%s %s: %d %s", c.method, c.path, status, text)
				}
			})
		}
		all.Wait()
	}
}
