package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/etrun-go/etrun/internal/await"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai"
)

// identify makes the client of a request that of its parameter client.
func (p *peer) identify() {
	next := p.http.Config.Handler
	p.http.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.URL.Query().Get("client")
		next.ServeHTTP(w, r.WithContext(serve.WithClient(r.Context(), serve.Client{Credential: name})))
	})
}

// cached sends a request of a client and returns its prompt's tokens, and how many of them the answer says were cached.
func (p *peer) cached(t *testing.T, client, path, members string) (prompt, cached int) {
	t.Helper()
	status, text := ask(t, p, "POST", path+"?client="+client, `{"model":"lm","temperature":0,`+members+`}`)
	var answer struct {
		Usage struct {
			Prompt  int `json:"prompt_tokens"`
			Input   int `json:"input_tokens"`
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
			InputDetails struct {
				Cached int `json:"cached_tokens"`
			} `json:"input_tokens_details"`
		} `json:"usage"`
	}
	if status != 200 || json.Unmarshal(text, &answer) != nil {
		t.Fatalf("%s: %d %s", members, status, text)
	}
	u := answer.Usage
	return u.Prompt + u.Input, u.Details.Cached + u.InputDetails.Cached
}

// Nobody learns from the count of cached tokens which prompts others have sent, however many sessions there are; and each client, and
// each salt of it, has what it has computed itself.
func TestPrefixesBelongToClients(t *testing.T) {
	const secret = "My PIN is 4071"
	ways := []struct{ path, members string }{
		{"/v1/completions", `"prompt":"` + secret + `%s","max_tokens":1`},
		{"/v1/chat/completions", `"messages":[{"role":"user","content":"` + secret + `%s"}],"max_tokens":1`},
		{"/v1/responses", `"input":"` + secret + `%s","store":false,"max_output_tokens":1`},
	}
	for _, kept := range []int{2, 8} {
		for _, w := range ways {
			t.Run(fmt.Sprint(w.path, kept), func(t *testing.T) {
				p := newPeerOf(t, serve.Config{Instances: 1}, openai.Config{Sessions: kept})
				p.identify()
				for _, c := range []struct {
					client, salt string
					own          bool
				}{
					{"alice", "", false}, {"alice", "", true},
					{"mallory", "", false}, {"mallory", "", true},
					{"alice", "blue", false}, {"alice", "blue", true}, {"alice", "red", false},
					{"mallory", "blue", false}, {"", "", false}, {"", "blue", false},
				} {
					members := fmt.Sprintf(w.members, "")
					if c.salt != "" {
						members += `,"cache_salt":"` + c.salt + `"`
					}
					n, cached := p.cached(t, c.client, w.path, members)
					if c.own != (cached > 0) || c.own && cached < n-1 {
						t.Errorf("client %q, salt %q: %d of %d tokens cached, computed before: %v", c.client, c.salt, cached, n, c.own)
					}
				}
			})
		}
	}
}

// The same with clients at the same time, whose sessions replace each other.
func TestPrefixesOfManyClients(t *testing.T) {
	p := newPeerOf(t, serve.Config{Instances: 4}, openai.Config{Sessions: 4})
	p.identify()
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			for k := range 6 {
				// The prompts of a client differ from their first token on, and those of all clients are alike.
				members := fmt.Sprintf(`"prompt":"%c common secret","max_tokens":3,"n":2`, 'a'+k)
				if _, cached := p.cached(t, fmt.Sprint("c", i), "/v1/completions", members); cached > 0 {
					t.Errorf("client %d: %d tokens of %s are cached", i, cached, members)
				}
			}
		})
	}
	all.Wait()
}

