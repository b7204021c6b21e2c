package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/runtime/trace"
	"github.com/etrun-go/etrun/serve/oip"
)

// attach opens the attachment of a program of this process.
func (v *version) attach(ctx context.Context) error {
	p, ok := v.program.(*local)
	if !ok {
		return fmt.Errorf("a program in another process: %w", etrun.ErrUnsupported)
	}
	a, err := v.model.config.Attach(ctx, p.Program)
	if err != nil {
		return err
	}
	v.attached = a
	if err := a.Try(ctx); err != nil {
		return fmt.Errorf("self-test: %w", err)
	}
	return nil
}

// Attached reports whether the model is configured with Attach.
func (m *Model) Attached() bool { return m.config.Attach != nil }

// Kind returns the model's Config.Kind.
func (m *Model) Kind() string { return m.config.Kind }

// Use waits in the model's queue and calls f with the attachment of the current program, which stays
// open until f returns. ctx ends at the model's time limit, unless f calls Lease.Began first, which lifts
// the limit. Errors are those of f, and those for which Failure has a status.
func (m *Model) Use(ctx context.Context, f func(ctx context.Context, a Attachment, l *Lease) error) error {
	limit := m.config.Timeout
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(limit, func() { cancel(&overdueError{limit}) })
	defer late.Stop()
	v, err := m.needAttached(ctx)
	if err != nil {
		return err
	}
	defer v.done()
	begun := trace.Now()
	if err := m.queue.enter(ClientOf(ctx)); err != nil {
		m.waited(ctx, "", begun, err)
		return err
	}
	defer m.queue.leave()
	l, err := m.queue.lease(ctx)
	m.waited(ctx, "", begun, err)
	if err != nil {
		return err
	}
	defer l.end()
	l.began = func() {
		late.Stop()
		m.moves.note()
	}
	return f(ctx, v.attached, l)
}

// needAttached is need for models with an attachment.
func (m *Model) needAttached(ctx context.Context) (*version, error) {
	v, err := m.need(ctx)
	if err == nil && v.attached == nil {
		v.done()
		return nil, fmt.Errorf("%w: model %q in this protocol", ErrUnknown, m.config.Name)
	}
	return v, err
}

// Peek calls f with the attachment of the current program, which stays open until f returns, without a wait in the queue:
// for what takes little time. ctx bounds the load of a model that is loaded on demand. Errors are those of f, and those for which Failure has a status.
func (m *Model) Peek(ctx context.Context, f func(a Attachment) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, m.config.Timeout, &overdueError{m.config.Timeout})
	defer cancel()
	v, err := m.needAttached(ctx)
	if err != nil {
		return err
	}
	defer v.done()
	return f(v.attached)
}

// Loaded calls f with the attachment of the current program, which stays open until f returns, and loads nothing: f is not
// called if no program is ready.
func (m *Model) Loaded(f func(a Attachment)) {
	v, err := m.acquire()
	if err != nil {
		return
	}
	defer v.done()
	if v.attached != nil {
		f(v.attached)
	}
}

// errMoves ends the wait for a turn of a test.
var errMoves = errors.New("requests in progress continue")

// tryAttached tests the attachment in the queue of requests. Long requests in progress that continue are test enough: the
// queue can be longer than the caller waits.
func (m *Model) tryAttached(ctx context.Context, a Attachment) error {
	wait, cancel := context.WithCancelCause(ctx)
	watch := time.AfterFunc(tryPatience, func() {
		select {
		case <-m.moves.next():
			cancel(errMoves)
		case <-wait.Done():
		}
	})
	end, err := m.queue.acquire(wait)
	watch.Stop()
	cancel(nil)
	switch {
	case errors.Is(err, errMoves):
		return nil
	case err != nil:
		return err
	}
	defer end()
	return a.Try(ctx)
}

// tryPatience is how long a test waits before it looks whether requests continue.
const tryPatience = 100 * time.Millisecond

// ReadBody reads the body of a request for an attachment, at most limit bytes, within the server's limits. The caller must release the
// hold, which counts the body, when the body is no longer used. Failure has the status of errors.
func (s *Server) ReadBody(w http.ResponseWriter, r *http.Request, limit int64) (body []byte, hold *Reservation, err error) {
	limit = min(limit, s.options.BodyBytes, s.options.BusyBytes)
	size := limit
	if r.ContentLength >= 0 {
		size = min(size, r.ContentLength)
	}
	encoding := r.Header.Get("Content-Encoding")
	switch {
	case r.ContentLength > limit:
		return nil, nil, s.tooLarge(fmt.Sprint(r.ContentLength), limit, "")
	case encoding != "" && encoding != "identity":
		return nil, nil, fmt.Errorf("%w: %.40q", errEncoding, encoding)
	}
	hold = s.NewReservation()
	if err := hold.Grow(size); err != nil {
		return nil, nil, err
	}
	if _, limited := r.Body.(*limitedBody); !limited { // the caller does not use LimitBodies
		b := newLimitedBody(w, r)
		b.readBy(s.options.BodyTimeout)
		r.Body = b
	}
	body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	s.writeBy(w, 0) // reading may have taken all the time for writing
	if err != nil {
		hold.Release()
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return nil, nil, s.tooLarge(fmt.Sprintf("more than %d", limit), limit, "")
		}
		return nil, nil, &oip.Error{Class: oip.ErrRead, Err: err}
	}
	return body, hold, nil
}

// WriteBy sets a time limit for the next write of an answer: the server's BodyTimeout from now on.
func (s *Server) WriteBy(w http.ResponseWriter) { s.writeBy(w, 0) }
