package openai_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/text"
)

// ollamaText is an answer of Ollama's API, or a line of it.
type ollamaText struct {
	Model    string
	Created  string `json:"created_at"`
	Response *string
	Message  *struct{ Role, Content string }
	Done     bool
	Reason   string `json:"done_reason"`
	Total    int64  `json:"total_duration"`
	Prompt   int    `json:"prompt_eval_count"`
	Eval     int    `json:"eval_count"`
	EvalTime int64  `json:"eval_duration"`
	Error    string
}

// text is that of a chat, or a generated one.
func (o *ollamaText) text() string {
	if o.Message != nil {
		return o.Message.Content
	}
	return *o.Response
}

// ollamaLines returns the lines of an answer.
func ollamaLines(t *testing.T, p *peer, path, body string) (list []ollamaText) {
	t.Helper()
	status, data := ask(t, p, "POST", path, body)
	for line := range bytes.Lines(data) {
		var o ollamaText
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := json.Unmarshal(line, &o); err != nil || status != 200 {
			t.Fatalf("%s %s: %d %s: %v", path, body, status, line, err)
		}
		list = append(list, o)
	}
	return list
}

// Texts of Ollama's API are those of the library, as lines and as one object.
func TestOllamaTexts(t *testing.T) {
	p := newPeer(t, serve.Config{})
	plain := want(t, "hello", text.Options{MaxTokens: 9})
	sampled := want(t, "hello", text.Options{MaxTokens: 9, Sampling: text.Sampling{Temperature: 0.8, TopK: 40, TopP: 0.9, Seed: 3}})
	chat := want(t, "hello|", text.Options{MaxTokens: 9})
	for _, c := range []struct{ path, body, want, reason string }{
		{"/api/generate", `{"model":"lm","prompt":"hello","raw":true,"options":{"num_predict":9,"temperature":0}`, plain, "length"},
		{"/api/generate", `{"prompt":"hello","raw":true,"options":{"num_predict":9,"seed":3}`, sampled, "length"},
		{"/api/generate", `{"prompt":"hello","options":{"num_predict":9,"temperature":0},"keep_alive":"5m","think":false`, chat, "length"},
		{"/api/chat", `{"model":"lm:latest","messages":[{"role":"user","content":"hello"}],"options":{"num_predict":9,"temperature":0,"num_ctx":8192}`, chat, "length"},
		{"/api/generate", `{"prompt":""`, "", "load"},
		{"/api/chat", `{"messages":[]`, "", "load"},
	} {
		whole := ollamaLines(t, p, c.path, c.body+`,"stream":false}`)
		if len(whole) != 1 || whole[0].text() != c.want || !whole[0].Done || whole[0].Reason != c.reason || whole[0].Model != "lm" {
			t.Errorf("%s %s: %+v, want %q", c.path, c.body, whole, c.want)
			continue
		}
		if w := whole[0]; c.reason != "load" && (w.Eval != 9 || w.Prompt == 0 || w.Total <= 0 || w.EvalTime <= 0 || w.Created == "") {
			t.Errorf("%s %s: figures %+v", c.path, c.body, w)
		}
		var all strings.Builder
		lines := ollamaLines(t, p, c.path, c.body+`}`)
		for i, line := range lines {
			all.WriteString(line.text())
			if line.Done != (i == len(lines)-1) || line.Message != nil && line.Message.Role != "assistant" {
				t.Errorf("%s %s: line %d: %+v", c.path, c.body, i, line)
			}
		}
		if last := lines[len(lines)-1]; all.String() != c.want || last.Reason != c.reason || last.Eval != whole[0].Eval || c.want != "" && len(lines) < 3 {
			t.Errorf("%s %s: lines %q, want %q: %+v", c.path, c.body, all.String(), c.want, last)
		}
	}
}

