package serve

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/etrun-go/etrun/serve/oip"
)

// infer handles an inference request.
func (s *Server) infer(w http.ResponseWriter, r *http.Request) {
	i := &Inference{Model: r.PathValue("model"), Method: r.PathValue("version"), Arrived: time.Now()}
	m, v, err := s.need(r.Context(), i.Model, i.Arrived)
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
	i.Reserved, limits.Body = size, size
	i.Read = func(limits oip.Limits) (*oip.Request, error) {
		// The goroutine with which net/http watches the connection begins after the body. Otherwise another thread
		// takes it, often on the processor of the run.
		defer runtime.Gosched()
		if header := r.Header.Get(oip.HeaderLength); header != "0" {
			return oip.Read(r.Body, header, limits)
		}
		return v.readRaw(r, limits)
	}
	i.Answer = func(a *oip.Response) error { return s.respond(w, v, a) }
	if err := s.inferWith(r.Context(), v, limits, i); err != nil {
		fail(w, err)
	}
}

// look checks a request before its body is read, and reserves memory for the body.
func (s *Server) look(r *http.Request, m *Model, limit int64) (size int64, err error) {
	encoding := r.Header.Get("Content-Encoding")
	limit = min(limit, s.options.BusyBytes)
	size = limit
	if r.ContentLength >= 0 {
		size = min(size, r.ContentLength)
	}
	switch {
	case r.ContentLength > limit:
		return 0, s.tooLarge(fmt.Sprint(r.ContentLength), limit, fmt.Sprintf(" for model %q", m.config.Name))
	case encoding != "" && encoding != "identity":
		return 0, fmt.Errorf("%w: %.40q", errEncoding, encoding)
	case len(r.Header.Values(oip.HeaderLength)) > 1:
		return 0, requestError("header %s given twice", oip.HeaderLength)
	}
	if err := m.room(r.Context()); err != nil {
		return 0, err
	}
	if !s.budget.reserve(size) {
		return 0, &busyError{"too many bytes of requests in progress", m.queue.retryAfter()}
	}
	return size, nil
}

// tooLarge returns the error of a body of so many bytes, of which limit are accepted.
func (s *Server) tooLarge(size string, limit int64, model string) error {
	if limit == s.options.BusyBytes && limit < s.options.BodyBytes {
		return &oip.Error{Class: oip.ErrTooLarge, Err: fmt.Errorf("body of %s bytes, %s, and %d in a body (max-body)", size, s.busyBound(),
			s.options.BodyBytes)}
	}
	return &oip.Error{Class: oip.ErrTooLarge, Err: fmt.Errorf("body of %s bytes, at most %d are accepted%s", size, limit, model)}
}

// refuse answers before the body was read. A body within the limit is discarded first: a client
// that is still sending would not see the answer.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, limit int64, err error) {
	if r.ContentLength <= limit {
		_, _ = io.CopyN(io.Discard, r.Body, limit+1) // it ends before that, or is too long
	}
	fail(w, err)
}

// readRaw reads a request whose body is the data of the only input, whose datatype and shape are those of the model. All
// outputs are wanted as binary data.
func (v *version) readRaw(r *http.Request, limits oip.Limits) (*oip.Request, error) {
	e, err := v.endpoint(r.PathValue("version"))
	switch {
	case err != nil:
		return nil, err
	case len(e.inputs) != 1:
		return nil, requestError("a body without a JSON part (%s 0) to method %q, which has %d inputs, want 1",
			oip.HeaderLength, e.method, len(e.inputs))
	case r.ContentLength < 0:
		return nil, requestError("a body without a JSON part (%s 0) whose length is unknown, want a Content-Length", oip.HeaderLength)
	}
	in := &e.inputs[0]
	shape, err := in.shapeOf(r.ContentLength)
	if err != nil {
		return nil, err
	}
	request, err := oip.ReadRaw(r.Body, oip.Tensor{Name: in.name, Datatype: in.datatype, Shape: shape}, r.ContentLength, limits)
	if err != nil {
		return nil, err
	}
	request.Parameters = oip.Parameters{"binary_data_output": true}
	return request, nil
}

// respond writes an answer.
func (s *Server) respond(w http.ResponseWriter, v *version, a *oip.Response) error {
	size := headerBytes
	for i := range a.Outputs {
		size += len(a.Outputs[i].Data)
	}
	body, header, err := a.Append(v.answers.get(size)[:0])
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
	return nil
}
