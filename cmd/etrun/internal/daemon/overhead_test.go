package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/oip"
)

// arm is a way to run the model. It returns a function that makes one request, for each client.
type arm func(b *testing.B) (request func() error)

// BenchmarkOverhead compares requests with calls of the library. The model has one thread, so that
// the clients have a processor. The arms are
//
//	library        calls, one after the other
//	handler        package serve without a connection
//	socket-tcp     the bytes of the elements over a connection, without HTTP
//	bare-tcp       a minimal handler of net/http, which only reads the elements
//	tcp            the daemon
//	client-tcp     the daemon; the client is that of net/http, others write prepared bytes
//	json-tcp       the daemon, without binary data
//	json-handler   package serve without a connection, without binary data
//	grpc-tcp       the daemon over gRPC; the client is that of google.golang.org/grpc
//	isolated-tcp   the daemon with an isolated model
//
// and the same over unix sockets. The processor time, of client and server, is that of a request relative to a call. ETRUN_SERVE_ARMS selects arms: names separated by commas.
func BenchmarkOverhead(b *testing.B) {
	list := arms(b)
	if only := os.Getenv("ETRUN_SERVE_ARMS"); only != "" {
		maps.DeleteFunc(list, func(name string, _ arm) bool {
			return name != "library" && !slices.Contains(strings.Split(only, ","), name)
		})
	}
	for _, clients := range []int{1, 2, 4, 8} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) { compare(b, clients, list) })
	}
}

func arms(b *testing.B) map[string]arm {
	b.Helper()
	path := loadModel()
	l := openLibrary(b, path)
	binary, text := exchanges(b, path, 1, true)[0], exchanges(b, path, 1, false)[0]
	text.want = [][]byte{[]byte("]}]}")} // the end of JSON
	raw := exchange{body: binary.body[len(binary.body)-len(l.sample.Data):], want: binary.want}
	list := map[string]arm{"library": l.calls, "handler": handled(b, path, binary), "json-handler": handled(b, path, text)}
	bare := http.Server{Handler: l}
	sockets := listen(b, func(listener net.Listener) { l.serve(listener) })
	minimal := listen(b, func(listener net.Listener) { _ = bare.Serve(listener) })
	here, apart := serveFor(b, path, false), serveFor(b, path, true)
	list["grpc-tcp"] = overGRPC(here[2], l.sample.Sizes, raw)
	for i, network := range []string{"tcp", "unix"} {
		list["socket-"+network] = raw.overSocket(sockets[i])
		list["bare-"+network] = raw.prepared(minimal[i])
		list[network] = binary.prepared(here[i])
		list["client-"+network] = binary.byClient(here[i])
		list["json-"+network] = text.prepared(here[i])
		list["isolated-"+network] = binary.prepared(apart[i])
	}
	return list
}

// compare times alternating arms, so that noise affects all of them: eight requests by so many
// clients at once. It reports the median time of a request, and of its ratio to the arm library,
// which has one client.
func compare(b *testing.B, clients int, list map[string]arm) {
	const each = 8
	run := make(map[string]func() error)
	for name, a := range list {
		n := clients
		if name == "library" {
			n = 1
		}
		run[name] = together(b, a, n, each/n)
		for range 2 {
			if err := run[name](); err != nil {
				b.Fatal(name, err)
			}
		}
	}
	times, works := make(map[string][]float64), make(map[string][]float64)
	for b.Loop() {
		for name, f := range run {
			begun, before := time.Now(), processorTime(b)
			if err := f(); err != nil {
				b.Fatal(name, err)
			}
			times[name] = append(times[name], float64(time.Since(begun).Microseconds())/each)
			works[name] = append(works[name], float64((processorTime(b)-before).Microseconds())/each)
		}
	}
	for name, took := range times {
		b.ReportMetric(median(took), name+"-us")
		b.ReportMetric(median(ratios(took, times["library"])), name+"-ratio")
		b.ReportMetric(median(ratios(works[name], works["library"])), name+"-cpu-ratio")
	}
}

