package daemon

import (
	"encoding/json"
	"testing"
	"time"
)

// TestErrorsOfTexts checks that errors below /v1 have the form of that protocol, also those of access control.
func TestErrorsOfTexts(t *testing.T) {
	tokens := file(t, "tokens", "first-token-0123456\n")
	lm := model("lm", languageModel)
	lm.Tokenizer = byteTokenizer
	r := start(t, func(d *Daemon) { d.TokenFile = tokens }, lm)
	for _, c := range []struct {
		method, path, token, origin string
		status                      int
		code                        string
	}{
		{"GET", "/v1/models", "", "", 401, "invalid_api_key"},
		{"POST", "/v1/chat/completions", "wrong", "", 401, "invalid_api_key"},
		{"GET", "/v1/nothing", "wrong", "", 401, "invalid_api_key"},
		{"POST", "/tokenize", "wrong", "", 401, "invalid_api_key"},
		{"GET", "/v1/nothing", "first-token-0123456", "", 404, ""},
		{"PUT", "/v1/models", "first-token-0123456", "", 405, "method_not_supported"},
		{"POST", "/v1/completions", "first-token-0123456", "https://elsewhere.example", 403, ""},
		{"POST", "/v1/completions", "first-token-0123456", "", 400, ""},
	} {
		headers := []string{"Authorization", "Bearer " + c.token}
		if c.origin != "" {
			headers = append(headers, "Origin", c.origin)
		}
		status, text, _ := r.ask(c.method, c.path, "", headers...)
		var o struct {
			Error struct {
				Message, Type string
				Code          *string
			}
		}
		err := json.Unmarshal([]byte(text), &o)
		code := ""
		if o.Error.Code != nil {
			code = *o.Error.Code
		}
		if err != nil || status != c.status || code != c.code || o.Error.Message == "" || o.Error.Type == "" {
			t.Errorf("%s %s: got %d %s, want %d and the code %q", c.method, c.path, status, text, c.status, c.code)
		}
	}
}

// TestTimeLimits checks that texts wait longer than inferences, unless the limit is given.
func TestTimeLimits(t *testing.T) {
	for _, c := range []struct {
		given     time.Duration
		tokenizer string
		want      time.Duration
	}{
		{0, "", 10 * time.Second}, {0, byteTokenizer, 10 * time.Minute}, {3 * time.Second, "", 3 * time.Second},
		{3 * time.Second, byteTokenizer, 3 * time.Second},
	} {
		l := DefaultLimits()
		l.Timeout, l.Tokenizer = c.given, c.tokenizer
		if got := l.timeout(); got != c.want || l.check() != nil {
			t.Errorf("%v with the tokenizer %q: got %v, %v, want %v", c.given, c.tokenizer, got, l.check(), c.want)
		}
	}
}
