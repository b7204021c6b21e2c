package grpc

import (
	"bytes"
	"fmt"

	"google.golang.org/protobuf/proto"
)

// codec reads and writes messages. Requests for inferences are only kept: what is read of them depends on the model.
type codec struct{}

// appender is an answer that does not need the copies of generated messages.
type appender interface{ append(dst []byte) []byte }

// Name implements connect.Codec.
func (codec) Name() string { return "proto" }

// Marshal implements connect.Codec.
func (c codec) Marshal(message any) ([]byte, error) { return c.MarshalAppend(nil, message) }

// MarshalAppend appends a message to dst, which connect uses again.
func (codec) MarshalAppend(dst []byte, message any) ([]byte, error) {
	switch m := message.(type) {
	case appender:
		return m.append(dst), nil
	case proto.Message:
		return proto.MarshalOptions{}.MarshalAppend(dst, m)
	}
	return nil, fmt.Errorf("%T is no message", message)
}

// Unmarshal implements connect.Codec.
func (codec) Unmarshal(data []byte, message any) error {
	switch m := message.(type) {
	case *request:
		m.data = bytes.Clone(data)
		return nil
	case decoder:
		m.decode(data)
		return nil
	case proto.Message:
		return decode(data, m)
	}
	return fmt.Errorf("%T is no message", message)
}

// decoder is a message that is read, or keeps why it is not: connect would answer in the words of its packages.
type decoder interface{ decode(data []byte) }

// received is a request of a procedure.
type received[M any] struct {
	message M
	err     error
}

func (r *received[M]) decode(data []byte) {
	if m, ok := any(&r.message).(proto.Message); ok { // all are
		r.err = decode(data, m)
	}
}

// decode reads a message.
func decode(data []byte, m proto.Message) error {
	if proto.Unmarshal(data, m) != nil {
		return invalid("", "malformed message: it is no %s, or has a string that is not UTF-8", m.ProtoReflect().Descriptor().Name())
	}
	return nil
}
