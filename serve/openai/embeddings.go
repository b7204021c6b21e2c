package openai

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/text"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// EmbedConfig configures a model that computes vectors of texts.
type EmbedConfig struct {
	Tokenizer tokenizer.Tokenizer
	Options   text.EmbedOptions
	// Warn receives contradictions of the options and the program: see text.Embedder.Warnings. It may be nil.
	Warn func(warning string)
}

// AttachEmbedder returns the function for serve.Config.Attach of a model that computes vectors of texts.
func AttachEmbedder(c EmbedConfig) func(ctx context.Context, p *etrun.Program) (serve.Attachment, error) {
	return func(ctx context.Context, p *etrun.Program) (serve.Attachment, error) {
		e, err := text.LoadEmbedder(ctx, p, c.Tokenizer, c.Options)
		if err != nil {
			return nil, err
		}
		for _, w := range e.Warnings() {
			if c.Warn != nil {
				c.Warn(w)
			}
		}
		return &embedder{e}, nil
	}
}

// embedder is the attachment: a model that computes vectors of texts.
type embedder struct{ *text.Embedder }

// Try computes the vector of a text.
func (e *embedder) Try(ctx context.Context) error {
	tokens := make([]int, 1)
	if i := e.Info(); i.Exact {
		tokens = make([]int, i.Context)
	}
	return e.EmbedTokens(ctx, [][]int{tokens}, func([]float32) error { return nil })
}

func (e *embedder) tokenizer() tokenizer.Tokenizer { return e.Tokenizer() }
func (e *embedder) encode(s string) ([]int, error) { return e.Encode(s) }

func (e *embedder) bounds() (context, vocabulary int) {
	i := e.Info()
	return i.Context, i.Vocabulary
}

// maxInputs is the maximum number of texts of a request for vectors.
const maxInputs = 2048

// embeddingMembers are the members of requests for vectors.
var embeddingMembers = object{
	"model": {}, "input": {most: maxInputs}, "encoding_format": {}, "dimensions": {},
	"user": {use: inert}, "request_id": {use: inert}, "keep_alive": {use: inert}, "priority": common["priority"],
	"truncate_prompt_tokens": {}, "truncate": no("want truncate_prompt_tokens", "false", `"NONE"`),
	"add_special_tokens": no("a text has the model's control tokens around it", "true"),
	"normalize":          no("see --normalize of the server"), "embd_normalize": no("see --normalize of the server"),
	"input_type": no("put the text of the model's prompt before the input"), "prompt": no("want input"), "content": no("want input"),
	"messages": no("want input"),
}

// embeddingRequest asks for the vectors of texts.
type embeddingRequest struct {
	Model      string  `json:"model"`
	Input      inputs  `json:"input"`
	Encoding   *string `json:"encoding_format"`
	Dimensions *int    `json:"dimensions"`
	Truncate   *int    `json:"truncate_prompt_tokens"`
}

// inputs are the texts of a request.
type inputs []prompt

// UnmarshalJSON accepts a string, a list of tokens, and a list of these.
func (p *inputs) UnmarshalJSON(b []byte) error {
	return readPrompts((*[]prompt)(p), b, "input", maxInputs)
}

// check refuses values that no model accepts.
func (r *embeddingRequest) check() error {
	switch {
	case r.Input == nil:
		return missing("input")
	case len(r.Input) == 0:
		return refused("input", "an empty list, want a text")
	case r.Encoding != nil && *r.Encoding != "float" && *r.Encoding != "base64":
		return refused("encoding_format", "%s, want float or base64", quote(*r.Encoding))
	case r.Dimensions != nil && *r.Dimensions < 1:
		return refused("dimensions", "%d, want 1 or more", *r.Dimensions)
	case r.Truncate != nil && (*r.Truncate < -1 || *r.Truncate == 0):
		return refused("truncate_prompt_tokens", "%d, want 1 or more, or -1 for the context of the model", *r.Truncate)
	}
	return nil
}

// vectors is the answer to a request for vectors, while it is computed.
type vectors struct {
	*embeddingRequest
	h     *handler
	hold  *serve.Hold
	items pile
	usage embeddingUsage
	next  []byte // the item that is being written
}

// embeddingUsage counts tokens.
type embeddingUsage struct {
	Prompt int `json:"prompt_tokens"`
	Total  int `json:"total_tokens"`
}

func (h *handler) embeddings(w http.ResponseWriter, r *http.Request) {
	v := &vectors{embeddingRequest: &embeddingRequest{}, h: h}
	body, err := h.read(w, r, embeddingMembers, v.embeddingRequest, 3*decodedShare) // with the tokens
	defer body.Release()
	v.hold = body.Beside()
	defer v.hold.Release()
	if err == nil {
		err = v.check()
	}
	var m *serve.Model
	if err == nil {
		m, err = h.find(v.Model, KindVector)
	}
	if err == nil {
		err = m.Use(r.Context(), func(ctx context.Context, x serve.Attachment, l *serve.Lease) error {
			e, ok := x.(*embedder)
			if !ok {
				return notOfKind(m, "generates texts, and computes no vectors of them")
			}
			return v.compute(ctx, e, m.Name(), l)
		})
	}
	h.server.WriteBy(w) // the request may have waited longer than the limit
	if err != nil {
		fail(w, err)
		return
	}
	usage, _ := json.Marshal(v.usage) // cannot fail
	v.items.write(w, http.StatusOK, `{"object":"list","data":[`, fmt.Sprintf(`],"model":%s,"usage":%s}`, quoted(m.Name()), usage))
}

