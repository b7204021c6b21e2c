package xnnpack

import (
	"errors"
	"fmt"

	"github.com/etrun-go/etrun/delegate"
)

// nodeError is what is wrong at a node, without saying whose fault it is: who checks a
// payload or a call adds that.
type nodeError struct {
	place  string
	beyond bool // well formed, but more than this package does
	err    error
}

func (e *nodeError) Error() string { return e.place + ": " + e.err.Error() }

// fault is something wrong at the node.
func (n *node) fault(format string, args ...any) error {
	return &nodeError{place: n.place(), err: fmt.Errorf(format, args...)}
}

// beyond is something at the node that this package does not do.
func (n *node) beyond(format string, args ...any) error {
	return &nodeError{place: n.place(), beyond: true, err: fmt.Errorf(format, args...)}
}

// inPayload makes a nodeError the payload's fault; other errors stay.
func inPayload(err error) error {
	e, ok := errors.AsType[*nodeError](err)
	if !ok {
		return err
	}
	if e.beyond {
		return unsupported(e.place, "%w", e.err)
	}
	return payloadError(e.place, "%w", e.err)
}

// inCall makes an error the fault of a call's arguments.
func inCall(err error) error {
	if e, ok := errors.AsType[*nodeError](err); ok {
		return delegate.Errorf(ID, delegate.ErrArgument, e.place, "%w", e.err)
	}
	return &delegate.Error{Backend: ID, Reason: delegate.ErrArgument, Err: err}
}
