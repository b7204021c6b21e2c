package grpc

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/oip"
)

// infer answers a request by send.
func (x *exchange) infer(r *request, send func(*oip.Response) error) error {
	model, method, err := r.target()
	if err != nil {
		return err
	}
	return x.server.Infer(x.context(), &serve.Inference{Model: model, Method: method, Arrived: time.Now(), Reserved: x.hold.Size(), Binary: true,
		Read: r.read, Answer: func(a *oip.Response) error {
			x.server.WriteBy(x.writer)
			return send(a)
		}})
}

// modelInfer answers one request. The outputs are sent while they are valid.
func (h *handler) modelInfer(x *exchange) error {
	data, err := x.only()
	if err != nil {
		return err
	}
	return x.infer(&request{data}, func(a *oip.Response) error { return x.send(answer{a}) })
}

// modelStreamInfer answers requests in order. A request that fails has an answer with the error, and the next one follows.
func (h *handler) modelStreamInfer(x *exchange) error {
	return h.stream(x, func(data []byte) error { return x.inferNext(&request{data}) })
}

// stream answers messages until the client sends no more, or the server stops.
func (h *handler) stream(x *exchange, answer func(data []byte) error) error {
	x.streams = true
	stop := context.AfterFunc(h.stop, func() { x.await(time.Nanosecond) })
	defer stop()
	for {
		x.await(h.server.BodyTimeout())
		if h.stop.Err() != nil {
			return errStopping
		}
		h.server.AnswerBy(x.writer)
		data, err := x.receive()
		switch {
		case err == io.EOF:
			return nil
		case err != nil && h.stop.Err() != nil:
			return errStopping
		case err != nil:
			return err
		}
		h.server.AnswerBy(x.writer)
		if err := answer(data); err != nil {
			return err
		}
	}
}

// inferNext answers a request of a stream, whose memory does not count while the client sends the next one. It fails if the client
// cannot get answers.
func (x *exchange) inferNext(r *request) error {
	lost := error(nil)
	defer x.hold.Release()
	err := x.infer(r, func(a *oip.Response) error {
		lost = x.send(&streamed{response: *a})
		return lost
	})
	if err == nil || lost != nil || x.context().Err() != nil {
		return errors.Join(lost, context.Cause(x.context()))
	}
	x.server.WriteBy(x.writer)
	return x.send(&streamed{response: oip.Response{ID: r.id()}, text: x.fail(err).text})
}

// id returns the id of a request that failed, as far as it can be read.
func (r *request) id() string {
	m, err := r.head()
	if err != nil || short("id", m.Id) != nil {
		return ""
	}
	return m.Id
}
