package daemon

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
)

// status sends a request, target and headers as given, and returns the status of the answer.
func status(t *testing.T, address string, encrypted bool, method, target, headers string) int {
	t.Helper()
	conn, err := dialTo(address, encrypted)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, method+" "+target+" HTTP/1.1\r\nConnection: close\r\n"+headers+"\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%s %s %q: %v", method, target, headers, err)
	}
	answer.Body.Close()
	return answer.StatusCode
}

// A name that resolves to this machine, as the Host header of a page elsewhere, and those of clients
// of this server.
var (
	evilHosts = []string{"evil.example", "evil.example:PORT", "localhost.evil.example", "127.0.0.1.evil.example", "evil.example.", "", ":PORT",
		"localhost@evil.example", "[::1].evil.example", "[evil.example]", "127.1:PORT", "2130706433", "h", "localhost:80:80",
		"[localhost]", "[localhost]:PORT", "[127.0.0.1]", "[127.0.0.1", "[::1", "::1]", "localhost:http", "localhost..",
		"localhost,evil.example", "localhost%00"}
	goodHosts = []string{"localhost", "localhost:PORT", "LocalHost:PORT", "localhost.", "127.0.0.1", "127.0.0.1:PORT", "[::1]", "[::1]:PORT",
		"10.1.2.3:PORT", "localhost:", "[::ffff:127.0.0.1]:PORT"}
)

// hostPaths are requests to all kinds of handlers.
var hostPaths = []string{"GET /v2/health/live", "GET /v2/health/ready", "GET /v2", "GET /v2/models/m", "POST /v2/models/m/infer",
	"GET /metrics", "GET /", "GET /page/page.js",
	"POST /v2/repository/index", "POST /v2/repository/models/m/load", "POST /v2/repository/models/m/unload", "GET /v1/models",
	"POST /v1/chat/completions", "POST /detokenize", "GET /health", "GET /none", "OPTIONS *", "GET //v2"}

// TestHosts checks on all kinds of listeners and paths which names of the server are accepted.
func TestHosts(t *testing.T) {
	t.Parallel()
	cert, key, _ := newAuthority(t).pair(t)
	for _, c := range []struct {
		name      string
		change    func(*Daemon)
		more      []string // accepted, in addition to goodHosts
		any       bool
		encrypted bool
	}{
		{name: "local"},
		{name: "local, TLS", encrypted: true, change: func(d *Daemon) { d.Cert, d.Key = cert, key }},
		{name: "with a name", change: func(d *Daemon) { d.Host = []string{"Mine.example"} },
			more: []string{"mine.example", "MINE.example.:PORT"}},
		{name: "authenticated", any: true, change: func(d *Daemon) { d.TokenFile = file(t, "tokens", "0123456789abcdef") }},
		{name: "authenticated, with a name", change: func(d *Daemon) {
			d.TokenFile, d.Host = file(t, "tokens", "0123456789abcdef"), []string{"mine.example"}
		}, more: []string{"mine.example:PORT"}},
		{name: "all addresses", any: true, change: func(d *Daemon) { d.Listen, d.Insecure = []string{"0.0.0.0:0"}, true }},
		{name: "all addresses, with a name", change: func(d *Daemon) {
			d.Listen, d.Insecure, d.Host = []string{"0.0.0.0:0"}, true, []string{"mine.example"}
		}, more: []string{"mine.example:PORT"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := start(t, func(d *Daemon) {
				d.Control, d.AccessLog = true, false
				if c.change != nil {
					c.change(d)
				}
			}, model("m", adder))
			address := "127.0.0.1" + r.address()[strings.LastIndex(r.address(), ":"):]
			port := address[strings.LastIndex(address, ":")+1:]
			try := func(list []string, refused bool) {
				for i, host := range list {
					for k, path := range hostPaths {
						if i > 1 && k != i%len(hostPaths) {
							continue // all paths with two hosts, one path with the others
						}
						method, target, _ := strings.Cut(path, " ")
						code := status(t, address, c.encrypted, method, target, "Host: "+strings.Replace(host, "PORT", port,
							1)+"\r\nAuthorization: Bearer 0123456789abcdef\r\n")
						if code == 400 && strings.Contains(host, "@") {
							continue // net/http refuses it
						}
						if (code == http.StatusMisdirectedRequest) != refused {
							t.Errorf("%s, host %q: %d, want a refusal %v", path, host, code, refused)
						}
					}
				}
			}
			try(evilHosts, !c.any)
			try(slices.Concat(goodHosts, c.more), false)
			if code := status(t, address, c.encrypted, "GET", "http://evil.example/v2", "Host: localhost\r\n"); (code == 421) == c.any {
				t.Errorf("an absolute target: %d", code)
			}
			if code := status(t, address, c.encrypted, "GET", "http://localhost/v2/health/live", "Host: evil.example\r\n"); code != 200 {
				t.Errorf("an absolute target with a name of the server: %d", code)
			}
		})
	}
	for name, want := range map[string]string{"": "a name", "a b": "a name", "mine:80": "--listen", "http://mine": "a name", "*": "a name", ".": "a name",
		"0.0.0.0": "--listen", "127.0.0.1": "--listen", "0.0.0.0:80": "--listen", "::": "--listen", "[::1]": "--listen", "[::]:80": "--listen"} {
		s := Defaults()
		s.Host = []string{name}
		if _, err := s.hosts(false); err == nil || !strings.Contains(err.Error(), session.ErrUsage.Error()) || !strings.Contains(err.Error(), want) {
			t.Errorf("--host %q: %v, want an error with %q", name, err, want)
		}
	}
}

