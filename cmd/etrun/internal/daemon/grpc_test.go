package daemon

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	rpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/etrun-go/etrun/internal/await"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/serve/grpc/inference"
)

const procedures = "/inference.GRPCInferenceService/"

// dialGRPC returns a client of the gRPC listener, which sends another name of the server if authority is not empty.
func (r *running) dialGRPC(authority string) *rpc.ClientConn {
	r.t.Helper()
	address := r.log.lines("gRPC")[0]["address"].(string)
	options := []rpc.DialOption{rpc.WithTransportCredentials(insecure.NewCredentials())}
	if authority != "" {
		options = append(options, rpc.WithAuthority(authority))
	}
	c, err := rpc.NewClient("passthrough:///"+address, options...)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	return c
}

// plainHTTP2 returns a client that sends any bytes over HTTP/2.
func (r *running) plainHTTP2() *http.Client {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	r.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func adderRequest() *inference.ModelInferRequest {
	return &inference.ModelInferRequest{ModelName: "m", RawInputContents: [][]byte{tensor.BytesOf([]float32{1, 2, 3, 4})},
		Inputs: []*inference.ModelInferRequest_InferInputTensor{{Name: "input_0", Datatype: "FP32", Shape: []int64{4}}}}
}

func add(ctx context.Context, c *rpc.ClientConn) (*inference.ModelInferResponse, error) {
	answer := new(inference.ModelInferResponse)
	return answer, c.Invoke(ctx, procedures+"ModelInfer", adderRequest(), answer)
}

func withGRPC(d *Daemon) { d.GRPC = []string{"127.0.0.1:0"} }

// TestGRPCAccess checks tokens, names of the server and what needs no token, as over HTTP.
func TestGRPCAccess(t *testing.T) {
	r := start(t, func(d *Daemon) { withGRPC(d); d.TokenFile = file(t, "tokens", "0123456789abcdef") }, model("m", adder))
	c := r.dialGRPC("")
	for token, want := range map[string]codes.Code{"": codes.Unauthenticated, "Bearer wrong-token-wrong": codes.Unauthenticated,
		"Bearer 0123456789abcdef": codes.OK, "bearer 0123456789abcdef": codes.OK} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", token)
		if _, err := add(ctx, c); rpcstatus.Code(err) != want {
			t.Errorf("%q: %v, want %v", token, err, want)
		}
	}
	live, ready := new(inference.ServerLiveResponse), new(inference.ServerReadyResponse)
	health, err := healthpb.NewHealthClient(c).Check(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil || health.Status != healthpb.HealthCheckResponse_SERVING ||
		c.Invoke(t.Context(), procedures+"ServerLive", &inference.ServerLiveRequest{}, live) != nil || !live.Live ||
		c.Invoke(t.Context(), procedures+"ServerReady", &inference.ServerReadyRequest{}, ready) != nil || !ready.Ready {
		t.Error("health without a token:", err, health, live, ready)
	}
	if err := c.Invoke(t.Context(), procedures+"ServerMetadata", &inference.ServerMetadataRequest{}, live); rpcstatus.Code(err) != codes.Unauthenticated {
		t.Error("metadata without a token:", err)
	}
	for _, path := range []string{"/v2", procedures + "ServerLive"} { // a status of HTTP/1, whatever the type
		request, err := http.NewRequestWithContext(t.Context(), "POST", r.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/grpc")
		answer, err := r.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode < 400 {
			t.Errorf("POST %s over HTTP/1: %s", path, answer.Status)
		}
	}
	known := start(t, withGRPC, model("m", adder))
	if _, err := add(t.Context(), known.dialGRPC("evil.example")); rpcstatus.Code(err) != codes.PermissionDenied {
		t.Error("another name:", err)
	}
	if _, err := add(t.Context(), known.dialGRPC("localhost:80")); err != nil {
		t.Error("localhost:", err)
	}
	await.True(t, "two lines of the log", func() bool { return len(known.log.lines("request")) == 2 })
	if lines := known.log.lines("request"); lines[0]["status"] != float64(421) || lines[1]["status"] != float64(200) {
		t.Error(lines)
	}
}

// frame is a message as a call sends it, which may claim another size.
func frame(m proto.Message, claimed int64) []byte {
	data, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	if claimed < 0 {
		claimed = int64(len(data))
	}
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(claimed)), data...)
}

