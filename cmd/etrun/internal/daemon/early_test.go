package daemon

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// unsent are bodies that do not end: the headers that announce them, what is sent at once, and what
// is sent again and again.
var unsent = []struct{ name, headers, text, more string }{
	{"stops", "Content-Length: 100\r\n", "{", ""},
	{"never begins", "Content-Length: 100\r\n", "", ""},
	{"trickles", "Content-Length: 60000\r\n", "{", " "},
	{"is huge", "Content-Length: 1099511627776\r\n", "{", strings.Repeat(" ", 4096)},
	{"has no chunk", "Transfer-Encoding: chunked\r\n", "", ""},
	{"ends in a chunk", "Transfer-Encoding: chunked\r\n", "40\r\n{", ""},
	{"has many chunks", "Transfer-Encoding: chunked\r\n", "1\r\n{\r\n", "1\r\n \r\n"},
	{"has no last chunk", "Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n", ""},
	{"waits for an invitation", "Expect: 100-continue\r\nContent-Length: 100\r\n", "", ""},
	{"is compressed", "Content-Encoding: gzip\r\nContent-Length: 100\r\n", "{", ""},
}

// early are requests that are answered without their bodies, by many handlers.
var early = []string{
	"POST /v2/models/m/infer", "POST /v2/models/none/infer", "PUT /v2/models/m/infer", "POST /v2/models/m/versions/none/infer",
	"GET /v2/health/live", "GET /v2/health/ready", "POST /v2/health/live", "GET /metrics", "POST /metrics", "GET /v2", "GET /v2/models/m",
	"POST /v2/repository/index", "POST /v2/repository/models/m/load", "POST /v2/repository/models/none/unload",
	"POST /v1/completions", "POST /v1/chat/completions", "GET /v1/models", "POST /v1/none", "POST /tokenize", "GET /health",
	"POST //v2/models/m/infer", "GET /v2/../v2",
	"OPTIONS *", "OPTIONS /v2", "TRACE /", "POST /",
}

// sendOpenBody sends a request whose body does not end, and returns when the answer came and when the
// connection was closed.
func sendOpenBody(conn net.Conn, head, text, more string, most time.Duration) (code int, answered, closed time.Duration, err error) {
	begun := time.Now()
	_ = conn.SetDeadline(begun.Add(most))
	if _, err := io.WriteString(conn, head+text); err != nil {
		return 0, 0, 0, err
	}
	done := make(chan struct{})
	defer close(done)
	if more != "" {
		go func() {
			for {
				select {
				case <-done:
					return
				case <-time.After(20 * time.Millisecond):
					_, _ = io.WriteString(conn, more) // fails when the server closes
				}
			}
		}()
	}
	reader := bufio.NewReader(conn)
	answer, err := http.ReadResponse(reader, nil)
	if err == nil {
		code, answered = answer.StatusCode, time.Since(begun)
		_, _ = io.Copy(io.Discard, answer.Body) // may be cut by the end of the connection
	}
	_, err = io.Copy(io.Discard, reader)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return code, answered, 0, err
	}
	return code, answered, time.Since(begun), nil
}

// attackTime is the variable with the duration of attacks, such as 10m, instead of a few seconds.
const attackTime = "ETRUN_ATTACK"

