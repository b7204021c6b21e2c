package graph

import (
	"errors"
	"fmt"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/internal/flatbuf"
)

// ID is the name that identifies the backend in programs.
const ID = "XnnpackBackend"

// A payload header consists of 4 zero bytes, "XH00", u16 length, u32 flatbuffer offset and size,
// u32 constant data offset, u64 constant data size.
const (
	headerSize  = 30
	headerMagic = "XH00"
	MaxArgs     = 4096
	ordinary    = 4096 // largest initial capacity of values and nodes
)

// Identifiers of the FlatBuffer. The older schema has all fields that the reader uses.
var Identifiers = []string{"XN01", "XN00"}

// Reader converts a payload to a graph.
type Reader struct {
	graph     *Graph
	Flat      *flatbuf.Reader
	named     delegate.NamedData
	constants []byte // constant data inside the payload
	byID      map[uint32]int
	Table     constantTable
	views     map[int]int  // float values that nodes read quantized, and their quantized views
	viewed    map[int]bool // views whose nodes have been added
	missing   []int        // external IDs that no value has
}

// PayloadError returns an error of an invalid payload.
func PayloadError(place, format string, args ...any) error {
	return delegate.Errorf(ID, delegate.ErrPayload, place, format, args...)
}

// Unsupported returns an error of a valid payload that is not supported.
func Unsupported(place, format string, args ...any) error {
	return delegate.Errorf(ID, delegate.ErrUnsupported, place, format, args...)
}

// FlatError returns the error of the FlatBuffer reader, if there is one.
func (r *Reader) FlatError() error {
	if err := r.Flat.Err(); err != nil {
		return &delegate.Error{Backend: ID, Reason: delegate.ErrPayload, Err: err}
	}
	return nil
}

// each reads the tables of a vector in order, until there is an error.
func (r *Reader) each(root flatbuf.Table, field int, name string, read func(i int, t flatbuf.Table) error) (err error) {
	i := 0
	flatbuf.Each(root, field, name, func(t flatbuf.Table) {
		if err == nil {
			err = read(i, t)
		}
		i++
	})
	if fault := r.FlatError(); fault != nil {
		return fault
	}
	return err
}

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