// A salt is a string that is not empty.
func TestSalts(t *testing.T) {
	p := newPeer(t, serve.Config{})
	for path, members := range map[string]string{"/v1/completions": `"prompt":"x"`, "/v1/responses": `"input":"x","store":false`,
		"/v1/chat/completions": `"messages":[{"role":"user","content":"x"}]`} {
		for _, salt := range []string{`""`, `7`, `["a"]`} {
			if status, text := ask(t, p, "POST", path, `{"model":"lm",`+members+`,"cache_salt":`+salt+`}`); status != 400 {
				t.Errorf("%s with the salt %s: %d %s, want 400", path, salt, status, text)
			}
		}
	}
}

// Texts of a request wait for those of others, and are the same as alone.
func TestTextsAlternate(t *testing.T) {
	p := newPeerOf(t, serve.Config{Instances: 1}, openai.Config{Sessions: 2})
	p.identify()
	// The lengths of the prompts tell the requests apart.
	requests := []struct{ client, members string }{
		{"a", `"prompt":"1","n":3`}, {"a", `"prompt":["22","22"],"n":2`}, {"b", `"prompt":"333"`}, {"a", `"prompt":"4444"`}}
	const common = `,"max_tokens":4,"seed":7,"ignore_eos":true`
	texts := func(body []byte) string {
		var answer struct{ Choices []struct{ Text string } }
		must(t, json.Unmarshal(body, &answer))
		return fmt.Sprint(answer.Choices)
	}
	alone := make([]string, len(requests))
	for i, r := range requests {
		_, body := ask(t, p, "POST", "/v1/completions", `{"model":"lm",`+r.members+common+`}`)
		alone[i] = texts(body)
	}
	p.mu.Lock()
	p.stats = nil
	p.mu.Unlock()
	release := inUse(t, p)
	var all sync.WaitGroup
	for i, r := range requests {
		all.Go(func() {
			_, body := ask(t, p, "POST", "/v1/completions?client="+r.client, `{"model":"lm",`+r.members+common+`}`)
			if got := texts(body); got != alone[i] {
				t.Errorf("%s: got %s, alone %s", r.members, got, alone[i])
			}
		})
		await.True(t, r.members+" waits", func() bool { return p.server.Model("lm").Waiting() == i+1 })
	}
	release()
	all.Wait()
	var order []int
	for _, s := range p.stats {
		order = append(order, s.Prompt)
	}
	if want := []int{1, 3, 2, 1, 4, 2, 1, 2, 2}; !slices.Equal(order, want) {
		t.Errorf("texts of prompts of %v tokens, want %v", order, want)
	}
}

// A client that fills the queue does not keep others out: one of its requests is refused for theirs.
func TestFullQueueOfOneClient(t *testing.T) {
	p := newPeerOf(t, serve.Config{Instances: 1, Queue: 4}, openai.Config{Sessions: 2})
	p.identify()
	release := inUse(t, p)
	var all sync.WaitGroup
	var mu sync.Mutex
	statuses := make(map[string][]int)
	send := func(client string) {
		all.Go(func() {
			status, _ := ask(t, p, "POST", "/v1/completions?client="+client, `{"model":"lm","prompt":"x","max_tokens":1}`)
			mu.Lock()
			defer mu.Unlock()
			statuses[client] = append(statuses[client], status)
		})
	}
	answered := func(client string) int {
		mu.Lock()
		defer mu.Unlock()
		return len(statuses[client])
	}
	for i := range 4 {
		send("many")
		await.True(t, "a request waits", func() bool { return p.server.Model("lm").Waiting() == i+1 })
	}
	for i := range 2 {
		send("few")
		await.True(t, "a request is refused", func() bool { return answered("many") == i+1 && p.server.Model("lm").Waiting() == 4 })
	}
	send("few")
	await.True(t, "a request is refused", func() bool { return answered("few") == 1 })
	release()
	all.Wait()
	for client, want := range map[string][]int{"many": {429, 429, 200, 200}, "few": {429, 200, 200}} {
		if !slices.Equal(statuses[client], want) {
			t.Errorf("requests of the client with %s got %v, want %v", client, statuses[client], want)
		}
	}
}
