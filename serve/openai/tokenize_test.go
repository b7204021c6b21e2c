package openai_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai"
)

// The tokens of texts and of messages, and the text of tokens.
func TestTokenize(t *testing.T) {
	p := newPeer(t, serve.Config{})
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/tokenize", `{"model":"lm","prompt":"abc"}`, 200, `{"count":3,"max_model_len":32,"tokens":[97,98,99]}`},
		{"/tokenize", `{"prompt":"é","add_special_tokens":false}`, 200, `{"count":2,"max_model_len":32,"tokens":[195,169]}`},
		{"/tokenize", `{"prompt":""}`, 200, `{"count":0,"max_model_len":32,"tokens":[]}`},
		{"/tokenize", `{"messages":[{"role":"user","content":"a"}]}`, 200, `"tokens":[97,124]`},
		{"/tokenize", `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],"continue_final_message":true}`, 200,
			`"tokens":[97,124,98]`},
		{"/tokenize", `{"prompt":"` + strings.Repeat("x", 1000) + `"}`, 200, `{"count":1000,"max_model_len":32,`},
		{"/tokenize", `{}`, 400, `"param":"prompt","code":"missing_required_parameter"`},
		{"/tokenize", `{"content":"abc"}`, 200, `{"count":3,"max_model_len":32,"tokens":[97,98,99]}`},
		{"/tokenize", `{"content":"abc","add_special":true}`, 200, `{"count":3,"max_model_len":32,"tokens":[97,98,99]}`},
		{"/tokenize", `{"content":"a","prompt":"a"}`, 400, `"param":"content"`},
		{"/tokenize", `{"prompt":"a","messages":[]}`, 400, `"param":"messages"`},
		{"/tokenize", `{"prompt":["a"]}`, 400, `"param":"prompt"`},
		{"/tokenize", `{"messages":[{"role":"user","content":"a"}],"add_special_tokens":false}`, 400, `"param":"add_special_tokens"`},
		{"/tokenize", `{"messages":[{"role":"wizard","content":"a"}]}`, 400, "wizard"},
		{"/tokenize", `{"messages":[{"role":"user","content":"a"}],"add_generation_prompt":false}`, 400, `"param":"add_generation_prompt"`},
		{"/tokenize", `{"messages":[{"role":"user","content":"a"}],"add_generation_prompt":3}`, 400, `"param":"add_generation_prompt"`},
		{"/tokenize", `{"prompt":"a","temperature":1}`, 400, `"param":"temperature","code":"unknown_parameter"`},
		{"/tokenize", `{"prompt":"a","return_token_strs":true}`, 400, `"code":"unsupported_parameter"`},
		{"/tokenize", `{"model":"no","prompt":"a"}`, 404, `"code":"model_not_found"`},
		{"/tokenize", `{"model":"plain","prompt":"a"}`, 404, `"code":"model_not_found"`},
		{"/tokenize", `{`, 400, "body"},
		{"/detokenize", `{"model":"lm","tokens":[97,98.0]}`, 200, `{"prompt":"ab","content":"ab"}`},
		{"/detokenize", `{"tokens":[]}`, 200, `{"prompt":"","content":""}`},
		{"/detokenize", `{}`, 400, `"param":"tokens","code":"missing_required_parameter"`},
		{"/detokenize", `{"tokens":[0,-1]}`, 400, `-1 at 1`},
		{"/detokenize", `{"tokens":[100000]}`, 400, `"param":"tokens"`},
		{"/detokenize", `{"tokens":"a"}`, 400, `"param":"tokens"`},
	} {
		if status, text := ask(t, p, "POST", c.path, c.body); status != c.status || !strings.Contains(string(text), c.want) {
			t.Errorf("%s %.80s: got %d %.200s, want %d and %s", c.path, c.body, status, text, c.status, c.want)
		}
	}
	if status, text := ask(t, p, "GET", "/tokenize", ""); status != 405 || !strings.Contains(string(text), "method_not_supported") {
		t.Errorf("GET: %d %s", status, text)
	}
}

// Tokens are answered while a text is generated, and do not count more memory than there is.
func TestTokenizeDoesNotWait(t *testing.T) {
	p := newPeerWith(t, serve.Options{BusyBytes: 64 << 10}, serve.Config{Instances: 1, Queue: -1}, openai.Config{})
	held := make(chan struct{})
	go func() {
		_ = p.server.Model("lm").Use(t.Context(), func(_ context.Context, _ serve.Attachment, l *serve.Lease) error {
			l.Began()
			close(held)
			<-t.Context().Done()
			return nil
		})
	}()
	<-held
	if status, text := ask(t, p, "POST", "/tokenize", `{"prompt":"a"}`); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	status, text := ask(t, p, "POST", "/tokenize", `{"prompt":"`+strings.Repeat("a", 8000)+`"}`)
	if status != 413 || !strings.Contains(string(text), "65536") {
		t.Errorf("a large text: %d %s", status, text)
	}
	var o struct{ Tokens []int }
	if _, text := ask(t, p, "POST", "/tokenize", `{"prompt":"ab"}`); json.Unmarshal(text, &o) != nil || len(o.Tokens) != 2 {
		t.Errorf("after it: %s", text)
	}
}
