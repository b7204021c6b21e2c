package serve

import "errors"

// Hold counts memory that a request in progress holds, in addition to its body, toward Options.BusyBytes. It is used by
// one goroutine at a time.
type Hold struct {
	server *Server
	size   int64
}

// NewHold returns a hold of nothing. The caller must release it.
func (s *Server) NewHold() *Hold { return &Hold{server: s} }

// Grow counts n more bytes, before they are allocated. If requests hold too many it fails, with an error for which
// Failure has the status 429, and counts nothing.
func (h *Hold) Grow(n int64) error {
	if !h.server.budget.take(n) {
		return &busyError{"too many bytes of requests in progress", loadPatience}
	}
	h.size += n
	return nil
}

// Shrink counts n bytes less, which were freed.
func (h *Hold) Shrink(n int64) {
	n = min(n, h.size)
	h.server.budget.release(n)
	h.size -= n
}

// Size returns the number of counted bytes.
func (h *Hold) Size() int64 { return h.size }

// Release ends the hold.
func (h *Hold) Release() {
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
