package answer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/etrun-go/etrun/serve"
)

// Pile is a part of an answer: bytes in blocks, each of which is counted in the memory of requests in progress before it
// is allocated. They are neither copied nor joined.
type Pile struct {
	blocks [][]byte
	size   int
}

// Sizes of blocks in bytes.
const (
	leastBlock = 1 << 6
	mostBlock  = 1 << 16
)

// Add appends bytes.
func (p *Pile) Add(hold *serve.Hold, b string) error {
	for b != "" {
		last := len(p.blocks) - 1
		if last < 0 || len(p.blocks[last]) == cap(p.blocks[last]) {
			n := min(max(p.size, leastBlock), mostBlock)
			if err := hold.Grow(int64(n)); err != nil {
				return err
			}
			p.blocks, last = append(p.blocks, make([]byte, 0, n)), last+1
		}
		block := p.blocks[last]
		n := min(cap(block)-len(block), len(b))
		p.blocks[last] = append(block, b[:n]...)
		b, p.size = b[n:], p.size+n
	}
	return nil
}

// item appends an element of a list.
func (p *Pile) item(hold *serve.Hold, b string) error {
	if p.size > 0 {
		b = "," + b
	}
	return p.Add(hold, b)
}

// move appends the bytes of another pile, which loses them. Those of a small one are copied: its blocks would end the one
// that is being filled.
func (p *Pile) move(hold *serve.Hold, from *Pile) error {
	if from.size > mostBlock {
		p.blocks, p.size = append(p.blocks, from.blocks...), p.size+from.size
		*from = Pile{}
		return nil
	}
	for _, b := range from.blocks {
		if err := p.Add(hold, string(b)); err != nil {
			return err
		}
		hold.Shrink(int64(cap(b)))
	}
	*from = Pile{}
	return nil
}

// Write answers with a part in JSON, between its beginning and its end. Its blocks are not copied.
func (p *Pile) Write(w http.ResponseWriter, status int, begin, end string) {
	beginObject(w, status, len(begin)+p.size+len(end))
	_ = sendParts(w, []any{begin, p.blocks, end}) // the client may be gone
}

// beginObject sends the header of an answer in JSON of a size.
func beginObject(w http.ResponseWriter, status, size int) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(size))
	w.WriteHeader(status)
}

// beginEvents sends the header of a stream.
func beginEvents(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // proxies must not buffer events
	w.WriteHeader(http.StatusOK)
}

// sendParts writes strings and lists of blocks without delay. An error means that the client does not get the rest: it has left, or has
// not read for too long. The log has the reason.
func sendParts(w http.ResponseWriter, parts []any) error {
	for _, p := range parts {
		blocks, _ := p.([][]byte)
		if s, ok := p.(string); ok {
			blocks = [][]byte{[]byte(s)}
		}
		for _, b := range blocks {
			if _, err := w.Write(b); err != nil {
				return unsent(w, err)
			}
		}
	}
	if err := http.NewResponseController(w).Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return unsent(w, err)
	}
	return nil
}

// unsent reports to the log why an answer was not sent, and returns the error as that of a client that has left.
func unsent(w http.ResponseWriter, err error) error {
	err = fmt.Errorf("%w: the answer was not sent: %v", context.Canceled, err)
	_, _, _ = serve.Failure(w, err)
	return err
}
