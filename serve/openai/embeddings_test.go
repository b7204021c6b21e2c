package openai_test

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	client "github.com/sashabaranov/go-openai"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai"
	"github.com/etrun-go/etrun/serve/openai/embed"
	"github.com/etrun-go/etrun/text"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// encoders is the folder of encoders of texts.
var encoders = filepath.Join("..", "..", "text", "testdata", "encoders")

// encoderNamed returns the configuration of an encoder of testdata.
func encoderNamed(t testing.TB, name, file string, o text.EmbedOptions) serve.Config {
	t.Helper()
	tok, err := tokenizer.Open(encoders)
	must(t, err)
	if file != "bert" {
		tok = nil
	}
	return serve.Config{Name: name, Attach: embed.Attach(embed.Config{Tokenizer: tok, Options: o}),
		Open: func(context.Context) (*etrun.Program, error) {
			return etrun.Open(filepath.Join(encoders, file+".pte"), etrun.WithDelegates(all.Backends()...))
		}}
}

// embedPeer is a server with the model "vec", and the texts and tokens that it has counted.
type embedPeer struct {
	*peer
	mu            sync.Mutex
	texts, tokens int
	each          func() // is called for each text
}

// newEmbedPeer returns a server with embedders, and "lm".
func newEmbedPeer(t testing.TB, o serve.Options, more ...serve.Config) *embedPeer {
	t.Helper()
	lm := serve.Config{Name: "lm", Open: open, Attach: openai.Attach(openai.Config{Tokenizer: bytesTokenizer(t)})}
	p := &embedPeer{peer: &peer{}, each: func() {}}
	s, err := serve.New(o, append(more, lm, encoderNamed(t, "vec", "bert", text.EmbedOptions{Pooling: text.PoolMean, Normalize: true}))...)
	must(t, err)
	must(t, s.LoadAll(t.Context()))
	p.server, p.http = s, httptest.NewServer(openai.New(s, openai.Options{Embedded: func(model string, tokens int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.texts, p.tokens = p.texts+1, p.tokens+tokens
		p.each()
	}}))
	settings := client.DefaultConfig("none")
	settings.BaseURL = p.http.URL + "/v1"
	p.client = client.NewClientWithConfig(settings)
	t.Cleanup(func() {
		p.http.Close()
		must(t, s.Close())
	})
	return p
}

// libraryVectors returns what the library computes.
func libraryVectors(t testing.TB, o text.EmbedOptions, texts ...string) [][]float32 {
	t.Helper()
	prog, err := etrun.Open(filepath.Join(encoders, "bert.pte"), etrun.WithDelegates(all.Backends()...))
	must(t, err)
	defer prog.Close()
	tok, err := tokenizer.Open(encoders)
	must(t, err)
	e, err := text.LoadEmbedder(t.Context(), prog, tok, o)
	must(t, err)
	defer e.Close()
	list, err := e.Embed(t.Context(), texts...)
	must(t, err)
	return list
}

func equalVectors(a, b []float32) bool {
	same := len(a) == len(b)
	for i := range min(len(a), len(b)) {
		same = same && math.Abs(float64(a[i]-b[i])) < 1e-6
	}
	return same
}

// The vectors are those of the library, in both encodings, for the client that nobody here wrote.
func TestEmbeddings(t *testing.T) {
	p := newEmbedPeer(t, serve.Options{})
	texts := []string{"the model", "A text of tokens", "x"}
	want := libraryVectors(t, text.EmbedOptions{Pooling: text.PoolMean, Normalize: true}, texts...)
	for _, encoding := range []client.EmbeddingEncodingFormat{"", client.EmbeddingEncodingFormatFloat} {
		got, err := p.client.CreateEmbeddings(t.Context(), client.EmbeddingRequestStrings{Model: "vec", Input: texts, EncodingFormat: encoding})
		must(t, err)
		if got.Object != "list" || got.Model != "vec" || got.Usage.PromptTokens != 4+6+3 || got.Usage.TotalTokens != 13 {
			t.Errorf("got %q, %q, %+v", got.Object, got.Model, got.Usage)
		}
		for i, d := range got.Data {
			if d.Index != i || d.Object != "embedding" || !equalVectors(d.Embedding, want[i]) {
				t.Errorf("%q: %+v, want %v", encoding, d, want[i])
			}
		}
	}
	tokens, err := p.client.CreateEmbeddings(t.Context(), client.EmbeddingRequestTokens{Model: "vec", Input: [][]int{{2, 110, 3}, {2}}})
	must(t, err)
	one, err := p.client.CreateEmbeddings(t.Context(), client.EmbeddingRequest{Model: "vec", Input: []int{2, 110, 3}})
	must(t, err)
	if len(tokens.Data) != 2 || len(one.Data) != 1 || !equalVectors(tokens.Data[0].Embedding, one.Data[0].Embedding) {
		t.Errorf("tokens: %+v, %+v", tokens, one)
	}
	_, body := ask(t, p.peer, "POST", "/v1/embeddings", `{"model":"vec","input":"the model","encoding_format":"base64"}`)
	var packed struct{ Data []struct{ Embedding string } }
	must(t, json.Unmarshal(body, &packed))
	raw, err := base64.StdEncoding.DecodeString(packed.Data[0].Embedding)
	must(t, err)
	vector := make([]float32, len(raw)/4)
	if _, err := binary.Decode(raw, binary.LittleEndian, vector); err != nil || !equalVectors(vector, want[0]) {
		t.Errorf("base64: %v, %v, want %v", err, vector, want[0])
	}
	if p.texts != 3*2+2+1+1 || p.tokens != 13*2+4+3+4 {
		t.Errorf("%d texts of %d tokens", p.texts, p.tokens)
	}
}

