// Package loopback shows a page to the browsers of this machine.
package loopback

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"time"
)

// Server serves one page on a loopback address, under a path that cannot be guessed: other users of the machine may
// reach the address.
type Server struct {
	URL string

	listener net.Listener
	http     *http.Server
}

// policy is the content security policy of pages with scripts and styles inside.
const policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; " +
	"frame-ancestors 'none'"

const timeout = 10 * time.Second

// Listen opens a port of the loopback address for a page.
func Listen(ctx context.Context, page []byte) (*Server, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("no port for the page: %w", err)
	}
	path := "/" + rand.Text()
	s := &Server{URL: "http://" + l.Addr().String() + path, listener: l}
	s.http = &http.Server{Handler: handler(l.Addr().(*net.TCPAddr).Port, path, page), ReadTimeout: timeout, IdleTimeout: timeout,
		MaxHeaderBytes: 16 << 10, ErrorLog: nil}
	return s, nil
}

// Serve serves the page until ctx ends; that is no error.
func (s *Server) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = s.http.Close() })
	defer stop()
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// handler answers requests for the page. A page of another site whose name was made to resolve to this machine has another
// Host, and its requests have another Origin.
func handler(port int, path string, page []byte) http.Handler {
	hosts := map[string]bool{"127.0.0.1:" + strconv.Itoa(port): true, "localhost:" + strconv.Itoa(port): true}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		switch {
		case !hosts[r.Host]:
			http.Error(w, "the Host header names another server", http.StatusMisdirectedRequest)
		case foreign(r, hosts):
			http.Error(w, "cross-origin request", http.StatusForbidden)
		case r.URL.Path != path:
			http.NotFound(w, r)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "want GET", http.StatusMethodNotAllowed)
		default:
			h.Set("Content-Type", "text/html; charset=utf-8")
			h.Set("Content-Length", strconv.Itoa(len(page)))
			if r.Method == http.MethodGet {
				_, _ = w.Write(page) // the browser may be closed
			}
		}
	})
}

// foreign reports whether a page of another origin sent a request.
func foreign(r *http.Request, hosts map[string]bool) bool {
	for _, origin := range r.Header.Values("Origin") {
		if u, err := url.Parse(origin); err != nil || u.Scheme != "http" || !hosts[u.Host] {
			return true
		}
	}
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none"
}

// Open opens an address in the browser of the desktop. Without a desktop it returns an error.
func Open(address string) error {
	name := "xdg-open"
	switch {
	case runtime.GOOS == "darwin":
		name = "open"
	case os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "":
		return errors.New("this session has no desktop")
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return err
	}
	c := exec.Command(path, address)
	if err := c.Start(); err != nil {
		return err
	}
	go func() { _ = c.Wait() }()
	return nil
}
