package daemon

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/internal/lazy"
)

// hosts are the names of the server. A page whose name is made to resolve to this machine after it
// was loaded has the origin of the server in the eyes of a browser; only its Host header differs.
type hosts struct {
	names map[string]bool
	given bool // by --host: other names are refused on all listeners but unix sockets
	known bool // clients authenticate, which such a page cannot
	pages origins
}

// maxHost is the length of the longest name of a host.
const maxHost = 253

var hostForm = lazy.Pattern(`^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$`)

// isHost reports whether a name has the form of --host.
func isHost(name string) bool { return len(name) <= maxHost && hostForm().MatchString(name) }

// hosts returns the names of localhost, --host and the addresses to listen on.
func (s *Settings) hosts(known bool) (*hosts, error) {
	h := &hosts{names: map[string]bool{"localhost": true}, given: len(s.Host) > 0, known: known}
	var err error
	if h.pages, err = s.origins(); err != nil {
		return nil, err
	}
	for _, name := range s.Host {
		switch {
		case isAddress(name):
			return nil, session.Usage("--host %.80s: an address: want --listen HOST:PORT to listen on it, such as --listen 0.0.0.0:8080; "+
				"--host names the server in requests, and addresses need no name", name)
		case !isHost(name):
			return nil, session.Usage("--host %.80q, want a name without a port; the address to listen on is --listen HOST:PORT", name)
		}
		h.names[plainHost(name)] = true
	}
	for _, address := range slices.Concat(s.Listen, s.GRPC, []string{s.Metrics}) {
		name, _, err := net.SplitHostPort(address)
		if err == nil && isHost(name) && !strings.HasPrefix(address, "unix:") {
			h.names[plainHost(name)] = true
		}
	}
	return h, nil
}

// isAddress reports whether a value of --host is an IP address, with or without a port.
func isAddress(name string) bool {
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	_, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return err == nil
}

// plainHost returns the form in which names are compared.
func plainHost(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// checkedKey is the key of a listener's context: whether the Host header of its requests is checked.
type checkedKey struct{}

// context is http.Server.BaseContext.
func (h *hosts) context(l net.Listener) context.Context {
	_, tcp := l.Addr().(*net.TCPAddr)
	checked := tcp && (h.given || local(l.Addr()) && !h.known)
	return context.WithValue(context.Background(), checkedKey{}, checked)
}

// accept reports whether a Host header, or what replaces it, names this server: an IP address cannot
// be made to resolve to another one.
func (h *hosts) accept(host string) bool {
	u, err := url.Parse("http://" + host)
	if err != nil || u.Host != host {
		return false
	}
	inBrackets := strings.HasPrefix(host, "[")
	if address, err := netip.ParseAddr(u.Hostname()); err == nil {
		return address.Is6() == inBrackets
	}
	return !inBrackets && h.names[plainHost(u.Hostname())]
}

// foreign reports whether a browser sent a request for a page of another origin. A link to this server is
// followed. A page of a browser has an origin of this server behind a proxy, too, where Host may be another name.
func (h *hosts) foreign(r *http.Request, checked bool) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	same := site == "same-origin" || site == "none"
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		if err == nil && strings.EqualFold(u.Host, r.Host) {
			continue
		}
		if !same || checked && (err != nil || !h.names[plainHost(u.Hostname())]) {
			return true
		}
	}
	followed := r.Header.Get("Sec-Fetch-Mode") == "navigate" && (r.Method == http.MethodGet || r.Method == http.MethodHead)
	return site != "" && !same && !followed
}

// isPreface reports whether a request is what a client of HTTP/2 sends first, which package http passes on from ports of HTTP/1.
func isPreface(r *http.Request) bool { return r.Method == "PRI" && r.ProtoMajor == 2 }

// isProbe reports whether a request is a health check in HTTP/1.0 without a Host, as load balancers send it. No browser does.
func isProbe(r *http.Request) bool { return r.Host == "" && !r.ProtoAtLeast(1, 1) && open[r.URL.Path] }

// guard refuses requests for other hosts and from other origins, and those in another protocol.
func (h *hosts) guard(next http.Handler, conns *connections) http.Handler {
	otherProtocol := refusal(http.StatusHTTPVersionNotSupported,
		"HTTP/2: this address speaks HTTP/1.1; gRPC has one of its own, see --grpc-address")
	misdirected := refusal(http.StatusMisdirectedRequest, "the Host header names another server; etrun serve --host NAME adds a name")
	crossing := refusal(http.StatusForbidden, "cross-origin request")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		checked, _ := r.Context().Value(checkedKey{}).(bool)
		switch {
		case isPreface(r):
			conns.answered(r)
			w.Header().Set("Connection", "close")
			otherProtocol.ServeHTTP(w, r)
		case checked && !h.accept(r.Host) && !isProbe(r):
			conns.answered(r)
			misdirected.ServeHTTP(w, r)
		case h.pages.include(r) && isPreflight(r):
			conns.answered(r)
			h.pages.permit(w, r)
		case h.pages.include(r):
			h.pages.allow(w, r)
			next.ServeHTTP(w, r)
		case h.foreign(r, checked):
			conns.answered(r)
			crossing.ServeHTTP(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}