// post sends the body of an inference and returns its code.
func (r *running) post(c *http.Client, body io.Reader, header ...string) string {
	r.t.Helper()
	return r.postTo(c, procedures+"ModelInfer", body, header...)
}

// postTo sends the body of a call and returns its code.
func (r *running) postTo(c *http.Client, path string, body io.Reader, header ...string) string {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), "POST", "http://"+r.log.lines("gRPC")[0]["address"].(string)+path, body)
	if err != nil {
		r.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/grpc")
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	answer, err := c.Do(request)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.Header.Get("Grpc-Status") + answer.Trailer.Get("Grpc-Status")
}

// TestGRPCHostile sends calls that are malformed, lie about sizes or never end, while others are answered.
func TestGRPCHostile(t *testing.T) {
	r := start(t, func(d *Daemon) { withGRPC(d); d.BodyTimeout, d.Body, d.Busy = 300*time.Millisecond, 8<<20, 8<<20 }, model("m", adder))
	c, plain := r.dialGRPC(""), r.plainHTTP2()
	good := frame(adderRequest(), -1)
	for name, h := range map[string]struct {
		body   []byte
		header []string
		want   string
	}{
		"valid":               {good, nil, "0"},
		"nothing":             {nil, nil, "12"},
		"half a prefix":       {good[:3], nil, "3"},
		"half a message":      {good[:len(good)-1], nil, "3"},
		"two messages":        {append(bytes.Clone(good), good...), nil, "12"},
		"empty":               {make([]byte, 5), nil, "3"},
		"compressed":          {append([]byte{1}, good[1:]...), nil, "3"},
		"compressing":         {good, []string{"Grpc-Encoding", "gzip"}, "12"},
		"4 GB":                {frame(adderRequest(), 1<<32-1), nil, "8"},
		"more than all":       {frame(adderRequest(), 5<<20), nil, "8"},
		"JSON":                {good, []string{"Content-Type", "application/grpc+json"}, "12"},
		"another type":        {good, []string{"Content-Type", "application/json"}, ""},
		"wrong timeout":       {good, []string{"Grpc-Timeout", "1x"}, "3"},
		"timeout":             {good, []string{"Grpc-Timeout", "1n"}, "4"},
		"no protocol buffers": {append([]byte{0, 0, 0, 0, 4}, "\xff\xff\xff\xff"...), nil, "3"},
	} {
		logged := len(r.log.lines("request"))
		if got := r.post(plain, bytes.NewReader(h.body), h.header...); got != h.want {
			t.Errorf("%s: code %q, want %q", name, got, h.want)
		}
		await.True(t, "a line of the log", func() bool { return len(r.log.lines("request")) > logged })
		if at := r.log.lines("request")[logged]["status"].(float64); (at == http.StatusOK) != (h.want == "0") {
			t.Errorf("%s: status %v in the log", name, at)
		}
	}
	var slow sync.WaitGroup
	for range 8 {
		slow.Go(func() {
			body, end := io.Pipe()
			defer end.Close()
			go end.Write(good[:10])
			if got := r.post(plain, body); got != "4" {
				t.Errorf("a message that never ends: code %q, want 4", got)
			}
		})
	}
	for range 20 {
		if _, err := add(t.Context(), c); err != nil {
			t.Error(err)
		}
	}
	slow.Wait()
	if answer, err := http.Get("http://" + r.log.lines("gRPC")[0]["address"].(string)); err == nil {
		answer.Body.Close()
		if answer.StatusCode < 400 {
			t.Error("HTTP/1:", answer.Status)
		}
	}
	text, _, _ := r.ask("GET", "/v2/health/ready", "")
	if text != 200 {
		t.Error("health:", text)
	}
}