// TestDebugHosts checks Host and Origin on the address of profiles.
// It does not run beside TestDebug: a process has one execution tracer.
func TestDebugHosts(t *testing.T) {
	r := start(t, func(d *Daemon) {
		d.Debug, d.TokenFile = "127.0.0.1:0", file(t, "tokens", "0123456789abcdef")
	}, model("m", adder))
	address := r.log.lines("profiles")[0]["address"].(string)
	for headers, want := range map[string]int{
		"Host: evil.example\r\n": 421, "Host: " + address + "\r\n": 200, "Host: localhost\r\n": 200, "Host: \r\n": 421,
		"Host: localhost\r\nOrigin: http://evil.example\r\n": 403, "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n": 403,
	} {
		for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/trace?seconds=1"} {
			if code := status(t, address, false, "GET", path, headers); code != want {
				t.Errorf("%s with %q: %d, want %d", path, headers, code, want)
			}
		}
	}
}

// TestCORS checks which pages of other origins may use the server, and read answers.
func TestCORS(t *testing.T) {
	r := start(t, func(d *Daemon) {
		d.TokenFile, d.CORS = file(t, "tokens", "0123456789abcdef"), []string{"https://App.example", "http://localhost:3000"}
	}, model("m", adder))
	const token = "Bearer 0123456789abcdef"
	for _, c := range []struct {
		method, path, origin, token string
		code                        int
		allowed                     bool
	}{
		{"GET", "/v2", "https://app.example", token, 200, true},
		{"GET", "/v2", "https://app.example", "", 401, true},
		{"GET", "/v2", "http://localhost:3000", token, 200, true},
		{"GET", "/v2", "http://localhost:3001", token, 403, false},
		{"GET", "/v2", "http://app.example", token, 403, false},
		{"GET", "/v2", "https://app.example.evil.example", token, 403, false},
		{"GET", "/v2", "null", token, 403, false},
		{"OPTIONS", "/v2/models/m/infer", "https://app.example", "", 204, true},
		{"OPTIONS", "/v2/models/m/infer", "https://evil.example", "", 403, false},
	} {
		request, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+r.address()+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Origin", c.origin)
		request.Header.Set("Sec-Fetch-Site", "cross-site")
		if c.token != "" {
			request.Header.Set("Authorization", c.token)
		}
		if c.method == "OPTIONS" {
			request.Header.Set("Access-Control-Request-Method", "POST")
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		want := ""
		if c.allowed {
			want = c.origin
		}
		if got := answer.Header.Get("Access-Control-Allow-Origin"); answer.StatusCode != c.code || got != want {
			t.Errorf("%s %s from %s: %d, allowed for %q; want %d, %q", c.method, c.path, c.origin, answer.StatusCode, got, c.code, want)
		}
		if headers := answer.Header.Get("Access-Control-Allow-Headers"); (c.code == 204) != strings.Contains(headers, "Authorization") {
			t.Errorf("%s from %s: headers %q", c.method, c.origin, headers)
		}
	}
	for _, origin := range []string{"", "*", "app.example", "https://", "https://app.example/", "https://a@app.example", "file://x", "https://*.example"} {
		s := Defaults()
		s.CORS = []string{origin}
		if _, err := s.hosts(false); err == nil || !strings.Contains(fmt.Sprint(err), session.ErrUsage.Error()) {
			t.Errorf("--cors %q: %v", origin, err)
		}
	}
}

// TestPreflight: a page that may use the server may send any header that it asks for.
func TestPreflight(t *testing.T) {
	r := start(t, func(d *Daemon) { d.CORS = []string{"https://app.example"} }, model("m", adder))
	for names, want := range map[string]string{
		"authorization,content-type,x-stainless-os,x-stainless-retry-count": "authorization,content-type,x-stainless-os,x-stainless-retry-count",
		"x-a": "x-a", "x-a\x80": "Authorization", "": "Authorization", "a;b": "Authorization",
	} {
		code, _, h := r.ask("OPTIONS", "/v1/models", "", "Origin", "https://app.example", "Access-Control-Request-Method", "POST",
			"Access-Control-Request-Headers", names)
		if got := h.Get("Access-Control-Allow-Headers"); code != 204 || !strings.HasPrefix(got, want) || !strings.Contains(strings.Join(h.Values("Vary"), ","), "Origin") {
			t.Errorf("%q: %d, allowed %q, want %q", names, code, got, want)
		}
	}
}

// TestOrigins checks which pages of browsers may send requests.
func TestOrigins(t *testing.T) {
	r := start(t, func(d *Daemon) { d.Control = true }, model("m", adder))
	host := "Host: " + r.address() + "\r\n"
	for _, c := range []struct {
		headers           string
		get, post, follow int
	}{
		{"", 200, 200, 200},
		{"Origin: http://" + r.address() + "\r\n", 200, 200, 200},
		{"Origin: http://evil.example\r\n", 403, 403, 403},
		{"Origin: null\r\n", 403, 403, 403},
		{"Origin: http://localhost:1\r\n", 403, 403, 403},
		{"Origin: http://" + r.address() + "\r\nOrigin: http://evil.example\r\n", 403, 403, 403},
		{"Sec-Fetch-Site: same-origin\r\n", 200, 200, 200},
		{"Sec-Fetch-Site: none\r\n", 200, 200, 200},
		{"Sec-Fetch-Site: same-origin\r\nOrigin: http://" + r.address() + "\r\n", 200, 200, 200},
		{"Sec-Fetch-Site: same-origin\r\nOrigin: https://localhost:8443\r\n", 200, 200, 200}, // a proxy before the server
		{"Sec-Fetch-Site: same-origin\r\nOrigin: http://evil.example\r\n", 403, 403, 403},
		{"Sec-Fetch-Site: none\r\nOrigin: http://evil.example\r\n", 403, 403, 403},
		{"Sec-Fetch-Site: same-origin\r\nOrigin: null\r\n", 403, 403, 403},
		{"Sec-Fetch-Site: same-site\r\n", 403, 403, 200},
		{"Sec-Fetch-Site: cross-site\r\n", 403, 403, 200},
		{"Sec-Fetch-Site: cross-site\r\nOrigin: http://evil.example\r\n", 403, 403, 403},
	} {
		for _, path := range []string{"/v2", "/metrics", "/v2/models/m", "/v2/health/live"} {
			if code := status(t, r.address(), false, "GET", path, host+c.headers); code != c.get {
				t.Errorf("GET %s with %q: %d, want %d", path, c.headers, code, c.get)
			}
			if code := status(t, r.address(), false, "GET", path, host+c.headers+"Sec-Fetch-Mode: navigate\r\n"); code != c.follow {
				t.Errorf("GET %s, a link, with %q: %d, want %d", path, c.headers, code, c.follow)
			}
		}
		for _, path := range []string{"/v2/repository/index", "/v2/repository/models/m/load"} {
			if code := status(t, r.address(), false, "POST", path, host+c.headers); code != c.post {
				t.Errorf("POST %s with %q: %d, want %d", path, c.headers, code, c.post)
			}
		}
	}
}

// TestModelNames checks that the names of models are in no answer to a client that is not
// authenticated, and that its requests do not change the answers to others.
func TestModelNames(t *testing.T) {
	r := start(t, func(d *Daemon) {
		d.Control, d.TokenFile = true, file(t, "tokens", "0123456789abcdef")
	}, model("hidden", adder), model("other", adder))
	for _, request := range append(early, "GET /v2/models/hidden", "POST /v2/models/hidden/infer", "GET /v2/models/hidden/ready",
		"GET /v2/models/nothing/ready",
		"POST /v2/repository/models/hidden/unload", "GET /v2/health/ready/", "GET /v2/health/../models/hidden", "HEAD /v2/health/ready") {
		method, path, _ := strings.Cut(request, " ")
		conn, err := dialTo(r.address(), false)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = io.WriteString(conn, method+" "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		text, err := io.ReadAll(conn)
		conn.Close()
		asked := strings.Contains(path, "hidden") // a redirect names its path
		if err != nil || strings.Contains(string(text), "hidden") && !asked || strings.Contains(string(text), "other") {
			t.Errorf("%s: %q, %v", request, text, err)
		}
		if open := strings.HasSuffix(path, "/health/live") || strings.HasSuffix(path, "/health/ready") || path == healthPath; !open &&
			!strings.HasPrefix(string(text), "HTTP/1.1 401") {
			t.Errorf("%s: %q, want 401", request, text)
		}
	}
	if code, text, _ := r.ask("GET", "/metrics", "", "Authorization", "Bearer 0123456789abcdef"); code != 200 ||
		!strings.Contains(text, "hidden") {
		t.Errorf("with a token: %d", code)
	}
}

// TestUnloadedModel checks that a server without a model that was unloaded on purpose is ready, while
// the model is not.
func TestUnloadedModel(t *testing.T) {
	r := start(t, func(d *Daemon) { d.Control = true }, model("m", adder), model("n", adder))
	for _, c := range []struct {
		method, path string
		code         int
	}{
		{"POST", "/v2/repository/models/m/unload", 200}, {"GET", "/v2/health/ready", 200}, {"GET", "/v2/models/m/ready", 404},
		{"GET", "/v2/models/n/ready", 200}, {"POST", "/v2/repository/models/m/load", 200}, {"GET", "/v2/models/m/ready", 200},
		{"POST", "/v2/repository/models/n/unload", 200}, {"POST", "/v2/repository/models/m/unload", 200}, {"GET", "/v2/health/ready", 200},
	} {
		if code, text, _ := r.ask(c.method, c.path, ""); code != c.code {
			t.Errorf("%s: %d %s, want %d", c.path, code, text, c.code)
		}
	}
}