// Shorter vectors have length 1 if all of them have.
func TestEmbeddingDimensions(t *testing.T) {
	plain := encoderNamed(t, "plain", "bert", text.EmbedOptions{Pooling: text.PoolCLS})
	p := newEmbedPeer(t, serve.Options{}, plain)
	for model, pooling := range map[string]text.EmbedOptions{"vec": {Pooling: text.PoolMean, Normalize: true}, "plain": {Pooling: text.PoolCLS}} {
		want := libraryVectors(t, pooling, "the model")[0][:8]
		if pooling.Normalize {
			text.Normalize(want)
		}
		got, err := p.client.CreateEmbeddings(t.Context(), client.EmbeddingRequest{Model: client.EmbeddingModel(model), Input: "the model", Dimensions: 8})
		must(t, err)
		if !equalVectors(got.Data[0].Embedding, want) {
			t.Errorf("%s: got %v, want %v", model, got.Data[0].Embedding, want)
		}
	}
}

// Texts are shortened at their end, before the control tokens, to what the request says, or to the context of the model.
func TestEmbeddingsTruncate(t *testing.T) {
	p := newEmbedPeer(t, serve.Options{}, encoderNamed(t, "ten", "albert", text.EmbedOptions{Pooling: text.PoolLast}))
	ask := func(model, input string, most int) ([]float32, int) {
		_, body := ask(t, p.peer, "POST", "/v1/embeddings", fmt.Sprintf(`{"model":%q,"input":%s,"truncate_prompt_tokens":%d}`, model, input, most))
		var a struct {
			Data  []struct{ Embedding []float32 }
			Usage struct {
				Prompt int `json:"prompt_tokens"`
			}
		}
		must(t, json.Unmarshal(body, &a))
		if len(a.Data) != 1 {
			t.Fatalf("%s: %s", input, body)
		}
		return a.Data[0].Embedding, a.Usage.Prompt
	}
	tok, err := tokenizer.Open(encoders)
	must(t, err)
	body, err := tok.Encode(strings.Repeat("the model ", 9), false)
	must(t, err)
	for most, n := range map[int]int{-1: 12, 12: 12, 5: 5, 3: 3} {
		want, err := json.Marshal(append(append([]int{2}, body[:n-2]...), 3))
		must(t, err)
		a, tokens := ask("vec", `"`+strings.Repeat("the model ", 9)+`"`, most)
		b, _ := ask("vec", string(want), -1)
		if tokens != n || !equalVectors(a, b) {
			t.Errorf("%d: %d tokens, %v, want the vector of %s, %v", most, tokens, a, want, b)
		}
	}
	a, tokens := ask("vec", `"the model"`, -1)
	b, _ := ask("vec", `"the model"`, 12)
	c := libraryVectors(t, text.EmbedOptions{Pooling: text.PoolMean, Normalize: true}, "the model")[0]
	if tokens != 4 || !equalVectors(a, c) || !equalVectors(b, c) {
		t.Errorf("a short text: %d tokens, %v and %v, want %v", tokens, a, b, c)
	}
	a, tokens = ask("ten", `[1,2,3,4,5,6,7,8,9,10,11]`, -1)
	if b, _ := ask("ten", `[1,2,3,4,5,6,7,8,9,10]`, -1); tokens != 10 || !equalVectors(a, b) {
		t.Errorf("%d tokens, %v, want %v", tokens, a, b)
	}
}

