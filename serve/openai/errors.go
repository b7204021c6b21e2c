package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/oip"
	"github.com/etrun-go/etrun/text"
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

// missing returns an error about a member that must be given.
func missing(param string) error {
	return &requestError{etrun.ErrInput, param, "missing_required_parameter", param + ": missing"}
}

// modelError is a failure of the model in a request that was accepted. It is the server's fault, whatever its class: the
// cause is not unwrapped.
type modelError struct{ err error }

func (e *modelError) Error() string { return e.err.Error() }

// optionMembers are the members that set options.
var optionMembers = map[string]string{"temperature": "temperature", "top-k": "top_k", "top-p": "top_p", "min-p": "min_p",
	"repetition penalty": "repetition_penalty", "bias of a token": "logit_bias", "bias": "logit_bias", "stop": "stop",
	"max tokens": "max_tokens", "score": "logprobs"}

// fault returns the error of a text: that of an option is the request's, others are the model's unless the request ended. form is the
// member that prescribes the form of the text.
func fault(ctx context.Context, err error, form string) error {
	if o, ok := errors.AsType[*text.OptionError](err); ok {
		member := optionMembers[o.Option]
		if o.Option == "form" {
			member = form
		}
		return optionError(member, o)
	}
	_, refused := errors.AsType[*requestError](err)
	if refused || serve.IsBusy(err) || errors.Is(err, serve.ErrNoRoom) || errors.Is(err, oip.ErrTooLarge) || ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return err
	}
	return &modelError{err}
}

// optionError returns the error of an option as that of the member that sets it.
func optionError(member string, o *text.OptionError) error {
	if member == "" {
		return &requestError{etrun.ErrInput, "", "", o.Error()}
	}
	return refused(member, "got %v, want %s", o.Got, o.Want)
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
	body.Error = errorBody{Message: text, Type: typeOf(status)}
	code := statusCodes[status]
	if e, ok := errors.AsType[*requestError](err); ok {
		if code = e.code; e.param != "" {
			body.Error.Param = &e.param
		}
	}
	if code != "" {
		body.Error.Code = &code
	}
	return status, retry, body
}

// bodyOf returns the body of an answer with a status that another part of the server gives.
func bodyOf(status int, message string) errorAnswer {
	body := errorAnswer{errorBody{Message: message, Type: typeOf(status)}}
	if code := statusCodes[status]; code != "" {
		body.Error.Code = &code
	}
	return body
}

// statusCodes are the codes of errors that only their status distinguishes.
var statusCodes = map[int]string{
	http.StatusUnauthorized:     "invalid_api_key",
	http.StatusMethodNotAllowed: "method_not_supported",
	http.StatusTooManyRequests:  "rate_limit_exceeded",
}

// typeOf returns the type of errors with a status.
func typeOf(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return typeLimit
	case status >= 500:
		return typeServer
	}
	return typeInvalid
}

// promptError returns the error of a prompt, with the code by which clients know that it is too long.
func promptError(member string, err error) error {
	if _, ok := errors.AsType[*requestError](err); ok || isUnmade(err) {
		return err
	}
	e := &requestError{etrun.ErrInput, member, "", err.Error()}
	if long, ok := errors.AsType[*text.PromptError](err); ok && long.Tokens > long.Context {
		e.code = "context_length_exceeded"
	}
	return e
}

// unmade is the error of a form that the server could not make: that of the context, or of too little memory.
type unmade struct{ error }

// Unwrap returns the reason.
func (e *unmade) Unwrap() error { return e.error }

// isUnmade reports whether a form was not made, whatever the request prescribes.
func isUnmade(err error) bool {
	_, ok := errors.AsType[*unmade](err)
	return ok
}

// refusedForm is the error of a member whose form could not be made.
func refusedForm(member string, err error) error {
	if isUnmade(err) {
		return err
	}
	return refused(member, "%v", err)
}

// rename changes the beginning of the parameter's name.
func (e *requestError) rename(from, to string) bool {
	rest, ok := strings.CutPrefix(e.param, from)
	if !ok || rest != "" && rest[0] != '.' && rest[0] != '[' {
		return false
	}
	if text, ok := strings.CutPrefix(e.text, e.param); ok {
		e.text = to + rest + text
	}
	e.param = to + rest
	return true
}