// compute computes the vectors of all texts, after it has checked all of them. Between calls of the program those of other requests may be
// computed.
func (v *vectors) compute(ctx context.Context, e *embedder, model string, l *serve.Lease) error {
	n, err := v.size(e.Info().Dimensions)
	if err != nil {
		return err
	}
	list, err := v.tokens(ctx, e)
	if err != nil {
		return err
	}
	i := 0
	for part := range slices.Chunk(list, e.Info().Rows) {
		if i > 0 {
			if err := l.Yield(ctx); err != nil {
				return err
			}
		}
		err := e.EmbedTokens(ctx, part, func(vector []float32) error {
			l.Began()
			if v.h.options.Embedded != nil {
				v.h.options.Embedded(model, len(list[i]))
			}
			i++
			return v.add(i-1, shortened(vector, n))
		})
		if err != nil {
			return fault(ctx, err, "")
		}
	}
	return nil
}

// size returns the dimensions of the vectors, and refuses an answer that would be too large: the shortest number has a byte
// and a comma.
func (v *vectors) size(dimensions int) (int, error) {
	n := dimensions
	if v.Dimensions != nil {
		n = *v.Dimensions
	}
	if n > dimensions {
		return 0, refused("dimensions", "%d, the vectors of the model have %d", n, dimensions)
	}
	if size, most := int64(len(v.Input))*int64(n)*2, v.h.server.AnswerBytes(); size > most {
		return 0, refused("input", "%d vectors of %d numbers: an answer of more than %d bytes, at most %d are allowed; "+
			"want fewer texts in a request",
			len(v.Input), n, size, most)
	}
	return n, nil
}

// tokens returns the tokens of the texts.
func (v *vectors) tokens(ctx context.Context, e *embedder) ([][]int, error) {
	most, err := v.longest(e.Info().Context)
	if err != nil {
		return nil, err
	}
	list := make([][]int, len(v.Input))
	for i, p := range v.Input {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		list[i], err = p.upTo(most, e)
		if o, ok := errors.AsType[*text.OptionError](err); ok && most > 0 {
			return nil, optionError("truncate_prompt_tokens", o)
		}
		if err == nil {
			err = e.Check(list[i])
		}
		if err != nil {
			if len(v.Input) > 1 {
				err = &listError{i, err}
			}
			return nil, promptError("input", err)
		}
		v.usage.Prompt += len(list[i])
	}
	v.usage.Total = v.usage.Prompt
	return list, nil
}

// longest returns the number of tokens to which longer texts are shortened, 0 for none.
func (v *vectors) longest(context int) (int, error) {
	switch {
	case v.Truncate == nil:
		return 0, nil
	case *v.Truncate > context:
		return 0, refused("truncate_prompt_tokens", "%d, the context of the model has %d tokens", *v.Truncate, context)
	case *v.Truncate < 0:
		return context, nil
	}
	return *v.Truncate, nil
}

// upTo returns the tokens of a text, the first ones if there are more than most and that is not 0.
func (p *prompt) upTo(most int, e *embedder) ([]int, error) {
	switch {
	case p.text == nil && most > 0:
		return p.tokens[:min(most, len(p.tokens))], nil
	case p.text == nil:
		return p.tokens, nil
	case most > 0:
		return e.EncodeUpTo(*p.text, most)
	}
	return e.Encode(*p.text)
}

// listError is the error of one of several texts.
type listError struct {
	index int
	err   error
}

func (e *listError) Error() string { return fmt.Sprintf("input[%d]: %v", e.index, e.err) }
func (e *listError) Unwrap() error { return e.err }

// unitTolerance is how much the length of a vector may differ from 1 by rounding.
const unitTolerance = 1e-3

// shortened returns the first n numbers of a vector. One of length 1 has it again.
func shortened(vector []float32, n int) []float32 {
	if n == len(vector) {
		return vector
	}
	square := 0.0
	for _, x := range vector {
		square += float64(x) * float64(x)
	}
	vector = vector[:n]
	if math.Abs(math.Sqrt(square)-1) < unitTolerance {
		text.Normalize(vector)
	}
	return vector
}

// add adds a vector to the answer.
func (v *vectors) add(index int, vector []float32) error {
	b := v.next[:0]
	if index > 0 {
		b = append(b, ',')
	}
	b = fmt.Appendf(b, `{"object":"embedding","index":%d,"embedding":`, index)
	if v.Encoding != nil && *v.Encoding == "base64" {
		b = appendBase64(b, vector)
	} else {
		b = appendNumbers(b, vector)
	}
	v.next = append(b, '}')
	if err := v.items.add(v.hold, string(v.next)); err != nil {
		return err
	}
	if most := v.h.server.AnswerBytes(); v.hold.Size() > most {
		return refused("input", "the answer exceeds %d bytes; want fewer texts in a request, or the encoding_format base64", most)
	}
	return nil
}

// appendBase64 appends the numbers as float32 in the order of little-endian machines.
func appendBase64(b []byte, vector []float32) []byte {
	raw := make([]byte, 0, 4*len(vector))
	for _, x := range vector {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	return append(base64.StdEncoding.AppendEncode(append(b, '"'), raw), '"')
}

// appendNumbers appends the numbers as a list.
func appendNumbers(b []byte, vector []float32) []byte {
	for i, x := range vector {
		c := byte(',')
		if i == 0 {
			c = '['
		}
		b = strconv.AppendFloat(append(b, c), float64(x), 'g', -1, 32)
	}
	return append(b, ']')
}
