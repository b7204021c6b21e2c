// Package fault has the errors of requests to OpenAI's API, and how they are answered.
package fault

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
	TypeServer  = "server_error"
)

// Error is the error of a request that is refused.
type Error struct {
	Class error // etrun.ErrInput or serve.ErrUnknown
	Param string
	Code  string // may be empty
	Text  string
}

func (e *Error) Error() string { return e.Text }

// Unwrap returns the class.
func (e *Error) Unwrap() error { return e.Class }

// Refused returns an error about a parameter.
func Refused(param, format string, args ...any) error {
	return coded(param, "", format, args...)
}

// Unknown returns an error about a member that there is not.
func Unknown(param, format string, args ...any) error {
	return coded(param, "unknown_parameter", format, args...)
}

// Unsupported returns an error about a member that asks for what there is not.
func Unsupported(param, format string, args ...any) error {
	return coded(param, "unsupported_parameter", format, args...)
}

// coded returns an error with a code. The name of a member can have a percent sign.
func coded(param, code, format string, args ...any) error {
	return &Error{etrun.ErrInput, param, code, param + ": " + fmt.Sprintf(format, args...)}
}

// Missing returns an error about a member that must be given.
func Missing(param string) error {
	return &Error{etrun.ErrInput, param, "missing_required_parameter", param + ": missing"}
}

// Failure is a failure of the model in a request that was accepted. It is the server's fault, whatever its class: the
// cause is not unwrapped.
type Failure struct{ Err error }

func (e *Failure) Error() string { return e.Err.Error() }

// optionMembers are the members that set options.
var optionMembers = map[string]string{"temperature": "temperature", "top-k": "top_k", "top-p": "top_p", "min-p": "min_p",
	"repetition penalty": "repetition_penalty", "bias of a token": "logit_bias", "bias": "logit_bias", "stop": "stop",
	"max tokens": "max_tokens", "score": "logprobs"}

// Of returns the error of a text: that of an option is the request's, others are the model's unless the request ended. form is the
// member that prescribes the form of the text.
func Of(ctx context.Context, err error, form string) error {
	if o, ok := errors.AsType[*text.OptionError](err); ok {
		member := optionMembers[o.Option]
		if o.Option == "form" {
			member = form
		}
		return OfOption(member, o)
	}
	_, refused := errors.AsType[*Error](err)
	loaded := serve.IsBusy(err) || errors.Is(err, serve.ErrNoRoom) || errors.Is(err, oip.ErrTooLarge)
	if refused || loaded || ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return err
	}
	return &Failure{err}
}

// OfOption returns the error of an option as that of the member that sets it.
func OfOption(member string, o *text.OptionError) error {
	if member == "" {
		return &Error{etrun.ErrInput, "", "", o.Error()}
	}
	return Refused(member, "got %v, want %s", o.Got, o.Want)
}

// Quote quotes a name of a request, shortened.
func Quote(s string) string { return fmt.Sprintf("%.140q", s) }

// Body is the body of an answer to a request that failed.
type Body struct {
	Error Detail `json:"error"`
}

type Detail struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// Describe returns the status, the delay before a retry, and the body for an error.
func Describe(w http.ResponseWriter, err error) (status int, retry string, body Body) {
	status, after, text := serve.Failure(w, err)
	if after > 0 {
		retry = serve.Seconds(after)
	}
	body.Error = Detail{Message: text, Type: typeOf(status)}
	code := statusCodes[status]
	if e, ok := errors.AsType[*Error](err); ok {
		if code = e.Code; e.Param != "" {
			body.Error.Param = &e.Param
		}
	}
	if code != "" {
		body.Error.Code = &code
	}
	return status, retry, body
}

// BodyOf returns the body of an answer with a status that another part of the server gives.
func BodyOf(status int, message string) Body {
	body := Body{Detail{Message: message, Type: typeOf(status)}}
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
		return TypeServer
	}
	return typeInvalid
}

// OfPrompt returns the error of a prompt, with the code by which clients know that it is too long.
func OfPrompt(member string, err error) error {
	if _, ok := errors.AsType[*Error](err); ok || IsUnmade(err) {
		return err
	}
	e := &Error{etrun.ErrInput, member, "", err.Error()}
	if long, ok := errors.AsType[*text.PromptError](err); ok && long.Tokens > long.Context {
		e.Code = "context_length_exceeded"
	}
	return e
}

// Unmade is the error of a form, or of the rows of a picture or a sound, that the server could not make: that of the context, or of too little
// memory.
type Unmade struct{ Err error }

func (e *Unmade) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *Unmade) Unwrap() error { return e.Err }

// IsUnmade reports whether a form was not made, whatever the request prescribes.
func IsUnmade(err error) bool {
	_, ok := errors.AsType[*Unmade](err)
	return ok
}

// OfForm is the error of a member whose form could not be made.
func OfForm(member string, err error) error {
	if IsUnmade(err) {
		return err
	}
	return Refused(member, "%v", err)
}

// Rename changes the beginning of the parameter's name.
func (e *Error) Rename(from, to string) bool {
	rest, ok := strings.CutPrefix(e.Param, from)
	if !ok || rest != "" && rest[0] != '.' && rest[0] != '[' {
		return false
	}
	if text, ok := strings.CutPrefix(e.Text, e.Param); ok {
		e.Text = to + rest + text
	}
	e.Param = to + rest
	return true
}
