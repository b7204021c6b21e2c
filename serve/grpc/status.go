package grpc

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/etrun-go/etrun/serve"
)

// failure is how a call fails.
type failure struct {
	status int // of HTTP, for the log; the client gets its code of gRPC
	text   string
	retry  time.Duration
}

func (f *failure) Error() string { return f.text }

var (
	errMessages = &failure{status: http.StatusMethodNotAllowed, text: "no message or several, want one"}
	errStopping = &failure{status: http.StatusServiceUnavailable, text: "the server is shutting down"}
)

// contentType is that of calls and answers.
const contentType = "application/grpc"

// end ends a call, with a failure if it is not nil.
func end(w http.ResponseWriter, f *failure) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	if f == nil {
		h.Set(http.TrailerPrefix+"Grpc-Status", "0")
		return
	}
	h.Set(http.TrailerPrefix+"Grpc-Status", strconv.Itoa(int(serve.Code(f.status))))
	h.Set(http.TrailerPrefix+"Grpc-Message", escape(f.text))
	if f.retry > 0 {
		h.Set(http.TrailerPrefix+"Retry-After", serve.Seconds(f.retry))
	}
}

// escape returns a text as a header has it: printable ASCII, other bytes as %XX.
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// note reports the status of an answer to the log: that of HTTP is 200 in any case.
func note(w http.ResponseWriter, status int) {
	if log, ok := w.(interface{ Outcome(status int) }); ok {
		log.Outcome(status)
	}
}

// units are those of time limits.
var units = map[byte]time.Duration{'H': time.Hour, 'M': time.Minute, 'S': time.Second, 'm': time.Millisecond, 'u': time.Microsecond,
	'n': time.Nanosecond}

// timeLimit returns the time limit of a call, 0 for none.
func timeLimit(r *http.Request) (time.Duration, error) {
	text := r.Header.Get("Grpc-Timeout")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text[:len(text)-1], 10, 64)
	unit := units[text[len(text)-1]]
	if err != nil || unit == 0 || len(text) > 9 {
		return 0, invalid("", "grpc-timeout %.40q, want up to 8 digits and a unit: H, M, S, m, u or n", text)
	}
	const most = 1 << 62 / uint64(time.Hour)
	return max(time.Duration(min(n, most))*unit, 1), nil
}