func ratios(list, to []float64) []float64 {
	out := make([]float64, len(list))
	for i := range list {
		out[i] = list[i] / to[i]
	}
	return out
}

// processorTime returns the processor time of this process.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// together returns a function with which clients make each requests at once.
func together(b *testing.B, a arm, clients, each int) func() error {
	requests := make([]func() error, clients)
	for c := range requests {
		requests[c] = a(b)
	}
	return func() error {
		errs := make([]error, clients)
		var all sync.WaitGroup
		for c, request := range requests {
			all.Go(func() {
				for range each {
					errs[c] = errors.Join(errs[c], request())
				}
			})
		}
		all.Wait()
		return errors.Join(errs...)
	}
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// library is a method with one thread.
type library struct {
	mu     sync.Mutex
	method *etrun.Method
	sample *tensor.Tensor
	inputs sync.Pool // of *tensor.Tensor
	answer int       // bytes of the output
}

func openLibrary(b *testing.B, path string) *library {
	b.Helper()
	prog, err := etrun.OpenSource(b.Context(), etrun.File(path), etrun.WithDelegates(all.Backends()...), etrun.WithThreads(1))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { prog.Close() })
	m, err := prog.Load(b.Context(), "")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { m.Close() })
	input := func() any { return m.Meta().Inputs[0].NewTensor() }
	return &library{method: m, sample: m.Meta().Inputs[0].NewTensor(), inputs: sync.Pool{New: input},
		answer: len(m.Meta().Outputs[0].NewTensor().Data)}
}

// run runs the method and writes its output.
func (l *library) run(x *tensor.Tensor, to io.Writer) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	y, err := etrun.Run[float32](context.Background(), l.method, x)
	if err == nil {
		_, err = to.Write(tensor.BytesOf(y))
	}
	return err
}

// calls is an arm.
func (l *library) calls(*testing.B) func() error {
	return func() error { return l.run(l.sample, io.Discard) }
}

// ServeHTTP answers a body of elements with elements.
func (l *library) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := l.inputs.Get().(*tensor.Tensor)
	defer l.inputs.Put(x)
	if _, err := io.ReadFull(r.Body, x.Data); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(l.answer))
	_ = l.run(x, w) // the client finds a wrong answer
}

// serve answers elements with elements.
func (l *library) serve(listener net.Listener) {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		all.Go(func() {
			defer conn.Close()
			x := l.inputs.Get().(*tensor.Tensor)
			for err == nil {
				if _, err = io.ReadFull(conn, x.Data); err == nil {
					err = l.run(x, conn)
				}
			}
		})
	}
}

// listen serves on a TCP and on a unix socket.
func listen(b *testing.B, serve func(net.Listener)) (addresses []net.Addr) {
	b.Helper()
	var all sync.WaitGroup
	b.Cleanup(all.Wait)
	for _, at := range [][2]string{{"tcp", "127.0.0.1:0"}, {"unix", filepath.Join(b.TempDir(), "s")}} {
		l, err := net.Listen(at[0], at[1])
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { l.Close() })
		all.Go(func() { serve(l) })
		addresses = append(addresses, l.Addr())
	}
	return addresses
}

// serveFor runs a daemon on a TCP and on a unix socket, and on a TCP socket for gRPC.
func serveFor(b *testing.B, path string, isolated bool) (addresses []net.Addr) {
	b.Helper()
	socket := filepath.Join(b.TempDir(), "s")
	log := &record{}
	m := &Model{Name: "m", Path: path, Options: session.Options{Threads: 1}, Limits: DefaultLimits()}
	m.Instances, m.Isolate = 1, isolated
	d := &Daemon{Settings: Defaults(), Models: []*Model{m}, Backends: all.Backends(), Log: log}
	d.Listen, d.LogFormat, d.AccessLog = []string{"127.0.0.1:0", "unix:" + socket}, "json", false
	d.GRPC = []string{"127.0.0.1:0"}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	for len(log.lines("model loaded")) == 0 {
		select {
		case err := <-ended:
			b.Fatal(err)
		case <-time.After(time.Millisecond):
		}
	}
	tcp, err1 := net.ResolveTCPAddr("tcp", log.lines("listening")[0]["address"].(string))
	grpc, err2 := net.ResolveTCPAddr("tcp", log.lines("gRPC")[0]["address"].(string))
	if err := errors.Join(err1, err2); err != nil {
		b.Fatal(err)
	}
	return []net.Addr{tcp, &net.UnixAddr{Net: "unix", Name: socket}, grpc}
}

