package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/trace"
	"github.com/etrun-go/etrun/serve/oip"
)

// infer handles an inference request.
func (s *Server) infer(w http.ResponseWriter, r *http.Request) {
	arrived := time.Now()
	m, v, err := s.need(r, arrived)
	if err != nil {
		s.refuse(w, r, headerBytes, err)
		return
	}
	defer v.done()
	limits := v.limits(s.options.BodyBytes)
	size, err := s.look(r, m, limits.Body)
	if err != nil {
		s.refuse(w, r, limits.Body, err)
		return
	}
	defer s.budget.release(size)
	if err := s.inferIn(w, r, v, limits, arrived); err != nil {
		fail(w, err)
	}
}

// look checks a request before its body is read, and reserves memory for the body.
func (s *Server) look(r *http.Request, m *Model, limit int64) (size int64, err error) {
	encoding := r.Header.Get("Content-Encoding")
	size = limit
	if r.ContentLength >= 0 {
		size = min(size, r.ContentLength)
	}
	switch {
	case r.ContentLength > limit:
		err := fmt.Errorf("body of %d bytes, model %q takes at most %d", r.ContentLength, m.config.Name, limit)
		return 0, &oip.Error{Class: oip.ErrTooLarge, Err: err}
	case encoding != "" && encoding != "identity":
		return 0, fmt.Errorf("%w: %.40q", errEncoding, encoding)
	case len(r.Header.Values(oip.HeaderLength)) > 1:
		return 0, requestError("header %s given twice", oip.HeaderLength)
	case m.queue.full():
		err := m.queue.busy()
		m.waited(r.Context(), "", trace.Now(), err)
		return 0, err
	case !s.budget.take(size):
		return 0, &busyError{"too many bytes of requests in progress", m.queue.retryAfter()}
	}
	return size, nil
}

// refuse answers before the body was read. A body within the limit is discarded first: a client
// that is still sending would not see the answer.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, limit int64, err error) {
	if r.ContentLength <= limit {
		_, _ = io.CopyN(io.Discard, r.Body, limit+1) // it ends before that, or is too long
	}
	fail(w, err)
}

// inferIn reads, checks and executes a request with a version, and answers it.
func (s *Server) inferIn(w http.ResponseWriter, r *http.Request, v *version, limits oip.Limits, arrived time.Time) (err error) {
	request, err := oip.Read(r.Body, r.Header.Get(oip.HeaderLength), limits)
	if err != nil {
		return err
	}
	// The goroutine with which net/http watches the connection begins here. Otherwise another thread
	// takes it, often on the processor of the run.
	runtime.Gosched()
	e, err := v.endpointFor(r, request)
	if err != nil {
		return err
	}
	rows := 1
	defer func() { e.statistics.ended(arrived, rows, err) }()
	c, err := e.newCall(request)
	if err != nil {
		return err
	}
	if e.batches != nil {
		rows = max(c.rows(), 1)
	}
	e.statistics.input.add(1, time.Since(arrived))
	limit, err := e.timeLimit(request)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithDeadlineCause(r.Context(), arrived.Add(limit), &lateError{limit})
	defer cancel()
	if err := e.admit(ctx, c, request); err != nil {
		return err
	}
	for i := range request.Inputs { // no longer read
		v.tensors.put(request.Inputs[i].Data)
	}
	begun := time.Now()
	if err := s.respond(w, c, request); err != nil {
		return err
	}
	e.statistics.output.add(1, time.Since(begun))
	return nil
}

// endpointFor returns the method named by the path or by the parameter method.
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

// holdAnswer counts the outputs and their form in the answer.
func (s *Server) holdAnswer(c *call) (*Hold, error) {
	size := int64(0)
	for i := range c.outputs {
		o := &c.outputs[i]
		size = add(size, add(int64(len(o.Data)), o.MaxBytes()))
	}
	if size > s.options.BusyBytes {
		return nil, &oip.Error{Class: oip.ErrInvalid, Err: fmt.Errorf("an answer of up to %d bytes, at most %d are allowed for all requests "+
			"in progress; binary outputs take less", size, s.options.BusyBytes)}
	}
	h := s.NewHold()
	return h, h.Grow(size)
}

// respond writes the outputs.
func (s *Server) respond(w http.ResponseWriter, c *call, request *oip.Request) error {
	if err := c.classify(); err != nil {
		return err
	}
	hold, err := s.holdAnswer(c)
	if err != nil {
		return err
	}
	defer hold.Release()
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
	_, _ = w.Write(body) // the client may be gone
	v.answers.put(body)
	for i, w := range c.wanted {
		if c.endpoint.batches == nil && c.endpoint.outputs[w.output].meta.Kind == tensor.KindTensor {
			v.tensors.put(c.outputs[i].Data) // other outputs are not from alloc
		}
	}
	return nil
}