// TestGRPCProbes checks that clients without a token do not displace others with health checks that never end.
func TestGRPCProbes(t *testing.T) {
	r := start(t, func(d *Daemon) {
		withGRPC(d)
		d.Connections, d.TokenFile = 8, file(t, "tokens", "0123456789abcdef")
	}, model("m", adder))
	const clients, each = 3, 100
	attack, end := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var ended atomic.Int32
	for range clients {
		plain := r.plainHTTP2()
		if code := r.postTo(plain, "/grpc.health.v1.Health/Check", bytes.NewReader(make([]byte, 5))); code != "0" { // one connection for all
			t.Fatal("a health check:", code)
		}
		for range each {
			body, rest := io.Pipe()
			context.AfterFunc(attack, func() { rest.Close() })
			all.Go(func() {
				r.postTo(plain, "/grpc.health.v1.Health/Check", body) // refused, or ended with the attack
				ended.Add(1)
			})
		}
	}
	defer all.Wait()
	defer end()
	await.True(t, "refusals of all but a few of each connection", func() bool { return ended.Load() >= clients*(each-maxProbes) })
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer 0123456789abcdef")
	if _, err := add(ctx, r.dialGRPC("")); err != nil {
		t.Error(err)
	}
	if code, text, _ := r.ask("GET", "/v2/health/ready", ""); code != http.StatusOK {
		t.Error("health over HTTP:", code, text)
	}
}

