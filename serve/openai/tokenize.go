package openai

import (
	"cmp"
	"context"
	"net/http"
	"runtime"

	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai/internal/answer"
	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/serve/openai/internal/forms"
	"github.com/etrun-go/etrun/serve/openai/internal/requests"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// tokensAnswer has the tokens of a text.
type tokensAnswer struct {
	Count  int   `json:"count"`
	Most   int   `json:"max_model_len"` // positions of the context
	Tokens []int `json:"tokens"`
}

// textAnswer is the text of tokens, by two names.
type textAnswer struct {
	Prompt  string `json:"prompt"`
	Content string `json:"content"`
}

func (h *handler) tokenize(w http.ResponseWriter, r *http.Request) {
	body := &requests.Tokenize{}
	h.convert(w, r, requests.TokenizeMembers, body, func() (string, string) {
		if len(body.Messages) > 0 { // for one that generates texts
			return body.Model, KindText
		}
		return body.Model, ""
	}, func(l lexer, hold *serve.Reservation) (any, error) {
		return idsOf(body, l, forms.NewMaker(r.Context(), hold))
	})
}

func (h *handler) detokenize(w http.ResponseWriter, r *http.Request) {
	body := &requests.Detokenize{}
	h.convert(w, r, requests.DetokenizeMembers, body, func() (string, string) { return body.Model, "" }, func(l lexer, hold *serve.Reservation) (any, error) {
		return textOfTokens(body, l, h.server.AnswerBytes()/textShare, hold)
	})
}

// lexer is an attachment with a tokenizer.
type lexer interface {
	Tokenizer() tokenizer.Tokenizer
	// Encode returns the tokens of a text with the control tokens around it.
	Encode(s string) ([]int, error)
	// Bounds returns the number of positions of the context, and that of tokens.
	Bounds() (context, vocabulary int)
}

// converting bounds the texts that are converted at once.
var converting = make(chan struct{}, runtime.GOMAXPROCS(0))

// convert answers a request that needs a tokenizer only: it does not wait for texts that are being generated.
func (h *handler) convert(w http.ResponseWriter, r *http.Request, members requests.Object, into any, wants func() (name, kind string),
	do func(l lexer, hold *serve.Reservation) (any, error)) {
	hold, err := h.read(w, r, members, into, 3*decodedShare) // with the tokens, and their JSON
	defer hold.Release()
	var m *serve.Model
	if err == nil {
		m, err = h.find(wants())
	}
	var object any
	if err == nil {
		err = m.Peek(r.Context(), func(x serve.Attachment) (err error) {
			select {
			case converting <- struct{}{}:
				defer func() { <-converting }()
			case <-r.Context().Done():
				return context.Cause(r.Context())
			}
			l, ok := x.(lexer)
			if !ok || l.Tokenizer() == nil {
				return notOfKind(m, "has no tokenizer")
			}
			object, err = do(l, hold)
			return err
		})
	}
	if err != nil {
		styleOf(into).Fail(w, err)
		return
	}
	answer.JSON(w, http.StatusOK, object)
}

// idsOf returns the tokens of the prompt, or of the messages.
func idsOf(r *requests.Tokenize, l lexer, m *forms.Maker) (any, error) {
	var tokens []int
	var err error
	switch {
	case r.Content != nil && (r.Prompt != nil || r.Messages != nil):
		return nil, fault.Refused("content", "with prompt or messages, want one of them")
	case r.Content != nil && r.ContentSpecial:
		tokens, err = l.Encode(*r.Content)
	case r.Content != nil:
		tokens, err = l.Tokenizer().Encode(*r.Content, false)
	case r.Prompt != nil && r.Messages != nil:
		return nil, fault.Refused("messages", "with prompt, want one of them")
	case r.Prompt != nil && r.Special != nil && !*r.Special:
		tokens, err = l.Tokenizer().Encode(*r.Prompt, false)
	case r.Prompt != nil:
		tokens, err = l.Encode(*r.Prompt)
	case r.Special != nil:
		return nil, fault.Refused("add_special_tokens", "only with prompt")
	case len(r.Messages) == 0:
		return nil, fault.Missing("prompt")
	default:
		g, ok := l.(*generator)
		if !ok {
			return nil, fault.Refused("messages", "the model computes vectors of texts only: want prompt")
		}
		tokens, err = idsOfMessages(r, g, m)
	}
	if err != nil {
		return nil, fault.OfPrompt("prompt", err)
	}
	context, _ := l.Bounds()
	return tokensAnswer{len(tokens), context, append([]int{}, tokens...)}, nil
}

// idsOfMessages returns the tokens of the messages.
func idsOfMessages(r *requests.Tokenize, g *generator, m *forms.Maker) ([]int, error) {
	d, u, err := r.Conversation()
	if err = cmp.Or(err, r.CheckEnd(), r.TextOnly()); err != nil {
		return nil, err
	}
	e, err := r.Encode(context.Background(), g.prompts(), d, u, m, nil)
	return e.Prompt, err
}

// textShare is the memory of a text that is answered twice relative to its bytes: in JSON a byte can take six.
const textShare = 16

// textOfTokens returns the text of the tokens, of at most a number of bytes. They count toward hold.
func textOfTokens(r *requests.Detokenize, l lexer, most int64, hold *serve.Reservation) (any, error) {
	if r.Tokens == nil {
		return nil, fault.Missing("tokens")
	}
	var b []byte
	for i, id := range r.Tokens {
		if _, n := l.Bounds(); id < 0 || id >= n {
			return nil, fault.Refused("tokens", "%d at %d, the model has tokens below %d", id, i, n)
		}
		before := cap(b)
		b, _ = l.Tokenizer().Append(b, id) // tokens without text are skipped
		if int64(len(b)) > most {
			return nil, fault.Refused("tokens", "a text of more than %d bytes; want fewer tokens", most)
		}
		if err := hold.Grow(textShare * int64(cap(b)-before)); err != nil {
			return nil, err
		}
	}
	return textAnswer{string(b), string(b)}, nil
}
