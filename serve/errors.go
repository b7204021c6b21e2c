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

// requestError is a request that does not fit the model.
func requestError(format string, args ...any) error {
	return fmt.Errorf("%w: %w", errRequest, fmt.Errorf(format, args...))
}

var (
	errRequest  = errors.New("request does not fit")
	errControl  = errors.New("loading and unloading by requests is not allowed here")
	errEncoding = errors.New("content encoding is not supported")
	errNoLoad   = errors.New("a load takes no parameters: what is loaded is fixed when the server starts")
)

// statusGone is logged for a client that did not wait for its answer.
const statusGone = 499

// statuses are the codes of faults. An error's is that of the first row that it stands in;
// others are 500. The texts of those below 500 are for the client.
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
	{context.Canceled, statusGone},
	{oip.ErrRead, http.StatusBadRequest},
	{etrun.ErrInput, http.StatusBadRequest},
	{etrun.ErrExecute, http.StatusUnprocessableEntity},
	{etrun.ErrMemory, http.StatusUnprocessableEntity},
	{etrun.ErrClosed, http.StatusServiceUnavailable},
}

// statusOf is the code of a fault.
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

// loadPatience is when to come back to a model that is being loaded.
const loadPatience = time.Second

// fail answers with a fault. What went wrong inside is for the log alone.
func fail(w http.ResponseWriter, err error) {
	code, text := statusOf(err), err.Error()
	if note, ok := w.(interface{ Fault(error) }); ok {
		note.Fault(err)
	}
	busy, full := errors.AsType[*busyError](err)
	switch {
	case full:
		w.Header().Set("Retry-After", seconds(busy.after))
	case code == http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", seconds(loadPatience))
	case code == http.StatusInternalServerError:
		text = "internal error; the server's log has it"
	}
	answer(w, code, errorAnswer{text})
}

// seconds is a value of Retry-After.
func seconds(d time.Duration) string {
	return strconv.Itoa(int(math.Ceil(max(d, time.Second).Seconds())))
}

// errorAnswer is the object of a fault.
type errorAnswer struct {
	Error string `json:"error"`
}

// answer writes an object.
func answer(w http.ResponseWriter, code int, object any) {
	text, err := json.Marshal(object)
	if err != nil { // objects of this package have JSON forms
		code, text = http.StatusInternalServerError, []byte(`{"error":"internal error"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(code)
	_, _ = w.Write(text) // a client that has gone
}

// failControl answers with why a model was not loaded, which who may load it may know.
func failControl(w http.ResponseWriter, err error) {
	if statusOf(err) != http.StatusInternalServerError {
		fail(w, err)
		return
	}
	if note, ok := w.(interface{ Fault(error) }); ok {
		note.Fault(err)
	}
	answer(w, http.StatusInternalServerError, errorAnswer{err.Error()})
}
