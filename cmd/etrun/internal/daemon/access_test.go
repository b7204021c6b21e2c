package daemon

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"

	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

func itoa(n int) string { return strconv.Itoa(n) }

// movedOutput returns a bundle whose expected output differs from the program's.
func movedOutput(t *testing.T, data []byte) []byte {
	t.Helper()
	b, err := pte.ParseBundle(data, pte.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	out := &b.Suites[0].Cases[0].Outputs[0]
	moved := tensor.AlignedBytes(len(out.Data))
	copy(moved, out.Data)
	tensor.View[float32](moved)[0] += 100
	out.Data = moved
	return ptetest.WriteBundle(b)
}

// file writes a test file and returns its path.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestToken(t *testing.T) {
	tokens := file(t, "tokens", "# who\nfirst-token-0123456\n\n second-token-012345 \n")
	r := start(t, func(d *Daemon) { d.TokenFile = tokens }, model("m", adder))
	for _, c := range []struct {
		path, header string
		code         int
	}{
		{"/v2", "", 401}, {"/v2", "Bearer wrong", 401}, {"/v2", "Basic first-token-0123456", 401}, {"/v2", "Bearer ", 401},
		{"/v2", "Bearer first-token-012345", 401}, {"/v2", "Bearer first-token-01234567", 401}, {"/v2", "Bearer # who", 401},
		{"/v2", "Bearer first-token-0123456", 200}, {"/v2", "bearer second-token-012345", 200},
		{"/metrics", "", 401}, {"/v2/openapi.json", "", 401}, {"/gone", "", 401},
		{"/v2/health/live", "", 200}, {"/v2/health/ready", "", 200}, {"/health", "", 200}, {"/health/", "", 401}, {"/tokenize", "", 401},
	} {
		code, text, h := r.ask("GET", c.path, "", "Authorization", c.header)
		if code != c.code || code == 401 && (h.Get("WWW-Authenticate") == "" || !strings.Contains(text, `"error"`)) {
			t.Errorf("%s with %q: %d, %s, want %d", c.path, c.header, code, text, c.code)
		}
	}
	if err := os.WriteFile(tokens, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.reload(t.Context())
	if code, _, _ := r.ask("GET", "/v2", "", "Authorization", "Bearer first-token-0123456"); code != 200 || len(r.log.lines("secrets not reloaded")) != 1 {
		t.Errorf("after tokens that cannot be read: %d", code)
	}
	if err := os.WriteFile(tokens, []byte("third-token-0123456"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.reload(t.Context())
	for token, want := range map[string]int{"first-token-0123456": 401, "third-token-0123456": 200} {
		if code, _, _ := r.ask("GET", "/v2", "", "Authorization", "Bearer "+token); code != want {
			t.Errorf("after new tokens, %s: %d, want %d", token, code, want)
		}
	}
}

// authority signs certificates for a test.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	a.pem, a.key = a.sign(t, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	block, _ := pem.Decode([]byte(a.pem))
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	a.cert = cert
	return a
}

// sign creates a certificate, signed by the authority, or self-signed if it has none yet.
func (a *authority) sign(t *testing.T, c *x509.Certificate) (text string, key *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: "test"}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), key
}

// pair creates a certificate and its key, as files and for a client.
func (a *authority) pair(t *testing.T) (cert, key string, pair tls.Certificate) {
	t.Helper()
	text, private := a.sign(t, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}})
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	secret := string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
	if pair, err = tls.X509KeyPair([]byte(text), []byte(secret)); err != nil {
		t.Fatal(err)
	}
	return file(t, "cert.pem", text), file(t, "key.pem", secret), pair
}

