package xnnpack

import (
	"errors"
	"fmt"

	"github.com/etrun-go/etrun/delegate"
)

// nodeError is an error at a node. The caller adds whether the payload or a call's arguments caused
// it, see inPayload and inCall.
type nodeError struct {
	place  string
	beyond bool // well formed, but not supported
	err    error
}

func (e *nodeError) Error() string { return e.place + ": " + e.err.Error() }

// fault returns an error for an invalid node.
func (n *node) fault(format string, args ...any) error {
	return &nodeError{place: n.place(), err: fmt.Errorf(format, args...)}
}

// beyond returns an error for a node that this package does not support.
func (n *node) beyond(format string, args ...any) error {
	return &nodeError{place: n.place(), beyond: true, err: fmt.Errorf(format, args...)}
}

// inPayload converts a nodeError to an error of the payload. It returns other errors unchanged.
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

// inCall converts an error to one of a call's arguments.
func inCall(err error) error {
	if e, ok := errors.AsType[*nodeError](err); ok {
		return delegate.Errorf(ID, delegate.ErrArgument, e.place, "%w", e.err)
	}
	return &delegate.Error{Backend: ID, Reason: delegate.ErrArgument, Err: err}
}