// Forms prescribe the texts of Ollama's API.
func TestOllamaForms(t *testing.T) {
	p := newPeer(t, serve.Config{})
	for seed := range 4 {
		for format, want := range map[string]string{`"json"`: "{", `{"type":"object","properties":{"a":{"enum":[7]}},"required":["a"]}`: "7"} {
			line := ollamaLines(t, p, "/api/chat", fmt.Sprintf(`{"messages":[{"role":"user","content":"x"}],"stream":false,"format":%s,"options":{"seed":%d}}`,
				format, seed))[0]
			if !json.Valid([]byte(line.text())) || !strings.Contains(line.text(), want) {
				t.Errorf("%s: %q", format, line.text())
			}
		}
	}
}

// What is not done is refused by name, in the form of the API that is asked.
func TestDoorsRefuse(t *testing.T) {
	p := newEmbedPeer(t, serve.Options{})
	const chat = `{"messages":[{"role":"user","content":"x"}],`
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string // beginning of the message
	}{
		{"POST", "/api/generate", `{"prompt":"x","raw":true,"options":{"temperature":-1}}`, 400, "options.temperature: "},
		{"POST", "/api/chat", chat + `"options":{"num_predict":0}}`, 400, "options.num_predict: "},
		{"POST", "/api/chat", chat + `"options":{"mirostat":1}}`, 400, "options.mirostat: "},
		{"POST", "/api/chat", chat + `"options":{"top_k":"x"}}`, 400, "options.top_k: a string, want an integer"},
		{"POST", "/api/chat", chat + `"options":{"colour":1}}`, 400, "options.colour: unknown member"},
		{"POST", "/api/chat", chat + `"format":"xml"}`, 400, "format: "},
		{"POST", "/api/chat", chat + `"format":{"type":"object","properties":{"a":{"type":"nothing"}}}}`, 400, "format: "},
		{"POST", "/api/chat", chat + `"think":"much"}`, 400, "think: "},
		{"POST", "/api/chat", `{"messages":[{"role":"user","content":"x","images":["eA=="]}]}`, 400, "messages[0].images: "},
		{"POST", "/api/chat", `{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":7}}]}]}`, 400,
			"messages[0].tool_calls[0].function.arguments: "},
		{"POST", "/api/chat", `{"model":"vec","messages":[{"role":"user","content":"x"}]}`, 400, `the model "vec" `},
		{"POST", "/api/chat", `{"model":"none","messages":[{"role":"user","content":"x"}]}`, 404, `no model "none"`},
		{"POST", "/api/chat", `{`, 400, "body: "},
		{"POST", "/api/generate", `{"prompt":"x","suffix":"y"}`, 400, "suffix: "},
		{"POST", "/api/generate", `{"prompt":"x","context":[1]}`, 400, "context: "},
		{"POST", "/api/generate", `{"prompt":"` + strings.Repeat("x", 400) + `","raw":true}`, 400, "the prompt has "},
		{"POST", "/api/generate", `{"model":"lm","prompt":"` + strings.Repeat("x", 2<<20) + `"}`, 413, ""},
		{"POST", "/api/embed", `{"model":"lm","input":"x"}`, 400, `the model "lm" `},
		{"POST", "/api/embed", `{"input":"x","prompt":"x"}`, 400, "prompt: "},
		{"POST", "/api/embed", `{"model":"vec"}`, 400, "input: missing"},
		{"POST", "/api/show", `{"model":"none"}`, 404, `no model "none"`},
		{"POST", "/api/pull", `{"model":"x"}`, 404, "no such path: "},
		{"GET", "/api/chat", ``, 405, "method GET"},
		{"POST", "/completion", `{"prompt":["a","b"]}`, 400, "prompt: 2 texts"},
		{"POST", "/completion", `{"prompt":"a","n_predict":-2}`, 400, "n_predict: "},
		{"POST", "/completion", `{"prompt":"a","n_probs":2}`, 400, "n_probs: "},
		{"POST", "/completion", `{"n_predict":2}`, 400, "prompt: missing"},
		{"POST", "/apply-template", `{"messages":[]}`, 400, "messages: missing"},
		{"GET", "/props?model=vec", ``, 400, `the model "vec" `},
		{"GET", "/slots?model=none", ``, 404, `no model "none"`},
		{"POST", "/v1/rerank", `{"query":"a"}`, 400, "documents: missing"},
		{"POST", "/v1/rerank", `{"documents":["a"]}`, 400, "query: missing"},
		{"POST", "/v1/rerank", `{"query":"a","documents":["b"],"top_n":0}`, 400, "top_n: "},
		{"POST", "/v1/rerank", `{"query":"a","documents":["b",` + strings.Repeat(`"c",`, 2100) + `"d"]}`, 400, "documents: "},
		{"POST", "/v1/rerank", `{"model":"lm","query":"a","documents":["b"]}`, 400, `the model "lm" `},
		{"POST", "/similarity", `{"inputs":{"sentences":["b"]}}`, 400, "inputs.source_sentence: missing"},
	} {
		status, data := ask(t, p.peer, c.method, c.path, c.body)
		var flat struct{ Error string }
		var nested struct{ Error struct{ Message string } }
		message := ""
		if strings.HasPrefix(c.path, "/api/") {
			must(t, json.Unmarshal(data, &flat))
			message = flat.Error
		} else {
			must(t, json.Unmarshal(data, &nested))
			message = nested.Error.Message
		}
		if status != c.status || message == "" || !strings.HasPrefix(message, c.want) {
			t.Errorf("%s %s %.100s: %d %.300s, want %d %q", c.method, c.path, c.body, status, data, c.status, c.want)
		}
	}
}