// TestClientCertificates checks that clients need a certificate of the authority, except for health
// checks.
func TestClientCertificates(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	cert, key, _ := ours.pair(t)
	r := start(t, func(d *Daemon) { d.Cert, d.Key, d.ClientCA = cert, key, file(t, "ca.pem", ours.pem) }, model("m", adder))
	r.url = "https://" + r.address()
	_, _, good := ours.pair(t)
	_, _, bad := theirs.pair(t)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(ours.pem))
	for _, c := range []struct {
		name    string
		pairs   []tls.Certificate
		path    string
		code    int
		refused bool
	}{
		{"ours", []tls.Certificate{good}, "/v2", 200, false},
		{"none", nil, "/v2", 401, false},
		{"none, health", nil, "/v2/health/ready", 200, false},
		{"another authority's", []tls.Certificate{bad}, "/v2", 0, true},
	} {
		// GetClientCertificate sends the certificate whatever authorities the server names.
		config := &tls.Config{RootCAs: roots, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if len(c.pairs) == 0 {
				return &tls.Certificate{}, nil
			}
			return &c.pairs[0], nil
		}}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
		answer, err := client.Get(r.url + c.path)
		if err != nil || c.refused {
			if (err != nil) != c.refused {
				t.Errorf("%s: %v, want a refusal %v", c.name, err, c.refused)
			}
			continue
		}
		answer.Body.Close()
		client.CloseIdleConnections()
		if answer.StatusCode != c.code {
			t.Errorf("%s: %d, want %d", c.name, answer.StatusCode, c.code)
		}
	}
}

// TestListenRules checks that listening to other machines requires TLS and authentication, or
// --insecure, and that limits that contradict each other are refused.
func TestListenRules(t *testing.T) {
	a := newAuthority(t)
	cert, key, _ := a.pair(t)
	token := file(t, "tokens", "0123456789abcdef")
	for _, c := range []struct {
		name   string
		change func(*Settings)
		ok     bool
	}{
		{"this machine", func(s *Settings) { s.Listen = []string{"127.0.0.1:0", "[::1]:0", "localhost:0"} }, true},
		{"all addresses", func(s *Settings) { s.Listen = []string{"0.0.0.0:0"} }, false},
		{"no address", func(s *Settings) { s.Listen = []string{":0"} }, false},
		{"one of two", func(s *Settings) { s.Listen = []string{"127.0.0.1:0", ":0"} }, false},
		{"encrypted", func(s *Settings) { s.Listen, s.Cert, s.Key = []string{":0"}, cert, key }, false},
		{"known callers", func(s *Settings) { s.Listen, s.TokenFile = []string{":0"}, token }, false},
		{"both", func(s *Settings) { s.Listen, s.Cert, s.Key, s.TokenFile = []string{":0"}, cert, key, token }, true},
		{"told so", func(s *Settings) { s.Listen, s.Insecure = []string{":0"}, true }, true},
		{"a key alone", func(s *Settings) { s.Key = key }, false},
		{"no port", func(s *Settings) { s.Listen = []string{"localhost"} }, false},
		{"bodies larger than all requests", func(s *Settings) { s.Body, s.Busy = 1<<20, 1<<20-1 }, false},
		{"a body as large as all requests", func(s *Settings) { s.Body, s.Busy = 1<<20, 1<<20 }, true},
		{"few bytes of all requests", func(s *Settings) { s.Busy = 1 << 20 }, true},
		{"no bytes of all requests", func(s *Settings) { s.Busy = 0 }, false},
		{"systemd without systemd", func(s *Settings) { s.Listen = []string{"systemd"} }, false},
		{"a mode of decimal digits", func(s *Settings) { s.Listen, s.SocketMode = []string{"unix:" + file(t, "x", "") + ".sock"}, "0998" }, false},
	} {
		s := Defaults()
		c.change(&s)
		k := &secretStore{settings: &s}
		err := errors.Join(s.check(), k.read(t.Context()))
		var list []net.Listener
		if err == nil {
			list, err = s.listen(t.Context(), listenFlag, s.Listen, k.tls("http/1.1"), k.known())
		}
		for _, l := range list {
			l.Close()
		}
		if (err == nil) != c.ok || err != nil && !errors.Is(err, session.ErrUsage) {
			t.Errorf("%s: %v, want one that is taken %v", c.name, err, c.ok)
		}
	}
}