// TestGRPCEnds checks that an open stream does not delay the end of the server, and that many calls share a connection.
func TestGRPCEnds(t *testing.T) {
	r := start(t, func(d *Daemon) { withGRPC(d); d.Drain, d.Connections = 5*time.Second, 4 }, model("m", adder))
	c := r.dialGRPC("")
	stream, err := c.NewStream(t.Context(), &rpc.StreamDesc{ClientStreams: true, ServerStreams: true}, procedures+"ModelStreamInfer")
	if err != nil {
		t.Fatal(err)
	}
	got := new(inference.ModelStreamInferResponse)
	if err := stream.SendMsg(adderRequest()); err != nil {
		t.Fatal(err)
	}
	if err := stream.RecvMsg(got); err != nil || got.ErrorMessage != "" {
		t.Fatal(err, got)
	}
	var calls sync.WaitGroup
	for range 32 {
		calls.Go(func() {
			if _, err := add(t.Context(), c); err != nil && !strings.Contains(err.Error(), "too many connections with a request") {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	await.True(t, "a call after those that were refused", func() bool {
		_, err := add(t.Context(), c)
		return err == nil
	})
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if err := stream.RecvMsg(got); rpcstatus.Code(err) != codes.Unavailable {
		t.Error(err)
	}
}

// TestMetricsAddress checks the listener of metrics: a local one needs no token, but a name of the server.
func TestMetricsAddress(t *testing.T) {
	r := start(t, func(d *Daemon) {
		d.Metrics, d.TokenFile, d.BodyTimeout = "127.0.0.1:0", file(t, "tokens", "0123456789abcdef"), time.Second
	}, model("m", adder))
	address := r.log.lines("metrics")[0]["address"].(string)
	for headers, want := range map[string]int{"Host: evil.example\r\n": 421, "Host: localhost\r\n": 200, "Host: " + address + "\r\n": 200,
		"Host: localhost\r\nOrigin: http://evil.example\r\n": 403} {
		if code := status(t, address, false, "GET", metricsPath, headers); code != want {
			t.Errorf("%q: %d, want %d", headers, code, want)
		}
	}
	answer, err := http.Get("http://" + address + metricsPath)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil || !strings.Contains(string(text), `etrun_model_ready{model="m"} 1`) {
		t.Errorf("%v, %.300s", err, text)
	}
	for _, path := range []string{"/v2", "/v2/models/m", "/"} {
		if code := status(t, address, false, "GET", path, "Host: localhost\r\n"); code != http.StatusNotFound {
			t.Errorf("%s: %d", path, code)
		}
	}
	checkUnread(t, address)
	for insecure, want := range map[bool]bool{false: false, true: true} {
		d := &Daemon{Settings: Defaults(), Log: io.Discard}
		d.Listen, d.Metrics, d.Insecure = []string{"127.0.0.1:0"}, "0.0.0.0:0", insecure
		if err := d.prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		list, err := d.servers(t.Context())
		closeListeners(list)
		if (err == nil) != want {
			t.Errorf("metrics for other machines, insecure %v: %v", insecure, err)
		}
	}
}

// checkUnread checks that a client that reads no answers does not keep its connection.
func checkUnread(t *testing.T, address string) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil { // only a failure takes as long
		t.Fatal(err)
	}
	for err == nil {
		_, err = io.WriteString(c, strings.Repeat("GET "+metricsPath+" HTTP/1.1\r\nHost: localhost\r\n\r\n", 1000))
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("a client that reads no answers stays connected")
	}
}

// TestGRPCEncrypted checks TLS with client certificates.
func TestGRPCEncrypted(t *testing.T) {
	ours := newAuthority(t)
	cert, key, _ := ours.pair(t)
	_, _, pair := ours.pair(t)
	r := start(t, func(d *Daemon) {
		withGRPC(d)
		d.Cert, d.Key, d.ClientCA = cert, key, file(t, "ca.pem", ours.pem)
	}, model("m", adder))
	for name, c := range map[string]struct {
		certificates []tls.Certificate
		want         codes.Code
	}{"with a certificate": {[]tls.Certificate{pair}, codes.OK}, "without": {nil, codes.Unauthenticated}} {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM([]byte(ours.pem))
		encrypted := credentials.NewTLS(&tls.Config{RootCAs: roots, Certificates: c.certificates, ServerName: "127.0.0.1"})
		client, err := rpc.NewClient("passthrough:///"+r.log.lines("gRPC")[0]["address"].(string), rpc.WithTransportCredentials(encrypted))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := add(t.Context(), client); rpcstatus.Code(err) != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		client.Close()
	}
}

// overGRPC sends the bytes of an input and compares the output.
func overGRPC(at net.Addr, sizes []int, e exchange) arm {
	r := &inference.ModelInferRequest{ModelName: "m", RawInputContents: [][]byte{e.body}, Inputs: []*inference.ModelInferRequest_InferInputTensor{
		{Name: "input_0", Datatype: "FP32"}}}
	for _, n := range sizes {
		r.Inputs[0].Shape = append(r.Inputs[0].Shape, int64(n))
	}
	return func(b *testing.B) func() error {
		c, err := rpc.NewClient("passthrough:///"+at.String(), rpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { c.Close() })
		return func() error {
			answer := new(inference.ModelInferResponse)
			err := c.Invoke(context.Background(), procedures+"ModelInfer", r, answer)
			if err == nil && !bytes.Equal(answer.RawOutputContents[0], e.want[0]) {
				err = errors.New("another answer")
			}
			return err
		}
	}
}

// TestShed refuses a request beyond the limit, and closes its connection unless others may share it: calls of gRPC that are in
// progress, and those that the client sends next, would fail.
func TestShed(t *testing.T) {
	c := newConnections(0, 1)
	c.busy = 1
	never := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("not refused") })
	for major, want := range map[int]string{1: "close", 2: ""} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v2/models/m/infer", nil)
		r.ProtoMajor = major
		c.shed(never).ServeHTTP(w, r)
		if got := w.Header().Get("Connection"); got != want || w.Code != http.StatusServiceUnavailable {
			t.Errorf("HTTP/%d: %d, Connection %q, want %q", major, w.Code, got, want)
		}
	}
}
