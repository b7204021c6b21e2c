package daemon

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/etrun-go/etrun/serve/oip"
)

// raw sends bytes on a new connection and reads the status of the answer, 0 if there is none.
func (r *running) raw(text string, hold time.Duration) (code int, closed bool) {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.address())
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, text) // the server may have answered and closed already
	_ = conn.SetReadDeadline(time.Now().Add(hold))
	reader := bufio.NewReader(conn)
	answer, err := http.ReadResponse(reader, nil)
	if err != nil {
		return 0, !errors.Is(err, os.ErrDeadlineExceeded)
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		r.t.Error(err)
	}
	return answer.StatusCode, false
}

// posted returns a request as written by a hostile client.
func posted(headers, body string) string {
	return "POST /v2/models/m/infer HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n" + body
}

// TestHostileRequests checks that invalid requests get a 4xx status, or the connection is closed.
func TestHostileRequests(t *testing.T) {
	r := start(t, func(d *Daemon) { d.BodyTimeout = 300 * time.Millisecond }, model("m", adder))
	length := func(n int) string { return fmt.Sprintf("Content-Length: %d\r\n", n) }
	binary := func(shape string, size int64, body int) string {
		header := fmt.Sprintf(`{"inputs":[{"name":"input_0","shape":%s,"datatype":"FP32","parameters":{"binary_data_size":%d}}]}`, shape, size)
		return posted(fmt.Sprintf("%s: %d\r\n", oip.HeaderLength, len(header))+length(len(header)+body), header+strings.Repeat("\x00", body))
	}
	for _, c := range []struct {
		name, text string
		codes      []int // 0 is a closed connection
	}{
		{"malformed JSON", posted(length(9), `{"inputs"`), []int{400}},
		{"deep JSON", posted(length(30000), strings.Repeat("[", 30000)), []int{400}},
		{"deep inside", posted(length(30006), `{"x": `+strings.Repeat("[", 30000)), []int{400}},
		{"a length of 9 EB", posted("Content-Length: 9223372036854775807\r\n", "{"), []int{413}},
		{"a length beyond 64 bits", posted("Content-Length: 99999999999999999999\r\n", "{"), []int{400}},
		{"a negative length", posted("Content-Length: -1\r\n", "{"), []int{400}},
		{"two lengths", posted(length(5)+length(6), "{}"), []int{400}},
		{"length and chunks", posted(length(5)+"Transfer-Encoding: chunked\r\n", "0\r\n\r\n"), []int{400}},
		{"endless chunks", posted("Transfer-Encoding: chunked\r\n", strings.Repeat("4000\r\n"+strings.Repeat(" ", 0x4000)+"\r\n", 20)), []int{413}},
		{"a huge chunk", posted("Transfer-Encoding: chunked\r\n", "7fffffffffffffff\r\n{"), []int{408, 400}},
		{"a wrong shape", binary("[5]", 20, 20), []int{400}},
		{"a huge shape", binary("[100000000]", 400000000, 0), []int{413}},
		{"a negative shape", binary("[-4]", 16, 16), []int{400}},
		{"less than the size", binary("[4]", 16, 8), []int{400}},
		{"more than the size", binary("[4]", 16, 24), []int{400}},
		{"a size that lies", binary("[4]", 12, 16), []int{400}},
		{"a size of 9 EB", binary("[4]", 1<<62, 16), []int{400}},
		{"a negative size", binary("[4]", -16, 16), []int{400}},
		{"the header's length beyond the body", posted(oip.HeaderLength+": 60000\r\n"+length(len(adderBody)), adderBody), []int{400, 200}},
		{"a huge header length", posted(oip.HeaderLength+": 6000000000\r\n"+length(len(adderBody)), adderBody), []int{413}},
		{"two header lengths", posted(strings.Repeat(fmt.Sprintf("%s: %d\r\n", oip.HeaderLength, len(adderBody)), 2)+length(len(adderBody)), adderBody), []int{400}},
		{"a wrong expectation", posted("Expect: 200-ok\r\n"+length(len(adderBody)), adderBody), []int{417}},
		{"two hosts", posted("Host: other\r\n"+length(len(adderBody)), adderBody), []int{400}},
		{"a space before the colon", posted("Content-Length : 2\r\n", "{}"), []int{400}},
		{"an unknown transfer encoding", posted("Transfer-Encoding: xchunked\r\n", "2\r\n{}\r\n0\r\n\r\n"), []int{501}},
		{"two transfer encodings", posted("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "2\r\n{}\r\n0\r\n\r\n"), []int{501}},
		{"a negative chunk", posted("Transfer-Encoding: chunked\r\n", "-5\r\n{}\r\n0\r\n\r\n"), []int{400}},
		{"a chunk longer than its data", posted("Transfer-Encoding: chunked\r\n", "ff\r\n{}\r\n0\r\n\r\n"), []int{400, 408}},
		{"a long chunk extension", posted("Transfer-Encoding: chunked\r\n", "2;"+strings.Repeat("x", 100000)), []int{400}},
		{"NaN", posted(length(len(adderBody)+2), strings.Replace(adderBody, "[1,", "[NaN,", 1)), []int{400}},
		{"beyond the type", posted(length(len(adderBody)+4), strings.Replace(adderBody, "[1,", "[1e400,", 1)), []int{400}},
		{"two members of a name", posted(length(len(adderBody)+11), strings.Replace(adderBody, "}", `,"name":"b"}`, 1)), []int{400}},
		{"two objects", posted(length(2*len(adderBody)), adderBody+adderBody), []int{400}},
		{"long headers", "GET /v2 HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 40000) + "\r\n\r\n", []int{431, 0}},
		{"a long path", "GET /" + strings.Repeat("x", 40000) + " HTTP/1.1\r\nHost: localhost\r\n\r\n", []int{431, 0}},
		{"no HTTP", "\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", []int{400}},
		{"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []int{505, 421, 400, 0}},
		{"a body that stops", posted(length(100), "{"), []int{408}},
		{"another method", "TRACE /v2/models/m/infer HTTP/1.1\r\nHost: localhost\r\n\r\n", []int{405}},
		{"out of the tree", "GET /v2/../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", []int{301, 307, 404}},
	} {
		code, closed := r.raw(c.text, 10*time.Second)
		if !slices.Contains(c.codes, code) || code == 0 && !closed {
			t.Errorf("%s: %d, want one of %v", c.name, code, c.codes)
		}
	}
	if code, text, _ := r.ask("POST", "/v2/models/m/infer", adderBody); code != 200 {
		t.Errorf("after all of them: %d, %s", code, text)
	}
}

// TestPipelining checks that pipelined requests are answered in order.
func TestPipelining(t *testing.T) {
	r := start(t, nil, model("m", adder))
	conn, err := net.Dial("tcp", r.address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const n = 50
	go func() {
		for i := range n {
			body := strings.Replace(adderBody, "{", fmt.Sprintf(`{"id":"%d",`, i), 1)
			_, _ = io.WriteString(conn, posted(fmt.Sprintf("Content-Length: %d\r\n", len(body)), body))
		}
	}()
	reader := bufio.NewReader(conn)
	for i := range n {
		answer, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != 200 || !strings.Contains(string(text), fmt.Sprintf(`"id":"%d"`, i)) {
			t.Fatalf("answer %d: %v, %d, %s", i, err, answer.StatusCode, text)
		}
	}
}

// TestIdleConnections opens ten thousand connections from another process that send nothing:
// whether the server accepts all of them or a few, its memory stays bounded and other clients are
// served.
func TestIdleConnections(t *testing.T) {
	clients := 10_000
	if testing.Short() {
		clients = 1000
	}
	var limit syscall.Rlimit // Go has raised it as far as possible
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < 1000 {
		t.Fatalf("at most %d open files are allowed, %v", limit.Cur, err)
	}
	clients = int(min(uint64(clients), limit.Cur-500))
	if address := os.Getenv("ETRUN_TEST_CONNECT"); address != "" {
		connect(t, address, clients)
		return
	}
	for _, most := range []int{Defaults().Connections, clients + 100} {
		r := start(t, func(d *Daemon) { d.Connections, d.AccessLog = most, false }, model("m", adder))
		before := settled(t)
		c := exec.Command(os.Args[0], "-test.run=^TestIdleConnections$", fmt.Sprintf("-test.short=%v", testing.Short()))
		c.Env, c.Stderr = append(os.Environ(), "ETRUN_TEST_CONNECT="+r.address()), os.Stderr
		stdin, _ := c.StdinPipe()
		stdout, _ := c.StdoutPipe()
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "connected\n" {
			t.Errorf("the clients: %q, %v", line, err)
		}
		for range 20 {
			if code, text, _ := r.ask("POST", "/v2/models/m/infer", adderBody); code != 200 {
				t.Errorf("%d, %s", code, text)
			}
		}
		after := settled(t)
		t.Logf("%d idle connections, at most %d: memory %d MB before and %d MB with them", clients, most, before>>20, after>>20)
		const each = 24 << 10 // bytes of an open connection
		slack := int64(16 << 20)
		if testing.Short() {
			slack *= 4 // the race detector also runs this test, and takes more memory
		}
		if after > before+int64(min(most, clients)*each)+slack {
			t.Errorf("%d connections, at most %d: memory went from %d to %d MB", clients, most, before>>20, after>>20)
		}
		if err := errors.Join(stdin.Close(), c.Wait()); err != nil {
			t.Error(err)
		}
		r.stop()
	}
}

// connect opens connections and keeps them open until standard input ends.
func connect(t *testing.T, address string, n int) {
	for i := range n {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		defer conn.Close()
	}
	fmt.Println("connected")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// TestHoarders runs clients that keep all resources they can get: memory stays bounded, and other
// clients are served.
func TestHoarders(t *testing.T) {
	idle := 2000
	if testing.Short() {
		idle = 300
	}
	m := model("m", adder)
	r := start(t, func(d *Daemon) {
		d.BodyTimeout, d.Connections, d.Body, d.Busy, d.AccessLog = 2*time.Second, 128, 1<<20, 1<<20, false
	}, m)
	r.ask("POST", "/v2/models/m/infer", adderBody)
	before := settled(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	for i := range idle {
		all.Go(func() {
			conn, err := net.Dial("tcp", r.address())
			if err != nil {
				return // the system's limit of files
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			if i%4 == 1 { // slow bodies that claim the maximum length
				_, _ = io.WriteString(conn, posted("Content-Length: 65000\r\n", "{"))
			}
		})
	}
	all.Wait()
	good := 0
	for range 100 {
		if code, _ := r.raw(posted(fmt.Sprintf("Connection: close\r\nContent-Length: %d\r\n", len(adderBody)), adderBody), 5*time.Second); code == 200 {
			good++
		}
		time.Sleep(30 * time.Millisecond)
	}
	after := settled(t)
	for _, c := range conns {
		c.Close()
	}
	t.Logf("%d connections: %d of 100 others were served, memory %d MB before and %d MB with them", len(conns), good, before>>20, after>>20)
	if good < 20 || after > before+64<<20 {
		t.Errorf("%d of 100 others were served, memory %d MB before and %d MB with them", good, before>>20, after>>20)
	}
	r.wait("other clients are served again", func() bool { code, _, _ := r.ask("POST", "/v2/models/m/infer", adderBody); return code == 200 })
}
