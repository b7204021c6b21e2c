package serve

import (
	"errors"
	"fmt"

	"github.com/etrun-go/etrun/serve/oip"
)

// Reservation counts memory that a request in progress holds toward Options.BusyBytes. It is used by one goroutine at a time.
type Reservation struct {
	server *Server
	size   int64
	with   *Reservation // of the same request, or nil
}

// NewReservation returns a hold of nothing. The caller must release it.
func (s *Server) NewReservation() *Reservation { return &Reservation{server: s} }

// Another returns a hold of nothing for the same request, which must be released as well.
func (h *Reservation) Another() *Reservation { return &Reservation{server: h.server, with: h} }

// Grow counts n more bytes, before they are allocated. If requests hold too many it fails and counts nothing: with an error for which
// Failure has the status 429, or 413 if the request would hold too many alone, so that repeating it is in vain.
func (h *Reservation) Grow(n int64) error {
	all := add(h.size, n)
	for other := h.with; other != nil; other = other.with {
		all = add(all, other.size)
	}
	if all > h.server.options.BusyBytes {
		return &oip.Error{Class: oip.ErrTooLarge, Err: fmt.Errorf("the request needs %d bytes of memory in all, %s", all, h.server.busyBound())}
	}
	if !h.server.budget.reserve(n) {
		return &busyError{"too many bytes of requests in progress", loadPatience}
	}
	h.size += n
	return nil
}

// busyBound names the limit of all requests.
func (s *Server) busyBound() string {
	return fmt.Sprintf("at most %d are accepted for all requests in progress (max-busy)", s.options.BusyBytes)
}

// Shrink counts n bytes less, which were freed.
func (h *Reservation) Shrink(n int64) {
	n = min(n, h.size)
	h.server.budget.release(n)
	h.size -= n
}

// Size returns the number of counted bytes.
func (h *Reservation) Size() int64 { return h.size }

// Release ends the hold.
func (h *Reservation) Release() {
	h.server.budget.release(h.size)
	h.size = 0
}

// answerShare is the share of Options.BusyBytes that one answer may hold.
const answerShare = 16

// AnswerBytes is the maximum size of an answer that an attachment collects before it is sent: a sixteenth of
// Options.BusyBytes.
func (s *Server) AnswerBytes() int64 { return max(s.options.BusyBytes/answerShare, 1) }

// IsBusy reports whether a request is refused because of load.
func IsBusy(err error) bool {
	_, busy := errors.AsType[*busyError](err)
	return busy
}