// Models are described for other APIs.
func TestDoorsDescribe(t *testing.T) {
	p := newEmbedPeer(t, serve.Options{})
	for _, c := range []struct{ method, path, body, want string }{
		{"GET", "/api/tags", "", `"name":"vec"`},
		{"GET", "/api/ps", "", `"context_length":32`},
		{"GET", "/api/version", "", `"version":"`},
		{"POST", "/api/show", `{"model":"lm:latest"}`, `"capabilities":["completion"]`},
		{"POST", "/api/show", `{"name":"vec"}`, `"executorch.embedding_length":`},
		{"GET", "/props", "", `"n_ctx":32`},
		{"GET", "/slots?model=lm", "", `"is_processing":false`},
		{"GET", "/models", "", `"id":"lm"`},
	} {
		if status, data := ask(t, p.peer, c.method, c.path, c.body); status != 200 || !strings.Contains(string(data), c.want) {
			t.Errorf("%s %s: %d %s, want %s", c.method, c.path, status, data, c.want)
		}
	}
}

// Texts of llama-server's API are those of the library.
func TestLlamaCompletion(t *testing.T) {
	p := newPeer(t, serve.Config{})
	greedy := want(t, "hello", text.Options{MaxTokens: 9})
	sampled := want(t, "hello", text.Options{MaxTokens: 9, Sampling: text.Sampling{Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05, Seed: 3}})
	type part struct {
		Content   string
		Stop      bool
		Type      string `json:"stop_type"`
		Predicted int    `json:"tokens_predicted"`
		Evaluated int    `json:"tokens_evaluated"`
	}
	for body, want := range map[string]string{`{"prompt":"hello","n_predict":9,"temperature":0,"cache_prompt":true`: greedy,
		`{"prompt":[104,101,108,108,111],"n_predict":9,"seed":3,"id_slot":-1`: sampled, `{"prompt":"hello","max_tokens":9,"temperature":0`: greedy} {
		var whole part
		status, data := ask(t, p, "POST", "/completion", body+"}")
		if json.Unmarshal(data, &whole) != nil || status != 200 || whole != (part{want, true, "limit", 9, 5}) {
			t.Errorf("%s: %d %s, want %q", body, status, data, want)
		}
		var all strings.Builder
		var last part
		_, data = ask(t, p, "POST", "/completion", body+`,"stream":true}`)
		for event := range strings.SplitSeq(strings.TrimSpace(string(data)), "\n\n") {
			last = part{}
			must(t, json.Unmarshal([]byte(strings.TrimPrefix(event, "data: ")), &last))
			all.WriteString(last.Content)
		}
		if all.String() != want || last != (part{"", true, "limit", 9, 5}) {
			t.Errorf("%s: events %q, want %q; last %+v", body, all.String(), want, last)
		}
	}
	status, data := ask(t, newChatPeer(t, `{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}`), "POST", "/apply-template",
		`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`)
	var got struct{ Prompt string }
	if must(t, json.Unmarshal(data, &got)); status != 200 || got.Prompt != "<user>a<assistant>b<user>c" {
		t.Errorf("template: %d %s", status, data)
	}
}

