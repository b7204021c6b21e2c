package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/trace"
	"github.com/etrun-go/etrun/serve/oip"
)

// infer answers an inference.
func (s *Server) infer(w http.ResponseWriter, r *http.Request) {
	arrived := time.Now()
	m, v, err := s.acquire(r)
	if err != nil {
		s.refuse(w, r, headerBytes, err)
		return
	}
	defer v.release()
	limits := v.limits(s.options.BodyBytes)
	size, err := s.look(r, m, limits.Body)
	if err != nil {
		s.refuse(w, r, limits.Body, err)
		return
	}
	defer s.budget.give(size)
	if err := s.inferIn(w, r, v, limits, arrived); err != nil {
		fail(w, err)
	}
}

// look decides on a request before its body is read, and reserves so many bytes for it.
func (s *Server) look(r *http.Request, m *Model, most int64) (size int64, err error) {
	encoding := r.Header.Get("Content-Encoding")
	size = most
	if r.ContentLength >= 0 {
		size = min(size, r.ContentLength)
	}
	switch {
	case r.ContentLength > most:
		err := fmt.Errorf("body of %d bytes, model %q takes at most %d", r.ContentLength, m.config.Name, most)
		return 0, &oip.Error{Class: oip.ErrTooLarge, Err: err}
	case encoding != "" && encoding != "identity":
		return 0, fmt.Errorf("%w: %.40q", errEncoding, encoding)
	case m.queue.full():
		err := m.queue.busy()
		m.waited(r.Context(), "", trace.Now(), err)
		return 0, err
	case !s.budget.take(size):
		return 0, &busyError{"too many bytes of requests are under way", m.queue.patience()}
	}
	return size, nil
}

// acquire finds the model of a request.
func (s *Server) acquire(r *http.Request) (*Model, *version, error) {
	m := s.Model(r.PathValue("model"))
	if m == nil {
		return nil, nil, fmt.Errorf("%w: model %.140q", ErrUnknown, r.PathValue("model"))
	}
	v, err := m.acquire()
	return m, v, err
}

// refuse answers before the body was read, which is read away where it is not longer than
// the model's requests may be: a client that is still sending would not see the answer.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, most int64, err error) {
	if r.ContentLength <= most {
		s.readBy(w, s.options.BodyTimeout)
		_, _ = io.CopyN(io.Discard, r.Body, most+1) // it ends before that, or is too long
		s.readBy(w, 0)
	}
	fail(w, err)
}

// readBy sets a time limit for reading the rest of the request, 0 for none.
func (s *Server) readBy(w http.ResponseWriter, d time.Duration) {
	var at time.Time
	if d > 0 {
		at = time.Now().Add(d)
	}
	_ = http.NewResponseController(w).SetReadDeadline(at) // not every writer has one: a test's has no slow client either
}

// lateError is a deadline that passed.
type lateError struct{ limit time.Duration }

func (e *lateError) Error() string { return fmt.Sprintf("no answer within %v", e.limit) }

// Unwrap is that of a context whose deadline passed.
func (e *lateError) Unwrap() error { return context.DeadlineExceeded }

// inferIn reads, checks, executes and answers, in a version.
func (s *Server) inferIn(w http.ResponseWriter, r *http.Request, v *version, limits oip.Limits, arrived time.Time) error {
	s.readBy(w, s.options.BodyTimeout)
	request, err := oip.Read(r.Body, r.Header.Get(oip.HeaderLength), limits)
	if err != nil {
		return err
	}
	s.readBy(w, 0)
	e, err := v.endpointFor(r, request)
	if err != nil {
		return err
	}
	c, err := e.newCall(request)
	if err != nil {
		return err
	}
	limit, err := e.timeLimit(request)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithDeadlineCause(r.Context(), arrived.Add(limit), &lateError{limit})
	defer cancel()
	if err := e.admit(ctx, c, request); err != nil {
		return err
	}
	for i := range request.Inputs { // nobody reads them any more
		v.tensors.put(request.Inputs[i].Data)
	}
	return s.respond(w, c, request)
}

// endpointFor is the method that the path or the parameter method names.
func (v *version) endpointFor(r *http.Request, request *oip.Request) (*endpoint, error) {
	name := r.PathValue("version")
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

// timeLimit is that of the model, or the parameter timeout in microseconds where it is less.
func (e *endpoint) timeLimit(request *oip.Request) (time.Duration, error) {
	most := e.version.model.config.Timeout
	n, ok, err := request.Parameters.Int("timeout")
	if !ok || n == 0 || n > most.Microseconds() {
		return most, err
	}
	return time.Duration(n) * time.Microsecond, nil
}

// admit runs a call in the queue, in its sequence if it has one.
func (e *endpoint) admit(ctx context.Context, c *call, request *oip.Request) error {
	m := e.version.model
	if err := m.queue.enter(); err != nil {
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

// stepOf is what a request does with its sequence; an empty id is for none.
func stepOf(request *oip.Request) (s step, err error) {
	var errs [3]error
	s.id, errs[0] = request.Parameters.Text("sequence_id")
	s.start, errs[1] = request.Parameters.Bool("sequence_start")
	s.end, errs[2] = request.Parameters.Bool("sequence_end")
	if s.id == "0" { // the protocol's word for none
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

// respond writes the outputs.
func (s *Server) respond(w http.ResponseWriter, c *call, request *oip.Request) error {
	v := c.endpoint.version
	response := oip.Response{Model: v.model.config.Name, Version: c.endpoint.method, ID: request.ID, Outputs: c.outputs}
	size := headerBytes
	for i := range c.outputs {
		size += len(c.outputs[i].Data)
	}
	body, header, err := response.Append(v.answers.get(size)[:0])
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if header > 0 {
		h.Set("Content-Type", "application/octet-stream")
		h.Set(oip.HeaderLength, strconv.Itoa(header))
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	s.writeBy(w, 0)
	_, _ = w.Write(body) // a client that has gone
	v.answers.put(body)
	for i, w := range c.wanted {
		if c.endpoint.batches == nil && c.endpoint.outputs[w.output].meta.Kind == tensor.KindTensor {
			v.tensors.put(c.outputs[i].Data) // others are not from alloc
		}
	}
	return nil
}
