package openai

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/text"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// sink is the answer to a request while its texts are generated.
type sink interface {
	// use sets the tokenizer of the model.
	use(t tokenizer.Tokenizer)
	// next begins another text of a prompt.
	next(prompt []int, echo string, s *splitting) error
	// piece adds a piece of the text. first means that it is the first one of its prompt.
	piece(p *text.Piece, first bool) error
	// end completes the answer to a request that ended with err.
	end(err error)
}

// wanted is what an answer is like.
type wanted struct {
	form     form // nil for a response
	stream   bool
	usage    bool // in the stream
	logProbs bool
	score    bool          // the tokens of prompts are answered, too
	limit    string        // the member with the maximum number of tokens
	repeated func() string // the members that a response repeats, with a comma before them
}

// newSink returns an answer. hold counts its memory.
func newSink(s *serve.Server, w http.ResponseWriter, model string, want wanted, hold *serve.Hold) sink {
	if want.form == nil {
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
