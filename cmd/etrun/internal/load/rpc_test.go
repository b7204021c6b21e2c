package load

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/etrun-go/etrun/serve/grpc"
)

// rpcServer serves HTTP/2 for gRPC, and returns its URL and the configuration of clients.
func rpcServer(t *testing.T, h http.Handler, encrypted bool) (string, *tls.Config) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	t.Cleanup(s.Close)
	if !encrypted {
		s.Config.Protocols = new(http.Protocols)
		s.Config.Protocols.SetUnencryptedHTTP2(true)
		s.Start()
		return "grpc://" + s.Listener.Addr().String(), nil
	}
	s.EnableHTTP2 = true
	s.StartTLS()
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return "grpcs://" + s.Listener.Addr().String(), &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

// Requests over gRPC are answered by package serve, with and without TLS; different requests are sent in turn, with the token.
func TestInferRPC(t *testing.T) {
	calls := grpc.New(newModels(t), grpc.Options{})
	var known atomic.Int64
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer secret" {
			known.Add(1)
		}
		calls.ServeHTTP(w, r)
	})
	for _, encrypted := range []bool{false, true} {
		url, config := rpcServer(t, h, encrypted)
		c := newTestClient(t, Options{URL: url, TLS: config, Token: "secret"})
		if names, err := c.Models(t.Context()); err != nil || !slices.Equal(names, []string{"digits", "sums"}) {
			t.Errorf("models %q, %v", names, err)
		}
		for _, version := range []string{"", "forward"} {
			s := inferOf(t, c, "digits", version, true)
			if !c.IsRPC() || bytes.Equal(s.requests[0].body, s.requests[1].body) || s.Bytes() < 256 {
				t.Errorf("gRPC %v, %d bytes", c.IsRPC(), s.Bytes())
			}
			for n := range int64(5) {
				if _, err := s.Send(t.Context(), n); err != nil {
					t.Errorf("%s: %v", url, err)
				}
			}
		}
		if known.Swap(0) < 12 {
			t.Error("calls without the token")
		}
		if _, err := c.Describe(t.Context(), "none", ""); !isClass(err, "code not_found") || !strings.Contains(err.Error(), "none") {
			t.Error(err)
		}
		l := (&Plan{Clients: 2, Duration: 300 * ms}).Run(t.Context(), inferOf(t, c, "sums", "", true))
		if l.Answered == 0 || l.Failed != 0 {
			t.Errorf("%+v", l)
		}
	}
}

// A prepared message is sent many times, and is the same each time.
func TestMessagesStay(t *testing.T) {
	body := bytes.Repeat([]byte("x"), 1<<20)
	url, _ := rpcServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := "0"
		if got, err := io.ReadAll(r.Body); err != nil || !bytes.HasSuffix(got, body) || len(got) != len(body)+5 {
			status = "3"
		}
		grpcAnswer(append([]byte{0, 0, 0, 3, 0xe8}, make([]byte, 1000)...), status, "")(w, r)
	}), false)
	s := &Infer{newTestClient(t, Options{URL: url}), []*request{{body: bytes.Clone(body)}}}
	l := (&Plan{Clients: 4, Duration: 200 * ms}).Run(t.Context(), s)
	if l.Answered == 0 || l.Failed != 0 || !bytes.Equal(body, s.requests[0].body) {
		t.Errorf("%d answered, %d failed", l.Answered, l.Failed)
	}
}

// grpcAnswer answers with a message, and a status unless that is empty.
func grpcAnswer(message []byte, status, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status, Grpc-Message")
		_, _ = w.Write(message)
		if status != "" {
			w.Header().Set("Grpc-Status", status)
			w.Header().Set("Grpc-Message", text)
		}
	}
}

// Each failure of a call has its class, whatever a server sends.
func TestClassesRPC(t *testing.T) {
	message := func(kind byte, size uint32, data string) []byte {
		return append(binary.BigEndian.AppendUint32([]byte{kind}, size), data...)
	}
	empty := message(0, 0, "")
	stop := make(chan struct{})
	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
		class   Class
	}{
		{"success", grpcAnswer(empty, "0", ""), ""},
		{"full queue", grpcAnswer(nil, "8", "the queue is full"), "code resource_exhausted"},
		{"a long text", grpcAnswer(nil, "8", strings.Repeat("x", 5000)), "code resource_exhausted"},
		{"no status", grpcAnswer(empty, "", ""), Closed},
		{"no message", grpcAnswer(nil, "0", ""), Bad},
		{"a huge message", grpcAnswer(message(0, 1<<31, "x"), "0", ""), Bad},
		{"half a message", grpcAnswer(message(0, 10, "x"), "0", ""), Closed},
		{"a compressed message", grpcAnswer(message(1, 1, "x"), "0", ""), Bad},
		{"HTTP", status(200, "{}"), Bad},
		{"not found", status(404, "page"), Bad},
		{"connection closed", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, Closed},
		{"no answer", func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-stop:
			}
		}, Timeout},
	} {
		url, _ := rpcServer(t, tt.handler, false)
		c := newTestClient(t, Options{URL: url})
		if tt.class == Timeout {
			c.timeout = 50 * ms
		}
		s := &Infer{c, []*request{{body: []byte("x")}}}
		_, err := s.Send(t.Context(), 0)
		if tt.class == "" && err != nil || tt.class != "" && !isClass(err, tt.class) || err != nil && len(err.Error()) > 2*maxShown {
			t.Errorf("%s: %v, want class %q", tt.name, err, tt.class)
		}
	}
	close(stop)
	c := newTestClient(t, Options{URL: "grpc://127.0.0.1:1", Timeout: time.Minute})
	if _, err := (&Infer{c, []*request{{}}}).Send(t.Context(), 0); !isClass(err, Connect) {
		t.Errorf("nobody listens: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&Infer{c, []*request{{}}}).Send(ctx, 0); err != context.Canceled {
		t.Errorf("canceled: %v", err)
	}
	for _, url := range []string{"grpc://", "grpc://h/path", "grpcs://u@h:1", "grpc:h"} {
		if _, err := NewClient(Options{URL: url}); err == nil {
			t.Errorf("%s is accepted", url)
		}
	}
}
