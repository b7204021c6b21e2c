package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/serve/oip"
)

// requestError returns an error for a request that does not match the model.
func requestError(format string, args ...any) error {
	return fmt.Errorf("%w: %w", errRequest, fmt.Errorf(format, args...))
}

var (
	errRequest     = errors.New("request does not match the model")
	errControl     = errors.New("loading and unloading by requests is disabled")
	errAnyNotReady = fmt.Errorf("%w: not all models are loaded", ErrNotReady)
	errEncoding    = errors.New("content encoding is not supported")
	errNoLoad      = errors.New("a load takes no parameters: the models are configured when the server starts")
)

// statusClosed is logged if the client did not wait for the answer.
const statusClosed = 499

// statuses maps errors to status codes. The first row that matches applies; other errors are 500.
// Messages of codes below 500 are sent to the client.
var statuses = []struct {
	cause error
	code  int
}{
	{errControl, http.StatusForbidden},
	{errEncoding, http.StatusUnsupportedMediaType},
	{errNoLoad, http.StatusBadRequest},
	{oip.ErrTooLarge, http.StatusRequestEntityTooLarge},
	{oip.ErrNoJSON, http.StatusNotAcceptable},
	{oip.ErrInvalid, http.StatusBadRequest},
	{errRequest, http.StatusBadRequest},
	{ErrUnknown, http.StatusNotFound},
	{ErrEnded, http.StatusGone},
	{ErrCrashed, http.StatusBadGateway},
	{ErrNotReady, http.StatusServiceUnavailable},
	{context.DeadlineExceeded, http.StatusGatewayTimeout},
	{context.Canceled, statusClosed},
	{oip.ErrRead, http.StatusBadRequest},
	{etrun.ErrInput, http.StatusBadRequest},
	{etrun.ErrExecute, http.StatusUnprocessableEntity},
	{etrun.ErrMemory, http.StatusUnprocessableEntity},
	{etrun.ErrClosed, http.StatusServiceUnavailable},
}

// grpcCodes maps statuses of HTTP to codes of gRPC.
var grpcCodes = map[int]uint32{
	http.StatusBadRequest:            3,  // invalid argument
	http.StatusUnauthorized:          16, // unauthenticated
	http.StatusForbidden:             7,  // permission denied
	http.StatusNotFound:              5,  // not found
	http.StatusMethodNotAllowed:      12, // unimplemented
	http.StatusNotAcceptable:         3,  // invalid argument
	http.StatusRequestTimeout:        4,  // deadline exceeded
	http.StatusGone:                  9,  // failed precondition
	http.StatusRequestEntityTooLarge: 8,  // resource exhausted
	http.StatusUnsupportedMediaType:  12, // unimplemented
	http.StatusMisdirectedRequest:    7,  // permission denied
	http.StatusUnprocessableEntity:   3,  // invalid argument
	http.StatusTooManyRequests:       8,  // resource exhausted
	statusClosed:                     1,  // canceled
	http.StatusInternalServerError:   13, // internal
	http.StatusBadGateway:            14, // unavailable
	http.StatusServiceUnavailable:    14, // unavailable
	http.StatusGatewayTimeout:        4,  // deadline exceeded
}

// Code returns the code of gRPC for a status of HTTP.
func Code(status int) uint32 {
	if code, ok := grpcCodes[status]; ok {
		return code
	}
	return 2 // unknown
}

// statusOf returns the status code of an error.
func statusOf(err error) int {
	if _, busy := errors.AsType[*busyError](err); busy {
		return http.StatusTooManyRequests
	}
	if slow, ok := errors.AsType[net.Error](err); ok && slow.Timeout() && errors.Is(err, oip.ErrRead) {
		return http.StatusRequestTimeout
	}
	for _, s := range statuses {
		if errors.Is(err, s.cause) {
			return s.code
		}
	}
	return http.StatusInternalServerError
}

// loadPatience is when clients should retry while a model is loaded.
const loadPatience = time.Second

// fail answers with an error. Internal errors are logged only.
func fail(w http.ResponseWriter, err error) {
	code, retry, text := Failure(w, err)
	if retry > 0 {
		w.Header().Set("Retry-After", Seconds(retry))
	}
	answer(w, code, errorAnswer{text})
}

// Seconds returns a value of Retry-After.
func Seconds(d time.Duration) string {
	return strconv.Itoa(int(math.Ceil(max(d, time.Second).Seconds())))
}

// errorAnswer is the body of an error answer.
type errorAnswer struct {
	Error string `json:"error"`
}

// reply answers with an object, or with an error.
func reply(w http.ResponseWriter, object any, err error) {
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, http.StatusOK, object)
}

// answer writes an object as JSON.
func answer(w http.ResponseWriter, code int, object any) {
	text, err := json.Marshal(object)
	if err != nil { // cannot happen for objects of this package
		code, text = http.StatusInternalServerError, []byte(`{"error":"internal error"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(code)
	_, _ = w.Write(text) // the client may be gone
}

// failControl answers why a model was not loaded. Clients that may load models may see the reason.
func failControl(w http.ResponseWriter, err error) {
	if statusOf(err) != http.StatusInternalServerError {
		fail(w, err)
		return
	}
	answer(w, http.StatusInternalServerError, errorAnswer{err.Error()}) // Config.Loaded has reported it
}

// Explanation is what a client and the log see of an error.
type Explanation struct {
	Status int           // of HTTP
	Code   uint32        // of gRPC
	Retry  time.Duration // when to retry, 0 for no advice
	Text   string        // without details of internal errors
}

// Explain returns the answer to a request that failed.
func Explain(err error) Explanation {
	e := Explanation{Status: statusOf(err), Text: err.Error()}
	e.Code = Code(e.Status)
	busy, full := errors.AsType[*busyError](err)
	if a, about := errors.AsType[*aboutError](err); about {
		e.Text += a.reason
	}
	switch {
	case full:
		e.Retry = max(busy.after, time.Second)
	case e.Status == http.StatusServiceUnavailable:
		e.Retry = loadPatience
	case e.Status == http.StatusInternalServerError:
		e.Text = "internal error, see the server's log"
	}
	return e
}

// Failure explains an error to the client of w, and reports it to the log.
func Failure(w http.ResponseWriter, err error) (status int, retry time.Duration, text string) {
	if note, ok := w.(interface{ Fault(error) }); ok {
		note.Fault(err)
	}
	e := Explain(err)
	return e.Status, e.Retry, e.Text
}

// overdueError is an expired time limit.
type overdueError struct{ limit time.Duration }

func (e *overdueError) Error() string { return fmt.Sprintf("no answer within %v", e.limit) }

// Unwrap returns context.DeadlineExceeded.
func (e *overdueError) Unwrap() error { return context.DeadlineExceeded }
