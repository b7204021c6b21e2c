package daemon

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// sendRaw sends bytes and returns the answer's status and body.
func sendRaw(t *testing.T, address, request string) (int, string) {
	t.Helper()
	conn, err := dialTo(address, false)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(request, " ")
	answer, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%q: %v", request, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Errorf("%q: %v", request, err)
	}
	return answer.StatusCode, string(body)
}

// TestProbes answers health checks of load balancers, which send neither a Host nor other headers. Other requests without a Host are
// refused like those with a foreign one.
func TestProbes(t *testing.T) {
	r := start(t, func(d *Daemon) { d.Metrics = "127.0.0.1:0" }, model("m", digits))
	for request, want := range map[string]int{
		"GET /v2/health/ready HTTP/1.0\r\n\r\n":     200,
		"GET /v2/health/live HTTP/1.0\r\n\r\n":      200,
		"GET /health HTTP/1.0\r\n\r\n":              200,
		"HEAD /v2/health/ready HTTP/1.0\r\n\r\n":    200,
		"HEAD /v2/health/live HTTP/1.0\r\n\r\n":     200,
		"OPTIONS /v2/health/live HTTP/1.0\r\n\r\n":  405,
		"OPTIONS /v2/health/ready HTTP/1.0\r\n\r\n": 405,

		"GET /v2/health/ready HTTP/1.0\r\nHost: evil.example\r\n\r\n": 421,
		"GET /v2/health/ready HTTP/1.1\r\nHost: \r\n\r\n":             421,
		"GET /v2/health/ready HTTP/1.1\r\n\r\n":                       400,
		"GET /v2 HTTP/1.0\r\n\r\n":                                    421,
		"GET /metrics HTTP/1.0\r\n\r\n":                               421,
		"POST /v2/repository/index HTTP/1.0\r\n\r\n":                  421,
	} {
		if got, body := sendRaw(t, r.address(), request); got != want {
			t.Errorf("%q: %d %s, want %d", request, got, body, want)
		}
	}
}

// TestPreface answers clients of HTTP/2 on addresses for HTTP/1 with the reason.
func TestPreface(t *testing.T) {
	r := start(t, func(d *Daemon) { d.Metrics = "127.0.0.1:0" }, model("m", digits))
	metrics := r.log.lines("metrics")[0]["address"].(string)
	for _, address := range []string{r.address(), metrics} {
		for _, more := range []string{"", "\x00\x00\x00\x04\x00\x00\x00\x00\x00"} {
			got, body := sendRaw(t, address, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+more)
			if got != http.StatusHTTPVersionNotSupported || !strings.Contains(body, "HTTP/2") || !strings.Contains(body, "--grpc-address") {
				t.Errorf("%s: %d %s, want 505 and what the address speaks", address, got, body)
			}
		}
	}
}
