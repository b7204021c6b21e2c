package daemon

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/internal/lazy"
	"github.com/etrun-go/etrun/serve/oip"
)

// origins are those of other pages that may use the server (--cors). Browsers send neither cookies nor certificates with their
// requests: clients authenticate by a token in a header.
type origins map[string]bool

// origins returns the origins of --cors, in the form in which browsers send them.
func (s *Settings) origins() (origins, error) {
	list := make(origins)
	for _, given := range s.CORS {
		u, err := url.Parse(given)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || !strings.EqualFold(given, u.Scheme+"://"+u.Host) || u.Hostname() == "" ||
			strings.Contains(u.Host, "*") {
			return nil, session.Usage("--cors %.80q, want the origin of pages that may use the server, such as https://app.example or http://localhost:3000", given)
		}
		list[strings.ToLower(given)] = true
	}
	return list, nil
}

// include reports whether a request is that of a page with one of the origins.
func (o origins) include(r *http.Request) bool {
	given := r.Header["Origin"]
	return len(given) == 1 && o[given[0]]
}

// allow lets the page read the answer.
func (o origins) allow(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	h.Set("Access-Control-Expose-Headers", oip.HeaderLength+", Retry-After")
	h.Add("Vary", "Origin")
}

// isPreflight reports whether a browser asks for permission to send a request.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
}

// headerList is a list of names of headers.
var headerList = lazy.Pattern("^[-!#$%&'*+.^_`|~0-9A-Za-z, ]+$")

// permit answers a browser that asks for permission.
func (o origins) permit(w http.ResponseWriter, r *http.Request) {
	o.allow(w, r)
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "GET, POST")
	names := r.Header.Get("Access-Control-Request-Headers")
	if !headerList().MatchString(names) {
		names = "Authorization, Content-Type, " + oip.HeaderLength
	}
	h.Set("Access-Control-Allow-Headers", names) // what clients send besides has no effect
	h.Add("Vary", "Access-Control-Request-Headers")
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
}
