package embed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai/internal/answer"
	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/serve/openai/internal/requests"
	"github.com/etrun-go/etrun/text"
)

// Vectors is the answer to a request for vectors, while it is computed.
type Vectors struct {
	*requests.Embedding
	Most    int64                          // bytes of the answer
	Observe func(model string, tokens int) // may be nil
	Hold    *serve.Reservation
	Each    func(vector []float32) error // what becomes of a vector, valid during the call; nil for OpenAI's answer
	items   answer.List
	usage   embeddingUsage
}

// embeddingUsage counts tokens.
type embeddingUsage struct {
	Prompt int `json:"prompt_tokens"`
	Total  int `json:"total_tokens"`
}

// Compute computes the vectors of all texts, after it has checked all of them. Between calls of the program those of other requests may be
// computed.
func (v *Vectors) Compute(ctx context.Context, e *Model, model string, l *serve.Lease) error {
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
			if v.Observe != nil {
				v.Observe(model, len(list[i]))
			}
			i++
			return v.answer(i-1, shortened(vector, n))
		})
		if err != nil {
			return fault.Of(ctx, err, "")
		}
	}
	return nil
}

// size returns the dimensions of the vectors, and refuses an answer that would be too large: the shortest number has a byte
// and a comma.
func (v *Vectors) size(dimensions int) (int, error) {
	n := dimensions
	if v.Dimensions != nil {
		n = *v.Dimensions
	}
	if n > dimensions {
		return 0, fault.Refused("dimensions", "%d, the vectors of the model have %d", n, dimensions)
	}
	if size := int64(len(v.Input)) * int64(n) * 2; size > v.Most {
		return 0, fault.Refused("input", "%d vectors of %d numbers: an answer of more than %d bytes, at most %d are allowed; "+
			"want fewer texts in a request",
			len(v.Input), n, size, v.Most)
	}
	return n, nil
}

// tokens returns the tokens of the texts.
func (v *Vectors) tokens(ctx context.Context, e *Model) ([][]int, error) {
	most, err := v.longest(e.Info().Context)
	if err != nil {
		return nil, err
	}
	list := make([][]int, len(v.Input))
	for i, p := range v.Input {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		list[i], err = firstTokens(&p, most, e)
		if o, ok := errors.AsType[*text.OptionError](err); ok && most > 0 {
			return nil, fault.OfOption("truncate_prompt_tokens", o)
		}
		if err == nil {
			err = e.Check(list[i])
		}
		if err != nil {
			if len(v.Input) > 1 {
				err = &listError{i, err}
			}
			return nil, fault.OfPrompt("input", err)
		}
		v.usage.Prompt += len(list[i])
	}
	v.usage.Total = v.usage.Prompt
	return list, nil
}

// longest returns the number of tokens to which longer texts are shortened, 0 for none.
func (v *Vectors) longest(context int) (int, error) {
	switch {
	case v.Truncate == nil:
		return 0, nil
	case *v.Truncate > context:
		return 0, fault.Refused("truncate_prompt_tokens", "%d, the context of the model has %d tokens", *v.Truncate, context)
	case *v.Truncate < 0:
		return context, nil
	}
	return *v.Truncate, nil
}

// firstTokens returns the tokens of a text, the first ones if there are more than most and that is not 0.
func firstTokens(p *requests.Prompt, most int, e *Model) ([]int, error) {
	switch {
	case p.Text == nil && most > 0:
		return p.Tokens[:min(most, len(p.Tokens))], nil
	case p.Text == nil:
		return p.Tokens, nil
	case most > 0:
		return e.EncodeUpTo(*p.Text, most)
	}
	return e.Encode(*p.Text)
}

// listError is the error of one of several texts.
type listError struct {
	index int
	err   error
}

func (e *listError) Error() string { return fmt.Sprintf("input[%d]: %v", e.index, e.err) }

func (e *listError) Unwrap() error { return e.err }

// Tokens returns the number of tokens of all texts.
func (v *Vectors) Tokens() int { return v.usage.Prompt }

// Answer returns the answer with the vectors.
func (v *Vectors) Answer(model string) any {
	return &struct {
		Object string          `json:"object"`
		Data   *answer.List    `json:"data"`
		Model  string          `json:"model"`
		Usage  *embeddingUsage `json:"usage"`
	}{"list", &v.items, model, &v.usage}
}

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

// embedding is a vector of the answer.
type embedding struct {
	Object string `json:"object"`
	Index  int    `json:"index"`
	Vector any    `json:"embedding"` // its numbers, or their bytes, which are written in base64
}

// answer adds a vector to an answer, within the limit of its size.
func (v *Vectors) answer(index int, vector []float32) error {
	err := error(nil)
	if v.Each != nil {
		err = v.Each(vector)
	} else {
		err = v.add(index, vector)
	}
	if err == nil && v.Hold.Size() > v.Most {
		return fault.Refused("input", "the answer exceeds %d bytes; want fewer texts in a request, or the encoding_format base64", v.Most)
	}
	return err
}

// add adds a vector to OpenAI's answer.
func (v *Vectors) add(index int, vector []float32) error {
	e := embedding{"embedding", index, vector}
	if v.Encoding != nil && *v.Encoding == "base64" { // float32 in the order of little-endian machines
		raw := make([]byte, 0, 4*len(vector))
		for _, x := range vector {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
		}
		e.Vector = raw
	}
	return v.items.Add(v.Hold, e)
}
