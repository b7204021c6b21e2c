package daemon

import (
	"crypto/rand"
	"log/slog"
	"net/http"
	"time"

	"github.com/etrun-go/etrun/internal/lazy"
	"github.com/etrun-go/etrun/serve/grpc"
)

// headerID is the header with a request's id, headerTrace the W3C trace context.
const (
	headerID    = "X-Request-Id"
	headerTrace = "Traceparent"
)

// Values that clients may send in these headers; others are replaced, or dropped.
var (
	idForm    = lazy.Pattern(`^[A-Za-z0-9._:/+=-]{1,128}$`)
	traceForm = lazy.Pattern(`^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$`)
)

// recorder records the answer to a request.
type recorder struct {
	http.ResponseWriter
	code  int
	bytes int64
	fault error
}

func (r *recorder) WriteHeader(code int) {
	if r.code == 0 {
		r.code = code
	}
	r.ResponseWriter.WriteHeader(code)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.code == 0 {
		r.code = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(b)
	r.bytes += int64(n)
	return n, err
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// Fault records an error that the client must not see, for the log.
func (r *recorder) Fault(err error) { r.fault = err }

// Outcome records the status that an answer would have had over HTTP: that of gRPC is 200 in any case.
func (r *recorder) Outcome(status int) { r.code = status }

// access counts and logs requests, and gives each an id.
type access struct {
	next    http.Handler
	log     *slog.Logger
	counts  *counts
	verbose bool // every request, not only internal errors
	probes  bool // with verbose: also health checks and scrapes that succeed
}

// quiet are the paths of health checks and scrapes.
var quiet = pathSet([]string{livePath, readyPath, healthPath, metricsPath}, grpc.Open)

func (a *access) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begun := time.Now()
	id := r.Header.Get(headerID)
	if id == "" || !idForm().MatchString(id) {
		id = rand.Text()
		r.Header.Set(headerID, id)
	}
	w.Header().Set(headerID, id)
	trace := ""
	if given := r.Header.Get(headerTrace); given != "" {
		if m := traceForm().FindStringSubmatch(given); m != nil {
			trace = m[1]
			w.Header().Set(headerTrace, given)
		}
	}
	rec := &recorder{ResponseWriter: w}
	a.next.ServeHTTP(rec, r)
	if rec.code == 0 {
		rec.code = http.StatusOK
	}
	a.counts.answered(rec.code)
	a.write(r, rec, id, trace, time.Since(begun))
}

func (a *access) write(r *http.Request, rec *recorder, id, trace string, took time.Duration) {
	level := slog.LevelInfo
	if rec.code == http.StatusInternalServerError {
		level = slog.LevelError
	} else if !a.verbose || !a.probes && quiet[r.URL.Path] && rec.code < http.StatusBadRequest {
		return
	}
	attributes := []slog.Attr{slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Int("status", rec.code),
		slog.Int64("received", max(r.ContentLength, 0)), slog.Int64("sent", rec.bytes), slog.Duration("took", took),
		slog.String("remote", r.RemoteAddr), slog.String("id", id)}
	if trace != "" {
		attributes = append(attributes, slog.String("trace", trace))
	}
	if rec.fault != nil {
		attributes = append(attributes, slog.Any("error", rec.fault))
	}
	a.log.LogAttrs(r.Context(), level, "request", attributes...)
}
