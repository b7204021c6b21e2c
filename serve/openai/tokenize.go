package openai

import (
	"cmp"
	"context"
	"net/http"
	"runtime"

	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// tokenizeMembers are the members of requests for tokens. The names are those of vLLM's server.
var tokenizeMembers = object{
	"model": {}, "prompt": {}, "add_special_tokens": {}, "messages": chatMembers["messages"],
	"continue_final_message": {}, "add_generation_prompt": {}, "chat_template_kwargs": chatMembers["chat_template_kwargs"],
	"return_token_strs": no(noDetail, "false"), "tools": chatMembers["tools"], "tool_choice": chatMembers["tool_choice"],
	"reasoning_effort": {}, "chat_template": no(noTemplate),
	"with_pieces": no(noDetail, "false"), "content": no("want prompt"), "add_special": no("want add_special_tokens"),
	"parse_special": no("names of control tokens are text", "false"),
}

// detokenizeMembers are the members of requests for the text of tokens.
var detokenizeMembers = object{"model": {}, "tokens": {}}

// tokenizeRequest asks for the tokens of a prompt or of messages.
type tokenizeRequest struct {
	chatRequest
	Prompt  *string `json:"prompt"`
	Special *bool   `json:"add_special_tokens"`
}

// wants returns the model that is asked, and its kind: messages are for one that generates texts.
func (r *tokenizeRequest) wants() (name, kind string) {
	if len(r.Messages) > 0 {
		kind = KindText
	}
	return r.Model, kind
}

// tokensAnswer has the tokens of a text.
type tokensAnswer struct {
	Count  int   `json:"count"`
	Most   int   `json:"max_model_len"` // positions of the context
	Tokens []int `json:"tokens"`
}

// detokenizeRequest asks for the text of tokens.
type detokenizeRequest struct {
	Model  string `json:"model"`
	Tokens []int  `json:"tokens"`
}

// textAnswer is the text of tokens.
type textAnswer struct {
	Prompt string `json:"prompt"`
}

func (h *handler) tokenize(w http.ResponseWriter, r *http.Request) {
	body := &tokenizeRequest{}
	h.convert(w, r, tokenizeMembers, body, body.wants, func(l lexer, m *formMaker) (any, error) {
		return body.ids(l, m)
	})
}

func (h *handler) detokenize(w http.ResponseWriter, r *http.Request) {
	body := &detokenizeRequest{}
	h.convert(w, r, detokenizeMembers, body, func() (string, string) { return body.Model, "" }, func(l lexer, m *formMaker) (any, error) {
		return body.text(l, h.server.AnswerBytes()/textShare, m.hold)
	})
}

// lexer is an attachment with a tokenizer.
type lexer interface {
	tokenizer() tokenizer.Tokenizer
	// encode returns the tokens of a text with the control tokens around it.
	encode(s string) ([]int, error)
	// bounds returns the number of positions of the context, and that of tokens.
	bounds() (context, vocabulary int)
}

// converting bounds the texts that are converted at once.
var converting = make(chan struct{}, runtime.GOMAXPROCS(0))

// convert answers a request that needs a tokenizer only: it does not wait for texts that are being generated.
func (h *handler) convert(w http.ResponseWriter, r *http.Request, members object, into any, wants func() (name, kind string),
	do func(l lexer, m *formMaker) (any, error)) {
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
			if !ok || l.tokenizer() == nil {
				return notOfKind(m, "has no tokenizer")
			}
			object, err = do(l, &formMaker{r.Context(), hold, &forms})
			return err
		})
	}
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, http.StatusOK, object)
}

// ids returns the tokens of the prompt, or of the messages.
func (r *tokenizeRequest) ids(l lexer, m *formMaker) (any, error) {
	var tokens []int
	var err error
	switch {
	case r.Prompt != nil && r.Messages != nil:
		return nil, refused("messages", "with prompt, want one of them")
	case r.Prompt != nil && r.Special != nil && !*r.Special:
		tokens, err = l.tokenizer().Encode(*r.Prompt, false)
	case r.Prompt != nil:
		tokens, err = l.encode(*r.Prompt)
	case r.Special != nil:
		return nil, refused("add_special_tokens", "only with prompt")
	case len(r.Messages) == 0:
		return nil, missing("prompt")
	default:
		g, ok := l.(*generator)
		if !ok {
			return nil, refused("messages", "the model computes vectors of texts only: want prompt")
		}
		tokens, err = r.ofMessages(g, m)
	}
	if err != nil {
		return nil, promptError("prompt", err)
	}
	context, _ := l.bounds()
	return tokensAnswer{len(tokens), context, append([]int{}, tokens...)}, nil
}

// ofMessages returns the tokens of the messages.
func (r *tokenizeRequest) ofMessages(g *generator, m *formMaker) ([]int, error) {
	d, u, err := r.conversation()
	if err = cmp.Or(err, r.checkEnd()); err != nil {
		return nil, err
	}
	e, err := r.encode(g, d, u, m, nil)
	return e.prompt, err
}

// textShare is the memory of a text that is answered relative to its bytes: in JSON a byte can take six.
const textShare = 8

// text returns the text of the tokens, of at most a number of bytes. They count toward hold.
func (r *detokenizeRequest) text(l lexer, most int64, hold *serve.Hold) (any, error) {
	if r.Tokens == nil {
		return nil, missing("tokens")
	}
	var b []byte
	for i, id := range r.Tokens {
		if _, n := l.bounds(); id < 0 || id >= n {
			return nil, refused("tokens", "%d at %d, the model has tokens below %d", id, i, n)
		}
		before := cap(b)
		b, _ = l.tokenizer().Append(b, id) // tokens without text are skipped
		if int64(len(b)) > most {
			return nil, refused("tokens", "a text of more than %d bytes; want fewer tokens", most)
		}
		if err := hold.Grow(textShare * int64(cap(b)-before)); err != nil {
			return nil, err
		}
	}
	return textAnswer{string(b)}, nil
}
