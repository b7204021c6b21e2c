package grpc

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"time"

	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/oip"
)

// exchange is a call in progress.
type exchange struct {
	server  *serve.Server
	writer  http.ResponseWriter
	request *http.Request
	control *http.ResponseController
	hold    *serve.Reservation // of the message that was read last
	limit   int64              // bytes of a message
	streams bool               // further messages may follow after an answer
}

// context returns that of the call, which ends with its time limit.
func (x *exchange) context() context.Context { return x.request.Context() }

// fail returns the failure for the client, and reports it to the log.
func (x *exchange) fail(err error) *failure {
	f, known := errors.AsType[*failure](err)
	if !known {
		if x.context().Err() != nil && errors.Is(err, oip.ErrRead) {
			err = context.Cause(x.context())
		}
		f = new(failure)
		f.status, f.retry, f.text = serve.Failure(x.writer, err)
	}
	note(x.writer, f.status)
	return f
}

// await limits the time until the next message has arrived.
func (x *exchange) await(limit time.Duration) {
	var at time.Time
	if limit > 0 {
		at = time.Now().Add(limit)
	}
	_ = x.control.SetReadDeadline(at) // not supported by all writers: those of tests have no slow clients
}

// Maximum sizes of messages other than those of inferences: those of health checks, which any client may send, and of other calls.
const (
	probeBytes   = 1 << 10
	controlBytes = 64 << 10
)

// copies is how often the bytes of a message are in memory at once: as received, and as tensors.
const copies = 2

// prefixBytes are those before a message: whether it is compressed, and its size.
const prefixBytes = 5

// receive returns the next message, or io.EOF. Before it is read, its size is checked and its memory counted, instead of that of the one
// before.
func (x *exchange) receive() ([]byte, error) {
	var prefix [prefixBytes]byte
	n, err := io.ReadFull(x.request.Body, prefix[:])
	if n == 0 && err == io.EOF {
		return nil, err
	}
	if err != nil {
		return nil, cut(err, "the message ends before its size")
	}
	size := int64(binary.BigEndian.Uint32(prefix[1:]))
	x.hold.Release()
	switch {
	case prefix[0] != 0:
		return nil, invalid("", "compressed message, want messages as they are")
	case size > x.limit:
		return nil, tooLarge("", "message of %d bytes, at most %d are accepted%s", size, x.limit, x.why())
	}
	if err := x.hold.Grow(copies * size); err != nil {
		return nil, err
	}
	data := make([]byte, size)
	if n, err = io.ReadFull(x.request.Body, data); err != nil {
		return nil, cut(err, fmt.Sprintf("the message ends %d bytes before its size", int(size)-n))
	}
	if x.streams { // otherwise the time limit lasts until the body ends
		x.await(0)
	}
	return data, nil
}

// cut returns the error of a message that was not read.
func cut(err error, short string) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return &oip.Error{Class: oip.ErrInvalid, Err: errors.New(short)}
	}
	return &oip.Error{Class: oip.ErrRead, Err: err}
}

// why names the limits of the server that result in that of a message, if it is not one of them.
func (x *exchange) why() string {
	body, busy := x.server.BodyBytes(), x.server.BusyBytes()
	if x.limit != busy/copies || x.limit == body {
		return ""
	}
	return fmt.Sprintf(": half of the %d for all requests in progress (max-busy), but not %d as in a body (max-body)", busy, body)
}

// only returns the message of a call that has one.
func (x *exchange) only() ([]byte, error) {
	data, err := x.receive()
	if err == io.EOF {
		return nil, errMessages
	}
	if err != nil {
		return nil, err
	}
	var more [1]byte
	switch n, err := io.ReadFull(x.request.Body, more[:]); {
	case n > 0:
		return nil, errMessages
	case err != io.EOF:
		return nil, cut(err, "")
	}
	return data, nil
}

// message is an answer.
type message interface{ append(dst []byte) []byte }

// send sends an answer without delay.
func (x *exchange) send(m message) error {
	data := m.append(make([]byte, prefixBytes))
	size := uint64(len(data) - prefixBytes)
	if size > math.MaxUint32 {
		return fmt.Errorf("an answer of %d bytes, more than a message of gRPC can have", size)
	}
	binary.BigEndian.PutUint32(data[1:], uint32(size))
	x.writer.Header().Set("Content-Type", contentType)
	if _, err := x.writer.Write(data); err != nil {
		return err
	}
	_ = x.control.Flush() // the client may be gone
	return nil
}
