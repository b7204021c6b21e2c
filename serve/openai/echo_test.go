package openai_test

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/serve"
)

// scoredChoice is a choice with the probabilities of its tokens.
type scoredChoice struct {
	Text     string
	Finish   string `json:"finish_reason"`
	LogProbs struct {
		Tokens  []string
		Values  []*float64           `json:"token_logprobs"`
		Top     []map[string]float64 `json:"top_logprobs"`
		Offsets []int                `json:"text_offset"`
	}
}

// scored sends a completion and returns its choices and the number of tokens of its prompts.
func scored(t *testing.T, p *peer, members string) ([]scoredChoice, int) {
	t.Helper()
	status, body := ask(t, p, "POST", "/v1/completions", `{"model":"lm","temperature":0,"ignore_eos":true,`+members+`}`)
	var answer struct {
		Choices []scoredChoice
		Usage   struct {
			Prompt     int `json:"prompt_tokens"`
			Completion int `json:"completion_tokens"`
			Details    struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
	}
	if status != 200 || json.Unmarshal(body, &answer) != nil {
		t.Fatalf("%s: %d %s", members, status, body)
	}
	if answer.Usage.Details.Cached != 0 && strings.Contains(members, `"echo":true,"logprobs"`) {
		t.Errorf("%s: %d tokens cached, want none: all are computed", members, answer.Usage.Details.Cached)
	}
	return answer.Choices, answer.Usage.Prompt
}

// checkScored checks the lists of a choice: as many as there are tokens, places in the text, and candidates.
func checkScored(t *testing.T, c scoredChoice, tokens int) {
	t.Helper()
	l := c.LogProbs
	if len(l.Tokens) != tokens || len(l.Values) != tokens || len(l.Top) != tokens || len(l.Offsets) != tokens {
		t.Fatalf("%q: %d tokens, %d values, %d lists of candidates, %d places, want %d", c.Text, len(l.Tokens), len(l.Values), len(l.Top),
			len(l.Offsets), tokens)
	}
	for i, at := range l.Offsets {
		switch rest := []rune(c.Text); {
		case at < 0 || at > len(rest) || i > 0 && at < l.Offsets[i-1]:
			t.Errorf("%q: token %d is at %d, the one before at %d", c.Text, i, at, l.Offsets[max(i-1, 0)])
		case !strings.Contains(l.Tokens[i], "\uFFFD") && !strings.HasPrefix(string(rest[at:]), l.Tokens[i]):
			t.Errorf("%q: token %q is at %d, where the text goes on with %q", c.Text, l.Tokens[i], at, string(rest[at:]))
		}
		if i > 0 {
			for name, p := range l.Top[i] {
				if p > 0 {
					t.Errorf("%q: the candidate %q has the log-probability %g", c.Text, name, p)
				}
			}
			if p, ok := l.Top[i][l.Tokens[i]]; !ok || p < *l.Values[i] {
				t.Errorf("%q: the candidates %v lack token %q with %g", c.Text, l.Top[i], l.Tokens[i], *l.Values[i])
			}
		}
	}
	if l.Values[0] != nil || l.Top[0] != nil {
		t.Errorf("%q: the first token has the probability %v and the candidates %v", c.Text, l.Values[0], l.Top[0])
	}
}

// The probabilities of a prompt's tokens are those with which they were generated.
func TestEchoedProbabilities(t *testing.T) {
	p := newPeer(t, serve.Config{})
	const prompt = "éaé 日 b"
	generated, n := scored(t, p, `"prompt":"`+prompt+`","max_tokens":7,"logprobs":2,"guided_regex":"[a-z]{7}"`)
	text := generated[0].Text
	ids := tokensOf(t, p, prompt+text)
	if len(ids) != n+7 {
		t.Fatalf("%q has %d tokens, want %d", prompt+text, len(ids), n+7)
	}
	list, _ := json.Marshal(ids)
	for members, more := range map[string]int{
		`"prompt":` + quotedText(prompt+text) + `,"max_tokens":0`: 0, `"prompt":` + string(list) + `,"max_tokens":0`: 0,
		`"prompt":[` + string(list) + `],"max_tokens":1`: 1, `"prompt":` + quotedText(prompt+text) + `,"max_tokens":3,"n":2`: 3,
	} {
		choices, _ := scored(t, p, members+`,"echo":true,"logprobs":2`)
		for _, c := range choices {
			if !strings.HasPrefix(c.Text, prompt+text) || c.Finish != "length" || more == 0 && c.Text != prompt+text {
				t.Errorf("%s: got %q, %s", members, c.Text, c.Finish)
			}
			checkScored(t, c, len(ids)+more)
			for i, want := range generated[0].LogProbs.Values {
				if got := *c.LogProbs.Values[n+i]; math.Abs(got-*want) > 1e-4 {
					t.Errorf("%s: token %d of the text has %g, generated with %g", members, i, got, *want)
				}
			}
		}
	}
}

// tokensOf returns the tokens of a text.
func tokensOf(t *testing.T, p *peer, text string) []int {
	t.Helper()
	_, body := ask(t, p, "POST", "/tokenize", `{"model":"lm","prompt":`+quotedText(text)+`}`)
	var answer struct{ Tokens []int }
	must(t, json.Unmarshal(body, &answer))
	return answer.Tokens
}

func quotedText(s string) string {
	b, _ := json.Marshal(s) // cannot fail
	return string(b)
}

// A stream has the same lists as one answer.
func TestEchoedStream(t *testing.T) {
	p := newPeer(t, serve.Config{})
	const members = `"prompt":["é a","bc"],"max_tokens":4,"echo":true,"logprobs":1,"n":2`
	want, _ := scored(t, p, members)
	got := make([]scoredChoice, len(want))
	_, body := ask(t, p, "POST", "/v1/completions", `{"model":"lm","temperature":0,"ignore_eos":true,"stream":true,`+members+`}`)
	for line := range strings.Lines(string(body)) {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok || strings.HasPrefix(data, "[DONE]") {
			continue
		}
		var event struct {
			Choices []struct {
				scoredChoice
				Index int
			}
		}
		must(t, json.Unmarshal([]byte(data), &event))
		for _, c := range event.Choices {
			to := &got[c.Index]
			to.Text, to.Finish = to.Text+c.Text, to.Finish+c.Finish
			a, b := &to.LogProbs, &c.LogProbs
			a.Tokens, a.Values, a.Top, a.Offsets = append(a.Tokens, b.Tokens...), append(a.Values, b.Values...), append(a.Top, b.Top...),
				append(a.Offsets, b.Offsets...)
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the stream has %+v, one answer %+v", got, want)
	}
}

// Without tokens to generate an answer has the prompt only, or nothing; -1 is the rest of the context.
func TestLimitsOfTokens(t *testing.T) {
	p := newPeer(t, serve.Config{})
	for members, want := range map[string]string{`"max_tokens":0`: "", `"max_tokens":0,"echo":true`: "abc", `"max_tokens":0,"n":2`: ""} {
		choices, n := scored(t, p, `"prompt":"abc",`+members)
		for _, c := range choices {
			if c.Text != want || c.Finish != "length" || n == 0 {
				t.Errorf("%s: got %q, %s, for %d tokens", members, c.Text, c.Finish, n)
			}
		}
	}
	for path, members := range map[string]string{"/v1/completions": `"prompt":"abc","max_tokens":-1`,
		"/v1/chat/completions": `"messages":[{"role":"user","content":"abc"}],"max_completion_tokens":-1`} {
		status, body := ask(t, p, "POST", path, `{"model":"lm","temperature":0,"ignore_eos":true,`+members+`}`)
		var answer struct {
			Usage struct {
				Total int `json:"total_tokens"`
			}
		}
		must(t, json.Unmarshal(body, &answer))
		if status != 200 || answer.Usage.Total < 32 {
			t.Errorf("%s: %d, %d tokens, want the context", path, status, answer.Usage.Total)
		}
	}
}

// An empty list of tokens is refused in its own words.
func TestEmptyPrompts(t *testing.T) {
	p := newPeer(t, serve.Config{})
	for list, want := range map[string]string{`[]`: "prompt: an empty list", `[[]]`: "prompt: element 0 is an empty list",
		`["a",[]]`: "element 1"} {
		if status, body := ask(t, p, "POST", "/v1/completions", fmt.Sprintf(`{"model":"lm","prompt":%s}`, list)); status != 400 ||
			!strings.Contains(string(body), want) {
			t.Errorf("%s: %d %s, want 400 and %s", list, status, body, want)
		}
	}
}
