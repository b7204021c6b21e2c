package grpc

import (
	"context"
	"errors"
	"io"
	"time"

	"connectrpc.com/connect"

	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/oip"
)

// infer answers a request by send.
func (h *handler) infer(ctx context.Context, r *request, send func(*oip.Response) error) error {
	x := exchangeOf(ctx)
	model, method, err := r.target()
	if err != nil {
		return err
	}
	return h.server.Infer(ctx, &serve.Inference{Model: model, Method: method, Arrived: time.Now(), Held: x.hold.Size(), Binary: true, Read: r.read,
		Answer: func(a *oip.Response) error {
			h.server.WriteBy(x.writer)
			return send(a)
		}})
}

// modelInfer answers one request. The outputs are sent while they are valid: a stream of one answer is the same to a client.
func (h *handler) modelInfer(ctx context.Context, r *connect.Request[request], stream *connect.ServerStream[answer]) error {
	err := h.infer(ctx, r.Msg, func(a *oip.Response) error { return stream.Send(&answer{a}) })
	if err != nil {
		return exchangeOf(ctx).fail(err)
	}
	return nil
}

var errStopping = connect.NewError(connect.CodeUnavailable, errors.New("the server is shutting down"))

// modelStreamInfer answers requests in order. A request that fails has an answer with the error, and the next one follows.
func (h *handler) modelStreamInfer(ctx context.Context, stream *connect.BidiStream[request, streamed]) error {
	x := exchangeOf(ctx)
	x.streams = true
	stop := context.AfterFunc(h.stop, func() { x.await(time.Nanosecond) })
	defer stop()
	for {
		x.await(h.server.BodyTimeout())
		if h.stop.Err() != nil {
			return errStopping
		}
		h.server.AnswerBy(x.writer)
		r, err := stream.Receive()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && h.stop.Err() != nil:
			return errStopping
		case err != nil:
			return x.fail(err)
		}
		h.server.AnswerBy(x.writer)
		if err := h.inferNext(ctx, r, stream); err != nil {
			return x.fail(err)
		}
	}
}

// inferNext answers a request of a stream, whose memory does not count while the client sends the next one. It fails if the client
// cannot get answers.
func (h *handler) inferNext(ctx context.Context, r *request, stream *connect.BidiStream[request, streamed]) error {
	x, lost := exchangeOf(ctx), error(nil)
	defer x.hold.Release()
	err := h.infer(ctx, r, func(a *oip.Response) error {
		lost = stream.Send(&streamed{response: *a})
		return lost
	})
	if err == nil || lost != nil || ctx.Err() != nil {
		return errors.Join(lost, context.Cause(ctx))
	}
	h.server.WriteBy(x.writer)
	return stream.Send(&streamed{response: oip.Response{ID: r.id()}, text: x.fail(err).Message()})
}

// id returns the id of a request that failed, as far as it can be read.
func (r *request) id() string {
	m, err := r.head()
	if err != nil || short("id", m.Id) != nil {
		return ""
	}
	return m.Id
}
