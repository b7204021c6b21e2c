// Package grpc (no compatibility promise) serves models over gRPC in the Open Inference Protocol, version 2, with Triton's
// extensions for streams, configurations, statistics and the model repository; besides, the standard health service:
//
//	s, err := serve.New(serve.Options{}, serve.Config{Name: "digits", Open: open})
//	err = s.LoadAll(ctx)
//	protocols := new(http.Protocols)
//	protocols.SetUnencryptedHTTP2(true)
//	h := &http.Server{Handler: grpc.New(s, grpc.Options{}), Protocols: protocols}
//
// Queues, time limits, loads and limits of memory are those of package serve, and answers have the same bits as over HTTP.
// Messages are not compressed. Package inference has the messages for clients.
//
//go:generate go -C ../../tools run ./protogen ../serve/grpc/inference/inference.proto
package grpc

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/serve"
)

// Options configures a handler. Zero fields mean the defaults.
type Options struct {
	// Ready returns why the server is not ready, nil if it is. The default asks the server.
	Ready func() error
	// Stop ends streams, after the request in progress. The default is never.
	Stop context.Context
}

// New returns a handler of all paths, for HTTP/2.
func New(s *serve.Server, o Options) http.Handler {
	h := &handler{server: s, ready: o.Ready, stop: o.Stop}
	if h.ready == nil {
		h.ready = func() error { return readyOf(s) }
	}
	if h.stop == nil {
		h.stop = context.Background()
	}
	h.calls = h.table()
	return h
}

var errNotReady = errors.New("not all models are loaded")

func readyOf(s *serve.Server) error {
	if s.Ready() {
		return nil
	}
	return errNotReady
}

// Serves reports whether a request is a call of gRPC, which needs HTTP/2.
func Serves(r *http.Request) bool {
	kind := r.Header.Get("Content-Type")
	return r.ProtoMajor > 1 && (kind == contentType || strings.HasPrefix(kind, contentType+"+"))
}

// Refuse answers a call with the code for a status of HTTP and a text.
func Refuse(w http.ResponseWriter, _ *http.Request, status int, text string) {
	note(w, status)
	end(w, &failure{status: status, text: text})
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case !Serves(r):
		http.Error(w, "want a call of gRPC over HTTP/2", http.StatusUnsupportedMediaType)
	case r.Method != http.MethodPost:
		Refuse(w, r, http.StatusMethodNotAllowed, "method "+strings.ToValidUTF8(r.Method, "?")+", want POST")
	case h.calls[r.URL.Path] == nil:
		Refuse(w, r, http.StatusMethodNotAllowed, "no such procedure; the services are "+strings.Join(names, ", "))
	case r.Header.Get("Content-Type") != contentType && r.Header.Get("Content-Type") != contentType+"+proto":
		Refuse(w, r, http.StatusUnsupportedMediaType, "messages of another format, want protocol buffers")
	case !slices.Contains([]string{"", "identity"}, r.Header.Get("Grpc-Encoding")):
		Refuse(w, r, http.StatusUnsupportedMediaType, "compressed messages, want them as they are")
	default:
		h.call(w, r)
	}
}

// call answers a call within the limits of the server.
func (h *handler) call(w http.ResponseWriter, r *http.Request) {
	x := &exchange{server: h.server, writer: w, control: http.NewResponseController(w), hold: h.server.NewReservation(), limit: h.limit(r.URL.Path)}
	defer x.hold.Release()
	h.server.AnswerBy(w)
	serve.LimitBodies(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { h.answer(x, r) }), h.server.BodyTimeout()).ServeHTTP(w, r)
}

// answer answers a call within its time limit.
func (h *handler) answer(x *exchange, r *http.Request) {
	x.request = r
	limit, err := timeLimit(r)
	if limit > 0 {
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		x.request = r.WithContext(ctx)
	}
	if err == nil {
		err = h.calls[r.URL.Path](x)
	}
	if err != nil {
		end(x.writer, x.fail(err))
		return
	}
	end(x.writer, nil)
}

// limit returns the maximum size of a message. A larger one than all requests in progress may have cannot be read later either.
func (h *handler) limit(path string) int64 {
	switch {
	case inferences[path]:
		return min(h.server.BodyBytes(), h.server.BusyBytes()/copies)
	case slices.Contains(Open, path):
		return probeBytes
	}
	return controlBytes
}