// TestUnixSocket checks that a socket belongs to its owner, and replaces unused sockets only.
func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	left, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	left.(*net.UnixListener).SetUnlinkOnClose(false)
	left.Close()
	r := start(t, func(d *Daemon) { d.Listen = []string{"unix:" + path} }, model("m", adder))
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	r.url = "http://unix"
	r.client.Transport = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", path) }}
	if code, text, _ := r.ask("POST", "/v2/models/m/infer", adderBody); code != 200 {
		t.Errorf("%d, %s", code, text)
	}
	s := Defaults()
	for name, other := range map[string]string{"one in use": path, "a file": file(t, "f", "")} {
		s.Listen = []string{"unix:" + other}
		if _, err := s.listen(t.Context(), listenFlag, s.Listen, nil, false); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// TestTrust checks that only files with a signature of the key are served.
func TestTrust(t *testing.T) {
	public, private, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(adder)
	if err != nil {
		t.Fatal(err)
	}
	old := string(minisign.Sign(private, data)) // a legacy signature of the bytes
	reader := minisign.NewReader(bytes.NewReader(data))
	if _, err := io.Copy(io.Discard, reader); err != nil {
		t.Fatal(err)
	}
	signature := string(reader.Sign(private))
	text, err := public.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, trust, data, signature string
		ok                           bool
	}{
		{"signed", public.String(), string(data), signature, true},
		{"signed, the key in a file", file(t, "key.pub", string(text)), string(data), signature, true},
		{"legacy signature", public.String(), string(data), old, true},
		{"legacy signature, changed file", public.String(), string(data) + "x", old, false},
		{"another key", other.String(), string(data), signature, false},
		{"changed", public.String(), string(data) + "x", signature, false},
		{"no signature", public.String(), string(data), "", false},
		{"not a signature", public.String(), string(data), "x", false},
		{"no key", "nothing", string(data), signature, false},
	} {
		m := model("m", file(t, "model.pte", c.data))
		m.Trust = c.trust
		m.Options.Say = func(string, ...any) {}
		if c.signature != "" {
			if err := os.WriteFile(m.Path+".minisig", []byte(c.signature), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p, err := m.open(t.Context(), &modelFiles{trust: m.Trust})
		if (err == nil) != c.ok {
			t.Errorf("%s: %v, want one that is taken %v", c.name, err, c.ok)
		}
		if err == nil {
			p.Close()
		}
	}
}

// TestConnections checks that connections with a request replace idle ones, and that new ones are
// bounded, too.
func TestConnections(t *testing.T) {
	t.Parallel()
	const most = 8
	r := start(t, func(d *Daemon) { d.Connections = most }, model("m", adder))
	var idle []net.Conn
	for i := range 100 {
		c, err := net.Dial("tcp", r.address())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if i%2 == 0 { // one request, then silence
			if _, err := io.WriteString(c, "GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Read(make([]byte, 1)); err != nil { // else one could be idle later than the client below, whose connection is closed then
				t.Fatal(err)
			}
		}
		idle = append(idle, c)
	}
	for range 5 {
		if code, text, _ := r.ask("POST", "/v2/models/m/infer", adderBody); code != 200 {
			t.Fatalf("with idle connections: %d, %s", code, text)
		}
	}
	for range maxNew {
		c, err := net.Dial("tcp", r.address())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	r.ask("POST", "/v2/models/m/infer", adderBody)
	closed := 0
	for _, c := range idle {
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		if _, err := io.Copy(io.Discard, c); err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			closed++
		}
	}
	if closed < len(idle)-most {
		t.Errorf("%d of %d connections were closed, want at least %d", closed, len(idle), len(idle)-most)
	}
}
