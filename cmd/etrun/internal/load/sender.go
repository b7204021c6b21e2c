// Package load sends requests to an inference server, at a rate or from a number of clients, and measures the answers.
package load

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Sender sends one request and waits for its answer. It is used by many goroutines at once.
type Sender interface {
	// Send sends request number n. An error is a *Failure, or one of ctx.
	Send(ctx context.Context, n int64) (Answer, error)
}

// Answer is what a request was answered with, besides a status of success.
type Answer struct {
	Tokens int         // of a text
	Events []time.Time // when its parts arrived
}

// Class is a class of requests that failed.
type Class string

// Classes of failures. Those of statuses other than 200 are named after the status, as in "status 429".
const (
	Connect Class = "connect"    // no connection, or no TLS with the server
	Closed  Class = "closed"     // the connection ended before the answer
	Timeout Class = "timeout"    // no answer within the time limit of a request
	Bad     Class = "bad answer" // the answer is not one of the protocol
	Unsent  Class = "not sent"   // the time was over before a client was free to send it
)

// Failure is a request that failed.
type Failure struct {
	Class Class
	Err   error
}

func (f *Failure) Error() string { return fmt.Sprintf("%s: %v", f.Class, f.Err) }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// failure returns the failure in an error of a sender, [Bad] for any other error.
func failure(err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	return &Failure{Bad, err}
}
