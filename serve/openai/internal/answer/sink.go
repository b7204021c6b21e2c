// Package answer writes answers in OpenAI's API, as one object or as a stream of events.
package answer

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai/internal/toolcall"
	"github.com/etrun-go/etrun/text"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// Sink is the answer to a request while its texts are generated.
type Sink interface {
	// Use sets the tokenizer of the model.
	Use(t tokenizer.Tokenizer)
	// Next begins another text of a prompt.
	Next(prompt []int, echo string, s *toolcall.Splitting) error
	// Piece adds a piece of the text. first means that it is the first one of its prompt.
	Piece(p *text.Piece, first bool) error
	// End completes the answer to a request that ended with err.
	End(err error)
}

// Wanted is what an answer is like.
type Wanted struct {
	Form     Form // nil for a response
	Stream   bool
	Usage    bool // in the stream
	LogProbs bool
	Score    bool          // the tokens of prompts are answered, too
	Limit    string        // the member with the maximum number of tokens
	Repeated func() string // the members that a response repeats, with a comma before them
}

// New returns an answer. hold counts its memory.
func New(s *serve.Server, w http.ResponseWriter, model string, want Wanted, hold *serve.Hold) Sink {
	if want.Form == nil {
		return newResponder(s, w, model, want, hold)
	}
	return newAnswerer(s, w, model, want, hold)
}

// newID returns the id of an answer.
func newID(prefix string) string {
	return fmt.Sprintf("%s-%016x%016x", prefix, rand.Uint64(), rand.Uint64())
}

// now is the time of an answer.
func now() int64 { return time.Now().Unix() }
