package grpc

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"connectrpc.com/connect"

	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/oip"
)

// exchange is a call in progress.
type exchange struct {
	server  *serve.Server
	writer  http.ResponseWriter
	request *http.Request
	control *http.ResponseController
	hold    *serve.Hold // of the message that was read last
	streams bool        // further messages may follow after an answer
	noted   bool        // the log has the status of a failure
}

type exchangeKey struct{}

// exchangeOf returns the call of a context.
func exchangeOf(ctx context.Context) *exchange { return ctx.Value(exchangeKey{}).(*exchange) }

// fail returns the error for the client, and reports it to the log.
func (x *exchange) fail(err error) *connect.Error {
	if known, ok := errors.AsType[*connect.Error](err); ok {
		return known
	}
	if x.request.Context().Err() != nil && errors.Is(err, oip.ErrRead) {
		err = context.Cause(x.request.Context())
	}
	status, retry, text := serve.Failure(x.writer, err)
	x.noted = true
	note(x.writer, status)
	failed := connect.NewError(connect.Code(serve.Code(status)), errors.New(text))
	if retry > 0 {
		failed.Meta().Set("Retry-After", serve.Seconds(retry))
	}
	return failed
}

// note reports the status of an answer to the log: that of HTTP is 200 in any case.
func note(w http.ResponseWriter, status int) {
	if log, ok := w.(interface{ Outcome(status int) }); ok {
		log.Outcome(status)
	}
}

// statuses are the statuses of HTTP for codes of failures that connect finds. Others are faults of the client, as are most of these.
var statuses = map[connect.Code]int{
	connect.CodeCanceled:         499, // what serve has for clients that have disconnected
	connect.CodeDeadlineExceeded: http.StatusGatewayTimeout,
	connect.CodeUnavailable:      http.StatusServiceUnavailable,
}

// end reports the status of a failure that the log does not have.
func (x *exchange) end() {
	code, err := strconv.Atoi(x.writer.Header().Get(http.TrailerPrefix + "Grpc-Status"))
	if err != nil || code == 0 || x.noted {
		return
	}
	status, known := statuses[connect.Code(code)]
	if !known {
		status = http.StatusBadRequest
	}
	note(x.writer, status)
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

// messages is the body of a call. Before a message is read, its size is checked and its memory counted.
type messages struct {
	io.ReadCloser
	exchange *exchange
	limit    int64
	prefix   [5]byte // kind and size of a message
	have     int     // bytes of the prefix
	left     int64   // bytes of the message
	err      error
}

func (m *messages) Read(p []byte) (n int, err error) {
	switch {
	case m.err != nil:
		return 0, m.err
	case len(p) == 0:
		return 0, nil
	case m.left > 0:
		n, err = m.ReadCloser.Read(p[:min(int64(len(p)), m.left)])
		if m.left -= int64(n); m.left == 0 {
			m.complete()
		}
	default:
		n, err = m.ReadCloser.Read(p[:min(len(p), len(m.prefix)-m.have)])
		m.have += copy(m.prefix[m.have:], p[:n])
		if m.have == len(m.prefix) {
			m.have = 0
			m.err = m.begin()
		}
	}
	if err != nil && m.err == nil {
		m.err = m.explain(err)
	}
	return n, m.err
}

// begin checks the prefix of a message, and counts the message instead of the one before.
func (m *messages) begin() error {
	size, x := int64(binary.BigEndian.Uint32(m.prefix[1:])), m.exchange
	x.hold.Release()
	switch {
	case m.prefix[0] != 0:
		return x.fail(&oip.Error{Class: oip.ErrInvalid, Err: errors.New("compressed message, want messages as they are")})
	case size > m.limit:
		return x.fail(&oip.Error{Class: oip.ErrTooLarge, Err: fmt.Errorf("message of %d bytes, at most %d are accepted%s", size, m.limit, m.why())})
	}
	if err := x.hold.Grow(copies * size); err != nil {
		return x.fail(err)
	}
	if m.left = size; size == 0 {
		m.complete()
	}
	return nil
}

// why names the limits of the server that result in that of a message, if it is not one of them.
func (m *messages) why() string {
	body, busy := m.exchange.server.BodyBytes(), m.exchange.server.BusyBytes()
	if m.limit != busy/copies || m.limit == body {
		return ""
	}
	return fmt.Sprintf(": half of the %d for all requests in progress (max-busy), but not %d as in a body (max-body)", busy, body)
}

// complete ends the time limit of a message of a stream. Otherwise the limit lasts until the body ends.
func (m *messages) complete() {
	if m.exchange.streams {
		m.exchange.await(0)
	}
}

// explain returns the error of a body that ended.
func (m *messages) explain(err error) error {
	switch {
	case err != io.EOF:
		return m.exchange.fail(&oip.Error{Class: oip.ErrRead, Err: err})
	case m.left > 0:
		return m.exchange.fail(&oip.Error{Class: oip.ErrInvalid, Err: fmt.Errorf("the message ends %d bytes before its size", m.left)})
	case m.have > 0:
		return m.exchange.fail(&oip.Error{Class: oip.ErrInvalid, Err: errors.New("the message ends before its size")})
	}
	return io.EOF
}
