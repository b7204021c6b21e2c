package daemon

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"

	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
)

const (
	languageModel = "../../../../text/testdata/dynamic.pte"
	byteTokenizer = "../../../../text/testdata/bytes.json"
)

// TestText serves a language model beside another model, reloads it, and reads its metrics.
func TestText(t *testing.T) {
	lm := model("lm", languageModel)
	lm.Tokenizer = byteTokenizer
	r := start(t, nil, lm, model("digits", digits))
	get := func(method, path, body string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, r.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := r.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	for range 2 {
		for _, c := range []struct {
			method, path, body string
			status             int
			want               string
		}{
			{"GET", "/v1/models", "", 200, `"id":"lm"`},
			{"POST", "/v1/completions", `{"model":"lm","prompt":"hello","max_tokens":4,"temperature":0}`, 200, `"completion_tokens":4`},
			{"POST", "/v1/completions", `{"model":"lm","prompt":"hello","max_tokens":4,"temperature":0,"stream":true}`, 200, "data: [DONE]"},
			{"POST", "/v1/completions", `{"model":"digits","prompt":"hello"}`, 404, "digits"},
			{"POST", "/v1/chat/completions", `{"model":"lm","messages":[{"role":"user","content":"x"}]}`, 400, "template"},
			{"POST", "/tokenize", `{"prompt":"hello"}`, 200, `{"count":5,"max_model_len":32,"tokens":[104,101,108,108,111]}`},
			{"POST", "/detokenize", `{"tokens":[104,101]}`, 200, `{"prompt":"he","content":"he"}`},
			{"GET", "/health", "", 200, ""},
			{"GET", "/v2/models/lm", "", 200, `"versions":[]`},
			{"GET", "/v2/models/lm/ready", "", 200, ""},
			{"GET", "/v2/models/lm/versions/forward/ready", "", 404, "lm"},
			{"POST", "/v2/models/lm/infer", `{"inputs":[]}`, 404, "lm"},
			{"GET", "/v2/models/digits", "", 200, "digits"},
			{"GET", "/v2/health/ready", "", 200, ""},
			{"POST", "/v2/repository/index", "", 200, `"name":"lm"`},
			{"GET", "/metrics", "", 200, `etrun_tokens_total{kind="generated",model="lm"}`},
			{"GET", "/metrics", "", 200, `etrun_time_to_first_token_seconds_count{model="lm"}`},
			{"GET", "/metrics", "", 200, `etrun_texts_total{finish="length",model="lm"}`},
			{"GET", "/metrics", "", 200, `etrun_kept_texts{model="lm"} `},
			{"GET", "/metrics", "", 200, `etrun_kept_texts_bytes{model="lm"} `},
		} {
			if status, text := get(c.method, c.path, c.body); status != c.status || !strings.Contains(text, c.want) {
				t.Errorf("%s %s %s: got %d %.300q, want %d and %q", c.method, c.path, c.body, status, text, c.status, c.want)
			}
		}
		if err := r.server.Model("lm").Load(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEmbedding serves an encoder with the options of its folder, and another with flags.
func TestEmbedding(t *testing.T) {
	const folder = "../../../../text/testdata/encoders"
	vec, cls := model("vec", folder+"/bert.pte"), model("cls", folder+"/bert.pte")
	vec.Tokenizer, cls.Tokenizer, cls.Pooling, cls.Normalize = folder, folder+"/vocab.txt", "cls", "true"
	r := start(t, nil, vec, cls)
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/v1/models", "", 200, `"owned_by":"etrun","capabilities":["embedding"]}`},
		{"/v1/embeddings", `{"model":"vec","input":["the model","x"]}`, 200, `"usage":{"prompt_tokens":7,"total_tokens":7}`},
		{"/v1/embeddings", `{"model":"cls","input":"x","encoding_format":"base64"}`, 200, `"embedding":"`},
		{"/v1/completions", `{"model":"vec","prompt":"x"}`, 400, "/v1/embeddings"},
		{"/metrics", "", 200, `etrun_tokens_total{kind="prompt",model="vec"} 7`},
		{"/metrics", "", 200, `etrun_texts_total{finish="embedded",model="vec"} 2`},
	} {
		method := "POST"
		if c.body == "" {
			method = "GET"
		}
		request, err := http.NewRequestWithContext(t.Context(), method, r.url+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := r.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != c.status || !strings.Contains(string(text), c.want) {
			t.Errorf("%s %s: got %d %.400q, want %d and %q", c.path, c.body, answer.StatusCode, text, c.status, c.want)
		}
	}
}

// Flags of vectors that do not fit are refused.
func TestEmbeddingFlags(t *testing.T) {
	for _, c := range []struct {
		change func(l *Limits)
		want   string
	}{
		{func(l *Limits) { l.Pooling = "mean" }, "without --tokenizer"}, {func(l *Limits) { l.Normalize = "true" }, "without --tokenizer"},
		{func(l *Limits) { l.Tokenizer, l.Pooling = "x", "max" }, "max"}, {func(l *Limits) { l.Tokenizer, l.Pooling, l.Template = "x", "cls", "y" }, "--template"},
		{func(l *Limits) { l.Tokenizer, l.Pooling, l.Normalize = "x", "cls", "false" }, ""},
	} {
		l := DefaultLimits()
		c.change(&l)
		got := ""
		if err := l.check(); err != nil {
			got = err.Error()
		}
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestTextTrust checks that --trust needs signatures of the tokenizer and of a template's file, too.
func TestTextTrust(t *testing.T) {
	public, private, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sign := func(path string, hashed bool) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		signature := minisign.Sign(private, data)
		if hashed {
			reader := minisign.NewReader(bytes.NewReader(data))
			if _, err := io.Copy(io.Discard, reader); err != nil {
				t.Fatal(err)
			}
			signature = reader.Sign(private)
		}
		if err := os.WriteFile(path+".minisig", signature, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	content := func(path string) string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for _, c := range []struct {
		name                string
		tokenizer, template bool // signed
		change              bool // the tokenizer, after it was signed
		builtIn             bool
		want                string // in the error
	}{
		{"all signed", true, true, false, false, ""},
		{"a built-in template", true, false, false, true, ""},
		{"no signature of the tokenizer", false, true, false, false, "tok.json.minisig"},
		{"no signature of the template", true, false, false, false, "t.tmpl.minisig"},
		{"another tokenizer", true, true, true, false, "tok.json: not a signature"},
	} {
		lm := model("lm", languageModel)
		lm.Trust = public.String()
		lm.Tokenizer, lm.Template = file(t, "tok.json", content(byteTokenizer)), file(t, "t.tmpl", `{"message": "{role}{text}"}`)
		if c.builtIn {
			lm.Template = "chatml"
		}
		if c.tokenizer {
			sign(lm.Tokenizer, true)
		}
		if c.template {
			sign(lm.Template, false)
		}
		if c.change {
			if err := os.WriteFile(lm.Tokenizer, []byte(content(byteTokenizer)+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		files := &modelFiles{trust: lm.Trust}
		_, err := lm.openTokenizer(t.Context(), files)
		if err == nil {
			_, err = lm.openTemplate(t.Context(), files)
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

// TestTextRefuses checks flags that contradict each other, and tokenizers that cannot be read.
func TestTextRefuses(t *testing.T) {
	for text, change := range map[string]func(*Limits){
		"--isolate":                func(l *Limits) { l.Tokenizer, l.Isolate = "x", true },
		"--template without":       func(l *Limits) { l.Template = "gemma" },
		"--texts 0, want at least": func(l *Limits) { l.Texts = 0 },
		"--text-memory 0, want":    func(l *Limits) { l.TextMemory = 0 },
	} {
		l := DefaultLimits()
		change(&l)
		if err := l.check(); !errors.Is(err, session.ErrUsage) || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want a usage error with %q", err, text)
		}
	}
	for name, tokenizer := range map[string]string{"no such file": "gone.json", "unsupported tokenizer": file(t, "noise.json", "noise noise noise")} {
		lm := model("lm", languageModel)
		lm.Tokenizer = tokenizer
		d := &Daemon{Settings: Defaults(), Models: []*Model{lm}, Log: io.Discard}
		d.Listen = []string{"127.0.0.1:0"}
		ended := make(chan error, 1)
		go func() { ended <- d.Run(t.Context()) }()
		select {
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("got %v, want an error with %q", err, name)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: the daemon does not end", name)
		}
	}
}
