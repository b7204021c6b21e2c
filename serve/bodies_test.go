package serve_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/etrun-go/etrun/serve"
)

// limited starts a server whose handler reads a part of the body and answers after a while.
func limited(t *testing.T, limit, work time.Duration) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(serve.LimitBodies(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/early" {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				w.WriteHeader(http.StatusRequestTimeout)
				return
			}
		}
		select {
		case <-time.After(work):
			_, _ = io.WriteString(w, "done")
		case <-r.Context().Done():
			w.WriteHeader(http.StatusBadGateway)
		}
	}), limit))
	s.Config.ReadTimeout = limit
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// TestLimitBodies checks that the time limit of bodies does not end what follows them, and that
// connections are kept when the body of a request that is answered early has arrived.
func TestLimitBodies(t *testing.T) {
	s := limited(t, 300*time.Millisecond, 700*time.Millisecond)
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	reader := bufio.NewReader(conn)
	for _, request := range []string{
		"GET / HTTP/1.1\r\nHost: h\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody",
		"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
		"POST /early HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody",
		"POST /early HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\n\r\n",
	} {
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatalf("%q: %v", request, err)
		}
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != 200 || string(text) != "done" || answer.Close {
			t.Errorf("%q: %d %q, closing %v, %v", request, answer.StatusCode, text, answer.Close, err)
		}
	}
}

// TestLimitBodiesNextRequest checks that the rest of a body is never read as the next request.
func TestLimitBodiesNextRequest(t *testing.T) {
	s := limited(t, 300*time.Millisecond, 0)
	for _, path := range []string{"/", "/early"} {
		for _, headers := range []string{"Content-Length: 1000\r\n", "Transfer-Encoding: chunked\r\n",
			"Expect: 100-continue\r\nContent-Length: 1000\r\n"} {
			t.Run(path+" "+headers, func(t *testing.T) {
				t.Parallel()
				conn, err := net.Dial("tcp", s.Listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				next := "GET /next HTTP/1.1\r\nHost: h\r\n\r\n"
				_, _ = io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: h\r\n"+headers+"\r\n"+strings.Repeat("x", 10))
				for range 10 {
					time.Sleep(50 * time.Millisecond)
					_, _ = io.WriteString(conn, next) // the server may have closed
				}
				_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
				text, _ := io.ReadAll(conn) // may end with a reset
				if n := strings.Count(string(text), "HTTP/1.1 200") + strings.Count(string(text), "HTTP/1.1 4"); n > 1 {
					t.Errorf("%s, %q: %d answers: %q", path, headers, n, text)
				}
				conn.Close()
			})
		}
	}
}
