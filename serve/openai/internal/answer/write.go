package answer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai/internal/fault"
)

// format is how objects are written: as package encoding/json writes them.
var format = json.JoinOptions(json.Deterministic(true), json.FormatNilSliceAsNull(true), jsontext.AllowInvalidUTF8(true),
	jsontext.PreserveRawStrings(true), jsontext.EscapeForHTML(true), jsontext.EscapeForJS(true))

// counter counts bytes.
type counter int

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// Fail answers with an error in OpenAI's API.
func Fail(w http.ResponseWriter, err error) { (*Style)(nil).Fail(w, err) }

// JSON answers with an object. The client may be gone.
func JSON(w http.ResponseWriter, status int, object any) { _ = write(w, status, object) }

// Send answers with an object, and reports to the log if it was not sent.
func Send(w http.ResponseWriter, status int, object any) { _ = sent(w, write(w, status, object)) }

// write writes an object. It is encoded twice, first to know its size: its JSON is never in memory.
func write(w http.ResponseWriter, status int, object any) error {
	var size counter
	if err := json.MarshalWrite(&size, object, format); err != nil { // cannot happen for objects of this package
		_, _, body := fault.Describe(w, err)
		status, object, size = http.StatusInternalServerError, body, 0
		_ = json.MarshalWrite(&size, object, format)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(int(size)))
	w.WriteHeader(status)
	return json.MarshalWrite(w, object, format)
}

// beginStream sends the header of a stream.
func (a *Sink) beginStream() {
	if a.Style.lines() {
		beginStream(a.w, "application/x-ndjson")
		return
	}
	BeginEvents(a.w)
}

// BeginEvents sends the header of a stream of server-sent events.
func BeginEvents(w http.ResponseWriter) { beginStream(w, "text/event-stream") }

func beginStream(w http.ResponseWriter, contentType string) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // proxies must not buffer events
	w.WriteHeader(http.StatusOK)
}

// Event sends an object as a server-sent event without delay.
func Event(s *serve.Server, w http.ResponseWriter, object any) error {
	return (&Sink{server: s, w: w}).event("", object)
}

// event sends an object as a server-sent event without delay. The name of the event may be empty.
func (a *Sink) event(name string, object any) error {
	a.server.WriteBy(a.w)
	before, after := "data: ", "\n\n"
	if a.Style.lines() {
		before, after = "", "\n"
	} else if name != "" {
		before = "event: " + name + "\n" + before
	}
	_, err := io.WriteString(a.w, before)
	if err == nil {
		err = json.MarshalWrite(a.w, object, format)
	}
	if err != nil {
		return sent(a.w, err)
	}
	return a.write(after)
}

// write writes text without delay.
func (a *Sink) write(s string) error {
	_, err := io.WriteString(a.w, s)
	return sent(a.w, err)
}

// sent ends what was written with an error. It returns the error of a client that does not get the rest: it has left, or has not read for
// too long. The log has the reason.
func sent(w http.ResponseWriter, err error) error {
	if err == nil {
		err = http.NewResponseController(w).Flush()
	}
	if err == nil || errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	err = fmt.Errorf("%w: the answer was not sent: %v", context.Canceled, err)
	_, _, _ = serve.Failure(w, err)
	return err
}
