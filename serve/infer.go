package serve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/trace"
	"github.com/etrun-go/etrun/serve/oip"
)

// Inference is a request for one run of a method, in any form.
type Inference struct {
	Model, Method string // the empty method is "forward", or the only one
	Arrived       time.Time
	Reserved      int64 // bytes of the request that are counted toward Options.BusyBytes until Infer returns
	Binary        bool  // the answer has the bytes of all outputs, whatever the request asks for
	// Read reads the request within the limits of the model.
	Read func(limits oip.Limits) (*oip.Request, error)
	// Answer sends the answer. The outputs are valid during the call only.
	Answer func(a *oip.Response) error
}

// Infer answers a request whose bytes are counted by a Hold. Errors are those of Read and Answer, and those that [Explain] knows.
func (s *Server) Infer(ctx context.Context, i *Inference) error {
	m, v, err := s.need(ctx, i.Model, i.Arrived)
	if err != nil {
		return err
	}
	defer v.done()
	if err := m.room(ctx); err != nil {
		return err
	}
	return s.inferWith(ctx, v, v.limits(s.options.BodyBytes), i)
}

// room returns an error if the queue of the model is full.
func (m *Model) room(ctx context.Context) error {
	if !m.queue.full(ClientOf(ctx)) {
		return nil
	}
	err := m.queue.busy()
	m.waited(ctx, "", trace.Now(), err)
	return err
}

// inferWith reads, checks and executes a request with a version, and answers it.
func (s *Server) inferWith(ctx context.Context, v *version, limits oip.Limits, i *Inference) (err error) {
	request, err := i.Read(limits)
	if err != nil {
		return err
	}
	e, err := v.endpointFor(i.Method, request)
	if err != nil {
		return err
	}
	rows := 1
	defer func() { e.statistics.ended(i.Arrived, rows, err) }()
	c, err := e.newCall(request)
	if err != nil {
		return err
	}
	if i.Binary {
		c.binary()
	}
	if e.batches != nil {
		rows = max(c.rows(), 1)
	}
	e.statistics.input.add(1, time.Since(i.Arrived))
	limit, err := e.timeLimit(request)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithDeadlineCause(ctx, i.Arrived.Add(limit), &overdueError{limit})
	defer cancel()
	if err := e.admit(ctx, c, request); err != nil {
		return err
	}
	for i := range request.Inputs { // no longer read
		v.tensors.put(request.Inputs[i].Data)
	}
	begun := time.Now()
	if err := s.finish(c, request.ID, i); err != nil {
		return err
	}
	e.statistics.output.add(1, time.Since(begun))
	return nil
}

// endpointFor returns the method with a name, or the one that the parameter method names.
func (v *version) endpointFor(name string, request *oip.Request) (*endpoint, error) {
	given, err := request.Parameters.Text("method")
	switch {
	case err != nil:
		return nil, err
	case given != "" && name != "" && given != name:
		return nil, requestError("method %q in a request to version %q", given, name)
	case given != "":
		name = given
	}
	return v.endpoint(name)
}

// timeLimit returns the model's time limit, or the parameter timeout in microseconds if that is
// smaller.
func (e *endpoint) timeLimit(request *oip.Request) (time.Duration, error) {
	limit := e.version.model.config.Timeout
	n, ok, err := request.Parameters.Int("timeout")
	if !ok || n == 0 || n > limit.Microseconds() {
		return limit, err
	}
	return time.Duration(n) * time.Microsecond, nil
}

// admit runs a call in the queue, in its sequence if it has one.
func (e *endpoint) admit(ctx context.Context, c *call, request *oip.Request) error {
	m := e.version.model
	if err := m.queue.enter(ClientOf(ctx)); err != nil {
		m.waited(ctx, e.method, trace.Now(), err)
		return err
	}
	defer m.queue.leave()
	s, err := stepOf(request)
	switch {
	case err != nil:
		return err
	case s.id == "":
		return c.run(ctx)
	}
	return e.version.sequences.run(ctx, c, s)
}

// stepOf returns the sequence parameters of a request; an empty id means none.
func stepOf(request *oip.Request) (s step, err error) {
	var errs [3]error
	s.id, errs[0] = request.Parameters.Text("sequence_id")
	s.start, errs[1] = request.Parameters.Bool("sequence_start")
	s.end, errs[2] = request.Parameters.Bool("sequence_end")
	if s.id == "0" { // the protocol's value for none
		s.id = ""
	}
	if err := errors.Join(errs[:]...); err != nil {
		return s, err
	}
	if s.id == "" && (s.start || s.end) {
		return s, requestError("sequence_start or sequence_end without sequence_id")
	}
	return s, nil
}

// reserveAnswer counts the outputs and their form in the answer. The request holds a number of bytes already.
func (s *Server) reserveAnswer(c *call, held int64) (*Reservation, error) {
	size := int64(0)
	for k := range c.outputs {
		size = add(size, c.answerBytes(k))
	}
	if add(size, held) > s.options.BusyBytes {
		return nil, &oip.Error{Class: oip.ErrInvalid, Err: fmt.Errorf("an answer of up to %d bytes to a request of %d, at most %d are allowed "+
			"for all requests in progress; binary outputs take less, and fewer classes", size, held, s.options.BusyBytes)}
	}
	h := s.NewReservation()
	return h, h.Grow(size)
}

// answerBytes bounds the memory of an output and its form in the answer.
func (c *call) answerBytes(k int) int64 {
	out := &c.outputs[k]
	if n := c.wanted[k].classes; n > 0 {
		return add(int64(len(out.Data)), classBytes(out, n))
	}
	return add(int64(len(out.Data)), out.MaxBytes())
}

// finish answers with the outputs.
func (s *Server) finish(c *call, id string, i *Inference) error {
	hold, err := s.reserveAnswer(c, i.Reserved)
	if err != nil {
		return err
	}
	defer hold.Release()
	v, data := c.endpoint.version, make([][]byte, len(c.outputs))
	for k := range c.outputs {
		data[k] = c.outputs[k].Data
	}
	if err := c.classify(); err != nil {
		return err
	}
	if err := i.Answer(&oip.Response{Model: v.model.config.Name, Version: c.endpoint.method, ID: id, Outputs: c.outputs}); err != nil {
		return err
	}
	for k, w := range c.wanted {
		if c.endpoint.batches == nil && c.endpoint.outputs[w.output].meta.Kind == tensor.KindTensor {
			v.tensors.put(data[k]) // other outputs are not from alloc
		}
	}
	return nil
}
