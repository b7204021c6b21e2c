package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/serve"
)

// Types of errors in the protocol.
const (
	typeInvalid = "invalid_request_error"
	typeLimit   = "rate_limit_error"
	typeServer  = "server_error"
)

// requestError is the error of a request that is refused.
type requestError struct {
	class error // etrun.ErrInput or serve.ErrUnknown
	param string
	code  string // may be empty
	text  string
}

func (e *requestError) Error() string { return e.text }

// Unwrap returns the class.
func (e *requestError) Unwrap() error { return e.class }

// refused returns an error about a parameter.
func refused(param, format string, args ...any) error {
	return &requestError{etrun.ErrInput, param, "", fmt.Sprintf(param+": "+format, args...)}
}

// quote quotes a name of a request, shortened.
func quote(s string) string { return fmt.Sprintf("%.140q", s) }

// errorAnswer is the body of an answer to a request that failed.
type errorAnswer struct {
	Error errorBody `json:"error"`
}

type errorBody struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// describe returns the status, the delay before a retry, and the body for an error.
func describe(w http.ResponseWriter, err error) (status int, retry string, body errorAnswer) {
	status, after, text := serve.Failure(w, err)
	if after > 0 {
		retry = serve.Seconds(after)
	}
	body.Error = errorBody{Message: text, Type: typeInvalid}
	switch {
	case status == http.StatusTooManyRequests:
		body.Error.Type = typeLimit
	case status >= 500:
		body.Error.Type = typeServer
	}
	if e, ok := errors.AsType[*requestError](err); ok {
		body.Error.Param = &e.param
		if e.code != "" {
			body.Error.Code = &e.code
		}
	}
	return status, retry, body
}

func fail(w http.ResponseWriter, err error) {
	status, retry, body := describe(w, err)
	if retry != "" {
		w.Header().Set("Retry-After", retry)
	}
	answer(w, status, body)
}

// answer writes an object as JSON.
func answer(w http.ResponseWriter, status int, object any) {
	text, err := json.Marshal(object)
	if err != nil { // cannot happen for objects of this package
		status, text = http.StatusInternalServerError, []byte(`{"error":{"message":"internal error","type":"server_error","param":null,"code":null}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // the client may be gone
}