// TestUnsentBodies checks that no request holds its connection by not sending its body: with and
// without authentication and TLS, whichever handler answers. Clients that are not authenticated
// are answered before the time limit of bodies.
func TestUnsentBodies(t *testing.T) {
	a := newAuthority(t)
	cert, key, _ := a.pair(t)
	const limit, slack = 3 * time.Second, 10 * time.Second
	for part, c := range []struct {
		name       string
		token, tls bool
	}{{"open", false, false}, {"token", true, false}, {"open, TLS", false, true}, {"token, TLS", true, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := start(t, func(d *Daemon) {
				d.BodyTimeout, d.AccessLog, d.Connections = limit, false, 1000
				if c.token {
					d.TokenFile = file(t, "tokens", "0123456789abcdef")
				}
				if c.tls {
					d.Cert, d.Key = cert, key
				}
			}, model("m", adder))
			var all sync.WaitGroup
			for i, request := range early {
				for k, b := range unsent {
					if os.Getenv(attackTime) == "" && (i+k+part)%4 > 0 { // the four servers share the combinations
						continue
					}
					all.Go(func() {
						conn, err := r.dial(c.tls)
						if err != nil {
							t.Error(err)
							return
						}
						defer conn.Close()
						head := request + " HTTP/1.1\r\nHost: localhost\r\n" + b.headers + "\r\n"
						code, answered, closed, err := sendOpenBody(conn, head, b.text, b.more, limit+lingering+slack)
						what := fmt.Sprintf("%s, a body that %s", request, b.name)
						switch {
						case err != nil:
							t.Errorf("%s: status %d, not closed: %v", what, code, err)
						case code == 0:
							t.Errorf("%s: closed after %v without an answer", what, closed)
						case c.token && !strings.Contains(request, "/health") && (code != 401 || answered > limit-limit/10):
							t.Errorf("%s: status %d after %v, want 401 at once", what, code, answered)
						}
					})
				}
			}
			all.Wait()
		})
	}
}

// lingering is the time that the server needs to close a connection, see serve.LimitBodies.
const lingering = time.Second

// dial connects to the daemon.
func (r *running) dial(encrypted bool) (net.Conn, error) { return dialTo(r.address(), encrypted) }

func dialTo(address string, encrypted bool) (net.Conn, error) {
	d := &net.Dialer{Timeout: 10 * time.Second}
	if encrypted {
		return tls.DialWithDialer(d, "tcp", address, &tls.Config{InsecureSkipVerify: true})
	}
	return d.Dial("tcp", address)
}

// TestOneVersionOfHTTP checks that no client can select HTTP/2, whose streams would need limits of
// their own.
func TestOneVersionOfHTTP(t *testing.T) {
	a := newAuthority(t)
	cert, key, _ := a.pair(t)
	r := start(t, func(d *Daemon) { d.Cert, d.Key = cert, key }, model("m", adder))
	for _, protocols := range [][]string{{"h2", "http/1.1"}, nil} {
		conn, err := tls.Dial("tcp", r.address(), &tls.Config{InsecureSkipVerify: true, NextProtos: protocols})
		if err != nil {
			t.Fatal(err)
		}
		if p := conn.ConnectionState().NegotiatedProtocol; p == "h2" {
			t.Errorf("of %q the server selects %q", protocols, p)
		}
		_, _ = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if text, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) || strings.HasPrefix(string(text), "\x00") {
			t.Errorf("HTTP/2 without negotiation: %q, %v", text, err)
		}
		conn.Close()
	}
	if conn, err := tls.Dial("tcp", r.address(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}); err == nil {
		conn.Close()
		t.Error("HTTP/2 alone is accepted")
	}
}

// TestDebugBodies checks that clients cannot hold the connections of profiles.
func TestDebugBodies(t *testing.T) {
	t.Parallel()
	r := start(t, func(d *Daemon) { d.Debug, d.BodyTimeout = "127.0.0.1:0", 500*time.Millisecond }, model("m", adder))
	address := r.log.lines("profiles")[0]["address"].(string)
	var all sync.WaitGroup
	for _, b := range unsent {
		all.Go(func() {
			conn, err := dialTo(address, false)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			head := "GET /debug/pprof/cmdline HTTP/1.1\r\nHost: localhost\r\n" + b.headers + "\r\n"
			if code, _, _, err := sendOpenBody(conn, head, b.text, b.more, 5*time.Second); code != 404 || err != nil {
				t.Errorf("a body that %s: %d, %v", b.name, code, err)
			}
		})
	}
	all.Wait()
}