// Comparisons are cosines of the library's vectors, in the order of the request or the most similar first.
func TestComparisons(t *testing.T) {
	p := newEmbedPeer(t, serve.Options{})
	texts := []string{"the model", "a text", "the model", "numbers"}
	vectors := libraryVectors(t, text.EmbedOptions{Pooling: text.PoolMean, Normalize: true}, texts...)
	cosine := func(i int) (sum float64) {
		for k := range vectors[0] {
			sum += float64(vectors[0][k]) * float64(vectors[i][k])
		}
		return sum
	}
	var scores []float64
	status, data := ask(t, p.peer, "POST", "/similarity", `{"inputs":{"source_sentence":"the model","sentences":["a text","the model","numbers"]}}`)
	if json.Unmarshal(data, &scores) != nil || status != 200 || len(scores) != 3 {
		t.Fatalf("%d %s", status, data)
	}
	for i, s := range scores {
		if math.Abs(s-cosine(i+1)) > 1e-5 {
			t.Errorf("similarity %d: %v, want %v", i, s, cosine(i+1))
		}
	}
	var ranked struct {
		Results []struct {
			Index    int
			Score    float64 `json:"relevance_score"`
			Document *struct{ Text string }
		}
		Usage struct {
			Prompt int `json:"prompt_tokens"`
		}
	}
	for _, path := range []string{"/v1/rerank", "/rerank"} {
		status, data = ask(t, p.peer, "POST", path, `{"model":"vec","query":"the model","documents":["a text",{"text":"the model"},"numbers"],"top_n":2,"return_documents":true}`)
		must(t, json.Unmarshal(data, &ranked))
		if r := ranked.Results; status != 200 || len(r) != 2 || r[0].Index != 1 || r[0].Document.Text != "the model" || r[0].Score < r[1].Score ||
			math.Abs(r[0].Score-1) > 1e-5 || ranked.Usage.Prompt == 0 {
			t.Errorf("%s: %d %s", path, status, data)
		}
	}
	var many struct {
		Embeddings [][]float32
		Prompt     int `json:"prompt_eval_count"`
	}
	var one struct{ Embedding []float32 }
	status, data = ask(t, p.peer, "POST", "/api/embed", `{"model":"vec","input":["the model","a text"]}`)
	if json.Unmarshal(data, &many) != nil || status != http.StatusOK || len(many.Embeddings) != 2 || !equalVectors(many.Embeddings[1], vectors[1]) || many.Prompt == 0 {
		t.Errorf("embed: %d %s", status, data)
	}
	status, data = ask(t, p.peer, "POST", "/api/embeddings", `{"model":"vec","prompt":"a text"}`)
	if json.Unmarshal(data, &one) != nil || status != http.StatusOK || !equalVectors(one.Embedding, vectors[1]) {
		t.Errorf("embeddings: %d %s", status, data)
	}
	if status, data := ask(t, p.peer, "POST", "/api/embed", `{"model":"vec","input":"`+strings.Repeat("a text ", 2000)+`"}`); status != 200 {
		t.Errorf("a long text: %d %.200s", status, data)
	}
}
