package serve

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// Times of a request that is answered before its body has arrived.
const (
	settleTime = 50 * time.Millisecond  // before the answer, for a body that is on its way
	lingerTime = 500 * time.Millisecond // after the answer, before the connection is closed
)

// settleBytes bounds the bytes that are discarded before such an answer.
const settleBytes = 256 << 10

// LimitBodies bounds the time in which requests to next send their bodies, whichever handler answers
// them, and whether or not it reads the body. A request that is answered before its body has ended is
// answered at once, and its connection is closed, but not with HTTP/2. The time after the body is not limited. The limit
// replaces http.Server.ReadTimeout, which would also end a long inference.
func LimitBodies(next http.Handler, timeout time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { limitBody(w, r, next, timeout) })
}

func limitBody(w http.ResponseWriter, r *http.Request, next http.Handler, timeout time.Duration) {
	if _, limited := r.Body.(*limitedBody); limited {
		next.ServeHTTP(w, r)
		return
	}
	b := newLimitedBody(w, r)
	if r.Body == nil || r.Body == http.NoBody {
		b.readBy(0)
		next.ServeHTTP(w, r)
		return
	}
	b.readBy(timeout)
	r.Body = b
	if r.ProtoMajor > 1 { // net/http sends the answer while the body arrives, and then ends the stream
		next.ServeHTTP(w, r)
		return
	}
	a := &earlyAnswer{ResponseWriter: w, body: b, settle: min(settleTime, timeout)}
	defer func() {
		if !b.ended {
			b.readBy(lingerTime)
		}
	}()
	next.ServeHTTP(a, r)
	a.begin()
}

// limitedBody is a body whose reads have a time limit until it ends.
type limitedBody struct {
	io.ReadCloser
	control *http.ResponseController
	invited bool // the client sends the body: it does not wait for status 100
	ended   bool
}

func newLimitedBody(w http.ResponseWriter, r *http.Request) *limitedBody {
	return &limitedBody{ReadCloser: r.Body, control: http.NewResponseController(w), invited: r.Header.Get("Expect") == ""}
}

func (b *limitedBody) Read(p []byte) (int, error) {
	b.invited = true
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) && !b.ended {
		b.ended = true
		b.readBy(0)
	}
	return n, err
}

// readBy sets the time limit of reads, 0 for none.
func (b *limitedBody) readBy(d time.Duration) {
	var at time.Time
	if d > 0 {
		at = time.Now().Add(d)
	}
	_ = b.control.SetReadDeadline(at) // not supported by all writers: those of tests have no slow clients
}

// earlyAnswer is the writer of a request with a body. net/http would wait for the rest of the body
// before it sends an answer; instead the connection is closed after the answer.
type earlyAnswer struct {
	http.ResponseWriter
	body   *limitedBody
	settle time.Duration
	begun  bool
}

func (a *earlyAnswer) begin() {
	if a.begun {
		return
	}
	a.begun = true
	if a.body.ended {
		return
	}
	if a.body.invited { // reading would invite it
		a.body.readBy(a.settle)
		_, _ = io.CopyN(io.Discard, a.body, settleBytes) // after a failure the connection is closed
	}
	if !a.body.ended {
		a.Header().Set("Connection", "close")
	}
}

func (a *earlyAnswer) WriteHeader(code int) {
	if code >= http.StatusOK {
		a.begin()
	}
	a.ResponseWriter.WriteHeader(code)
}

func (a *earlyAnswer) Write(b []byte) (int, error) {
	a.begin()
	return a.ResponseWriter.Write(b)
}

// FlushError is for http.ResponseController.
func (a *earlyAnswer) FlushError() error {
	a.begin()
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController.
func (a *earlyAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Fault passes on an error for the log, see Failure.
func (a *earlyAnswer) Fault(err error) {
	if note, ok := a.ResponseWriter.(interface{ Fault(error) }); ok {
		note.Fault(err)
	}
}