// Without a name the only model of the kind answers, whether it is loaded or not. One of another kind says what it does.
func TestOnlyModelOfItsKind(t *testing.T) {
	p := newEmbedPeer(t, serve.Options{})
	vectors := map[string]string{"/v1/embeddings": `{"input":"a"}`}
	texts := map[string]string{asCompletion: `{"prompt":"x","max_tokens":1}`}
	requests := func(bodies map[string]string, status int, want string) {
		t.Helper()
		for path, body := range bodies {
			if got, answer := ask(t, p.peer, "POST", path, body); got != status || !strings.Contains(string(answer), want) {
				t.Errorf("%s: %d %s, want %d and %s", path, got, answer, status, want)
			}
		}
	}
	requests(vectors, 200, `"model":"vec"`)
	requests(texts, 200, `"model":"lm"`)
	requests(map[string]string{asChat: `{"messages":[{"role":"user","content":"x"}]}`, "/v1/responses": `{"input":"x"}`,
		"/tokenize": `{"messages":[{"role":"user","content":"x"}]}`}, 400, `chat template`)
	requests(map[string]string{"/tokenize": `{"prompt":"x"}`, "/detokenize": `{"tokens":[]}`}, 400,
		`"param":"model","code":"missing_required_parameter"`)

	must(t, p.server.Model("lm").Unload(t.Context())) // its configuration does not say what it was
	requests(vectors, 400, `"param":"model","code":"missing_required_parameter"`)
	must(t, p.server.Model("lm").Load(t.Context()))
	only := &embedPeer{peer: serverOf(t, encoderNamed(t, "vec", "bert", text.EmbedOptions{Pooling: text.PoolMean}))}
	must(t, only.server.LoadAll(t.Context()))
	got, answer := ask(t, only.peer, "POST", asCompletion, `{"prompt":"x"}`)
	if got != 400 || !strings.Contains(string(answer), "vectors of texts only") {
		t.Errorf("an encoder only: %d %s", got, answer)
	}

	lm := serve.Config{Name: "lm", Kind: openai.KindText, OnDemand: true, Open: open,
		Attach: openai.Attach(openai.Config{Tokenizer: bytesTokenizer(t)})}
	vec := encoderNamed(t, "vec", "bert", text.EmbedOptions{Pooling: text.PoolMean})
	vec.Kind, vec.OnDemand = openai.KindVector, true
	p.peer = serverOf(t, lm, vec)
	requests(vectors, 200, `"model":"vec"`)
	if s := p.server.Model("lm").State(); s != serve.Unloaded {
		t.Errorf("the other model is %s", s)
	}
	requests(texts, 200, `"model":"lm"`)
}

