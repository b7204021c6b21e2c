package graph

import (
	"errors"
	"fmt"

	"github.com/etrun-go/etrun/delegate"
)

// nodeError is an error at a node. The caller adds whether the payload or a call's arguments caused
// it, see InPayload and inCall.
type nodeError struct {
	place       string
	unsupported bool // well formed, but not supported
	err         error
}

func (e *nodeError) Error() string { return e.place + ": " + e.err.Error() }

// fault returns an error for an invalid node.
func (n *Node) fault(format string, args ...any) error {
	return &nodeError{place: n.Location(), err: fmt.Errorf(format, args...)}
}

// unsupported returns an error for a node that this package does not support.
func (n *Node) unsupported(format string, args ...any) error {
	return &nodeError{place: n.Location(), unsupported: true, err: fmt.Errorf(format, args...)}
}

// InPayload converts a nodeError to an error of the payload. It returns other errors unchanged.
func InPayload(err error) error {
	e, ok := errors.AsType[*nodeError](err)
	if !ok {
		return err
	}
	if e.unsupported {
		return Unsupported(e.place, "%w", e.err)
	}
	return PayloadError(e.place, "%w", e.err)
}

// inCall converts an error to one of a call's arguments.
func inCall(err error) error {
	if e, ok := errors.AsType[*nodeError](err); ok {
		return delegate.Errorf(ID, delegate.ErrArgument, e.place, "%w", e.err)
	}
	return &delegate.Error{Backend: ID, Reason: delegate.ErrArgument, Err: err}
}
