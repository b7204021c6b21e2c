package load

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Texts sends requests for texts in OpenAI's API, which are answered as streams of events.
type Texts struct {
	client    *Client
	requests  []*request
	maxEvents int // with text, of an answer
}

// TextOptions are the members of requests for texts.
type TextOptions struct {
	Model     string
	MaxTokens int
	Chat      bool // messages instead of a prompt
	IgnoreEOS bool // go on until MaxTokens, on servers that have the member ignore_eos
}

// textRequest is the body of a request.
type textRequest struct {
	Model       string    `json:"model"`
	Prompt      string    `json:"prompt,omitempty"`
	Messages    []message `json:"messages,omitempty"`
	MaxTokens   int       `json:"max_tokens"`
	Temperature float64   `json:"temperature"`
	Stream      bool      `json:"stream"`
	Options     struct {
		Usage bool `json:"include_usage"`
	} `json:"stream_options"`
	IgnoreEOS bool `json:"ignore_eos,omitempty"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// NewTexts returns a sender of requests with prompts, which are sent in turn.
func (c *Client) NewTexts(prompts []string, o TextOptions) (*Texts, error) {
	s := &Texts{client: c, maxEvents: 2*min(o.MaxTokens, maxEvents/2) + fewEvents}
	for _, prompt := range prompts {
		t := textRequest{Model: o.Model, MaxTokens: o.MaxTokens, Stream: true, IgnoreEOS: o.IgnoreEOS}
		t.Options.Usage = true
		path := "/v1/completions"
		if o.Chat {
			path, t.Messages = "/v1/chat/completions", []message{{"user", prompt}}
		} else {
			t.Prompt = prompt
		}
		body, err := json.Marshal(t)
		if err != nil {
			return nil, err
		}
		s.requests = append(s.requests, &request{method: http.MethodPost, path: path, body: body})
	}
	return s, nil
}

// Bytes is the size of the largest request.
func (s *Texts) Bytes() (n int) {
	for _, r := range s.requests {
		n = max(n, len(r.body))
	}
	return n
}

// Send implements [Sender].
func (s *Texts) Send(ctx context.Context, n int64) (a Answer, err error) {
	err = s.client.exchange(ctx, s.requests[n%int64(len(s.requests))], func(r io.Reader) error {
		a, err = readStream(r, s.maxEvents)
		return err
	})
	return a, err
}

// Bounds of a stream.
const (
	maxEvent  = 1 << 20
	maxEvents = 1 << 17
	fewEvents = 64 // besides two for each token that was asked for
)

// event is a part of a stream.
type event struct {
	Choices []struct {
		Text  string
		Delta struct {
			Content, Reasoning string
			Thoughts           string          `json:"reasoning_content"`
			Calls              json.RawMessage `json:"tool_calls"`
		}
	}
	Usage *struct {
		Completion int `json:"completion_tokens"`
	}
	Error json.RawMessage
}

// hasText reports whether a part of the text is in the event.
func (e *event) hasText() bool {
	for i := range e.Choices {
		if d := &e.Choices[i].Delta; e.Choices[i].Text+d.Content+d.Reasoning+d.Thoughts != "" || isSet(d.Calls) {
			return true
		}
	}
	return false
}

// isSet reports whether a member is there, and not null.
func isSet(v json.RawMessage) bool { return len(v) > 0 && string(v) != "null" }

// readStream reads the events of a text to their end, and at most so many with text. Without usage each event counts as a token.
func readStream(r io.Reader, most int) (a Answer, err error) {
	lines, counted := bufio.NewScanner(r), false
	lines.Buffer(make([]byte, 0, 4096), maxEvent)
	for n := 0; lines.Scan(); n++ {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		if !ok {
			continue // a comment, or the empty line after an event
		}
		if data = bytes.TrimSpace(data); string(data) == "[DONE]" {
			if !counted {
				a.Tokens = len(a.Events)
			}
			_, _ = io.CopyN(io.Discard, r, maxRest) // the text is complete; a connection that is not read to the end is not used again
			return a, nil
		}
		now, e := time.Now(), event{}
		if err := json.Unmarshal(data, &e); err != nil {
			return a, &Failure{Bad, fmt.Errorf("event %d: %w", n, err)}
		}
		if isSet(e.Error) {
			return a, &Failure{Bad, fmt.Errorf("event %d: %s", n, text(data))}
		}
		if e.hasText() {
			if len(a.Events) == most {
				return a, &Failure{Bad, fmt.Errorf("more than %d events with text", most)}
			}
			a.Events = append(a.Events, now)
		}
		if e.Usage != nil {
			a.Tokens, counted = max(e.Usage.Completion, 0), true
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return a, &Failure{Bad, fmt.Errorf("an event of more than %d bytes", maxEvent)}
	case err != nil:
		return a, err
	}
	return a, &Failure{Closed, errors.New("the stream ended before data: [DONE]")}
}