// handled sends requests to package serve without a connection.
func handled(b *testing.B, path string, e exchange) arm {
	b.Helper()
	s, err := serve.New(serve.Options{}, serve.Config{Name: "m", Instances: 1, Open: func(ctx context.Context) (*etrun.Program, error) {
		return etrun.OpenSource(ctx, etrun.File(path), etrun.WithDelegates(all.Backends()...), etrun.WithThreads(1))
	}})
	if err == nil {
		err = s.LoadAll(b.Context())
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return func(*testing.B) func() error {
		return func() error {
			r := httptest.NewRequest("POST", "/v2/models/m/infer", bytes.NewReader(e.body))
			if e.header != "" {
				r.Header.Set(oip.HeaderLength, e.header)
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			return e.check(w.Code, w.Body.Bytes())
		}
	}
}

// dial connects until the benchmark ends. The send buffer of a unix socket belongs to the client:
// the default one holds a third of the request of mobilenet_v2, and the client waits between them.
func dial(b *testing.B, at net.Addr) net.Conn {
	b.Helper()
	conn, err := net.Dial(at.Network(), at.String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	if c, ok := conn.(*net.UnixConn); ok {
		if err := c.SetWriteBuffer(1 << 20); err != nil { // the system may grant less
			b.Fatal(err)
		}
	}
	return conn
}

// overSocket sends the body and reads the output as they are.
func (e *exchange) overSocket(at net.Addr) arm {
	return func(b *testing.B) func() error {
		conn, answer := dial(b, at), make([]byte, len(e.want[0]))
		return func() error {
			if _, err := conn.Write(e.body); err != nil {
				return err
			}
			if _, err := io.ReadFull(conn, answer); err != nil {
				return err
			}
			return e.check(http.StatusOK, answer)
		}
	}
}

// prepared sends the request as prepared bytes and reads the answer into one buffer, without a
// client's work.
func (e *exchange) prepared(at net.Addr) arm {
	var request bytes.Buffer
	fmt.Fprintf(&request, "POST /v2/models/m/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n", len(e.body))
	if e.header != "" {
		fmt.Fprintf(&request, "%s: %s\r\n", oip.HeaderLength, e.header)
	}
	request.WriteString("\r\n")
	request.Write(e.body)
	return func(b *testing.B) func() error {
		conn, answer := dial(b, at), make([]byte, 64<<10)
		return func() error {
			if _, err := conn.Write(request.Bytes()); err != nil {
				return err
			}
			for n := 0; ; {
				more, err := conn.Read(answer[n:])
				if n += more; err != nil || !bytes.HasPrefix(answer[:n], []byte("HTTP/1.1 200 ")) {
					return fmt.Errorf("%.200q, %w", answer[:n], err)
				}
				if bytes.HasSuffix(answer[:n], e.want[0]) {
					return nil
				}
			}
		}
	}
}

// byClient sends the request with the client of net/http, which copies the body.
func (e *exchange) byClient(at net.Addr) arm {
	return func(b *testing.B) func() error {
		transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return net.Dial(at.Network(), at.String())
		}}
		b.Cleanup(transport.CloseIdleConnections)
		client := &http.Client{Transport: transport}
		return func() error {
			code, err := e.send(context.Background(), client, "http://h")
			if err == nil && code != http.StatusOK {
				err = fmt.Errorf("status %d", code)
			}
			return err
		}
	}
}

// check checks that an answer ends with the output.
func (e *exchange) check(code int, answer []byte) error {
	if code != http.StatusOK || len(e.want) != 1 || !bytes.HasSuffix(answer, e.want[0]) {
		return fmt.Errorf("%d, %.200q", code, answer)
	}
	return nil
}