// Each request that is refused names its member.
func TestEmbeddingsRefuse(t *testing.T) {
	p := newEmbedPeer(t, serve.Options{}, encoderNamed(t, "ten", "albert", text.EmbedOptions{Pooling: text.PoolLast}))
	for _, c := range []struct {
		body   string
		status int
		want   string
	}{
		{`{"model":"vec"}`, 400, `"param":"input","code":"missing_required_parameter"`},
		{`{"model":"vec","input":[]}`, 400, `"param":"input"`},
		{`{"model":"vec","input":[[]]}`, 400, `empty`},
		{`{"model":"vec","input":{"a":1}}`, 400, `"param":"input"`},
		{`{"model":"vec","input":["a",1]}`, 400, `"param":"input"`},
		{`{"model":"vec","input":[1.5]}`, 400, `"param":"input"`},
		{`{"model":"vec","input":[200]}`, 400, `"param":"input"`},
		{`{"model":"vec","input":["a",[-1]]}`, 400, `input[1]: token 0`},
		{`{"model":"vec","input":["a","` + strings.Repeat("b", 12) + `"]}`, 400, `"param":"input","code":"context_length_exceeded"`},
		{`{"model":"vec","input":[` + strings.Repeat(`"a",`, 2048) + `"a"]}`, 400, `2048`},
		{`{"model":"vec","input":"a","encoding_format":"int8"}`, 400, `"param":"encoding_format"`},
		{`{"model":"vec","input":"a","encoding_format":1}`, 400, `"param":"encoding_format"`},
		{`{"model":"vec","input":"a","dimensions":0}`, 400, `"param":"dimensions"`},
		{`{"model":"vec","input":"a","dimensions":33}`, 400, `"param":"dimensions"`},
		{`{"model":"vec","input":"a","dimensions":"8"}`, 400, `"param":"dimensions"`},
		{`{"model":"vec","input":"a","color":1}`, 400, `"param":"color","code":"unknown_parameter"`},
		{`{"model":"vec","input":"a","truncate":true}`, 400, `want truncate_prompt_tokens","type":"invalid_request_error","param":"truncate"`},
		{`{"model":"vec","input":"a","truncate_prompt_tokens":0}`, 400, `"param":"truncate_prompt_tokens"`},
		{`{"model":"vec","input":"a","truncate_prompt_tokens":-2}`, 400, `"param":"truncate_prompt_tokens"`},
		{`{"model":"vec","input":"a","truncate_prompt_tokens":1}`, 400, `got 1, want 2 or more","type"`},
		{`{"model":"vec","input":"a","truncate_prompt_tokens":13}`, 400, `context of the model has 12 tokens`},
		{`{"model":"vec","input":"a","truncate_prompt_tokens":"5"}`, 400, `"param":"truncate_prompt_tokens"`},
		{`{"model":"ten","input":[1,2],"truncate_prompt_tokens":-1}`, 400, `exactly 10`},
		{`{"input":"a"}`, 400, `"param":"model"`},
		{`{"model":"no","input":"a"}`, 404, `"code":"model_not_found"`},
		{`{"model":"lm","input":"a"}`, 400, `"param":"model"`},
		{`{"model":"ten","input":[1,2]}`, 400, `exactly 10`},
		{`{"model":"ten","input":"a"}`, 400, `"param":"input"`},
		{`{`, 400, "body"}, {` `, 400, `body: empty`},
	} {
		if status, body := ask(t, p.peer, "POST", "/v1/embeddings", c.body); status != c.status || !strings.Contains(string(body), c.want) {
			t.Errorf("%.80s: got %d %.300s, want %d and %s", c.body, status, body, c.status, c.want)
		}
	}
	for path, body := range map[string]string{asCompletion: `{"model":"vec","prompt":"x"}`, "/tokenize": `{"model":"vec","messages":[{"role":"user","content":"x"}]}`} {
		if status, text := ask(t, p.peer, "POST", path, body); status != 400 || !strings.Contains(string(text), "vectors of texts only") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if status, text := ask(t, p.peer, "POST", "/tokenize", `{"model":"vec","prompt":"the"}`); status != 200 ||
		!strings.HasPrefix(string(text), `{"count":3,"max_model_len":12,"tokens":[2,`) {
		t.Errorf("tokens: %d %s", status, text)
	}
}

// Answers do not hold more memory than is free, nor more than one answer may; after them all is free again.
func TestEmbeddingsWithinMemory(t *testing.T) {
	body := func(n int) string {
		return fmt.Sprintf(`{"model":"vec","input":[%s"a"]}`, strings.Repeat(`"a",`, n-1))
	}
	p := newEmbedPeer(t, serve.Options{BusyBytes: 256 << 10})
	for n, want := range map[int]string{1: `"object":"list"`, 20: `"object":"list"`, 200: "the answer exceeds", 2000: "an answer of more than"} {
		if _, text := ask(t, p.peer, "POST", "/v1/embeddings", body(n)); !strings.Contains(string(text), want) {
			t.Errorf("%d texts: %.300s, want %q", n, text, want)
		}
	}
	if status, text := ask(t, p.peer, "POST", "/v1/embeddings", `{"model":"vec","input":"`+strings.Repeat("a", 20000)+`"}`); status != 413 {
		t.Errorf("a large text: %d %s", status, text)
	}
	full := body(1) // with spaces, so that nothing is left for the answer
	full += strings.Repeat(" ", 256<<10/25-len(full))
	if status, text := ask(t, p.peer, "POST", "/v1/embeddings", full); status != 413 {
		t.Errorf("no memory for the answer: %d %s", status, text)
	}
	release := p.server.NewReservation()
	must(t, release.Grow(256<<10)) // nothing is counted
	release.Release()
}

// A client that disconnects in the middle ends the computation, and nothing of it remains.
func TestEmbeddingsEnd(t *testing.T) {
	p := newEmbedPeer(t, serve.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p.each = cancel
	body := `{"model":"vec","input":["a","b","c","d","e","f"]}`
	w := httptest.NewRecorder()
	p.http.Config.Handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/embeddings", strings.NewReader(body)).WithContext(ctx))
	if most := 2; p.texts < 1 || p.texts > most || w.Code != 499 { // two in a call
		t.Errorf("%d vectors, %d %s", p.texts, w.Code, w.Body)
	}
	all := p.server.NewReservation()
	must(t, all.Grow(p.server.BusyBytes()))
	all.Release()
	if status, _ := ask(t, p.peer, "POST", "/v1/embeddings", body); status != 200 {
		t.Errorf("the next request: %d", status)
	}
}
