package answer

import (
	"cmp"
	"math"
	"strings"

	"github.com/etrun-go/etrun/serve/openai/internal/toolcall"
	"github.com/etrun-go/etrun/text"
)

// candidate is a token with its probability.
type candidate struct {
	Token   string  `json:"token"`
	LogProb float64 `json:"logprob"`
	Bytes   []int   `json:"bytes"`

	id int
}

// tokenItem is a generated token, and the most likely ones.
type tokenItem struct {
	candidate
	Top []candidate `json:"top_logprobs"` // not nil
}

// items returns tokens with their probabilities, nil if they were not asked for.
func (a *answerer) items(tokens []text.Token) (list []tokenItem) {
	if !a.want.LogProbs {
		return nil
	}
	for _, t := range tokens {
		item := tokenItem{a.candidate(t.ID, t.LogProb), make([]candidate, len(t.Top))}
		for i, c := range t.Top {
			item.Top[i] = a.candidate(c.ID, c.LogProb)
		}
		list = append(list, item)
	}
	return list
}

func (a *answerer) candidate(id int, p float32) candidate {
	b, _ := a.tokenizer.Append(nil, id) // unknown tokens have no text
	c := candidate{Token: string(b), LogProb: max(float64(p), -math.MaxFloat32), Bytes: make([]int, len(b)), id: id}
	for i, x := range b {
		c.Bytes[i] = int(x)
	}
	return c
}

// CompletionForm is the form of completions.
type CompletionForm struct{}

// completionChoice is a text, or a part of it.
type completionChoice struct {
	Index    int           `json:"index"`
	Text     string        `json:"text"`
	LogProbs *completionLP `json:"logprobs"`
	Finish   *string       `json:"finish_reason"`
}

// completionLP holds the probabilities of a completion's tokens.
type completionLP struct {
	Tokens  []string             `json:"tokens"`
	Values  []*float64           `json:"token_logprobs"` // nil for the first token of a text
	Top     []map[string]float64 `json:"top_logprobs"`   // likewise
	Offsets []int                `json:"text_offset"`    // in characters
}

func (CompletionForm) Prefix() string            { return "cmpl" }
func (CompletionForm) objects() (string, string) { return "text_completion", "text_completion" }

// probabilities returns those of the next tokens of a choice, nil if they were not asked for.
func (CompletionForm) probabilities(c *choice, t []tokenItem) *completionLP {
	if t == nil {
		return nil
	}
	l := &completionLP{}
	for i := range t {
		l.Tokens, l.Offsets = append(l.Tokens, t[i].Token), append(l.Offsets, c.offsets.Next(t[i].id))
		if math.IsNaN(t[i].LogProb) {
			l.Values, l.Top = append(l.Values, nil), append(l.Top, nil)
			continue
		}
		l.Values, l.Top = append(l.Values, &t[i].LogProb), append(l.Top, t[i].likely())
	}
	return l
}

// likely returns the most likely tokens and the token itself, which is one more than were asked for unless it is among them. Of tokens
// with the same text the most likely one counts.
func (t *tokenItem) likely() map[string]float64 {
	top := make(map[string]float64, len(t.Top)+1)
	for _, x := range append(t.Top, t.candidate) {
		name := strings.ToValidUTF8(x.Token, "\uFFFD") // as package json writes it
		if p, ok := top[name]; !ok || p < x.LogProb {
			top[name] = x.LogProb
		}
	}
	return top
}

func (f CompletionForm) collect(c *choice, t []tokenItem, add func(list int, object any) error) error {
	l := f.probabilities(c, t)
	if l == nil {
		return nil
	}
	for i := range l.Tokens {
		if err := cmp.Or(add(0, l.Tokens[i]), add(1, l.Values[i]), add(2, l.Top[i]), add(3, l.Offsets[i])); err != nil {
			return err
		}
	}
	return nil
}

func (CompletionForm) layout() *layout {
	return &layout{`"text":"`, `",`, []string{`"logprobs":{"tokens":[`, `],"token_logprobs":[`, `],"top_logprobs":[`, `],"text_offset":[`},
		`]}`}
}

func (f CompletionForm) chunk(c *choice, s string, tokens []tokenItem, _ bool, finish *string) any {
	return completionChoice{c.index, s, f.probabilities(c, tokens), finish}
}

// ChatForm is the form of chat completions.
type ChatForm struct{}

// chatChunk is a part of a reply.
type chatChunk struct {
	Index    int       `json:"index"`
	Delta    chatDelta `json:"delta"`
	LogProbs *chatLP   `json:"logprobs"`
	Finish   *string   `json:"finish_reason"`
}

type chatDelta struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`

	Reasoning *string          `json:"reasoning_content,omitempty"`
	Calls     []*toolcall.Call `json:"tool_calls,omitempty"`
}

// chatLP holds the probabilities of a reply's tokens.
type chatLP struct {
	Content []tokenItem `json:"content"`
	Refusal []tokenItem `json:"refusal"` // always nil
}

func (ChatForm) Prefix() string            { return "chatcmpl" }
func (ChatForm) objects() (string, string) { return "chat.completion", "chat.completion.chunk" }

func chatList(tokens []tokenItem) *chatLP {
	if tokens == nil {
		return nil
	}
	return &chatLP{Content: tokens}
}

func (ChatForm) collect(_ *choice, t []tokenItem, add func(list int, object any) error) error {
	for i := range t {
		if err := add(0, &t[i]); err != nil {
			return err
		}
	}
	return nil
}

func (ChatForm) layout() *layout {
	return &layout{`"message":{"role":"assistant","content":"`, `","refusal":null},`, []string{`"logprobs":{"content":[`}, `],"refusal":null}`}
}

func (ChatForm) chunk(c *choice, s string, tokens []tokenItem, begin bool, finish *string) any {
	chunk := chatChunk{Index: c.index, LogProbs: chatList(tokens), Finish: finish}
	if begin {
		chunk.Delta.Role = "assistant"
	}
	if finish == nil {
		chunk.Delta.Content = &s
	}
	return chunk
}
