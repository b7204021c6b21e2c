package daemon

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/etrun-go/etrun/internal/cases"
)

// attack is an attack on a server of this machine, by a process of its own.
type attack struct {
	address string
	tls     bool
	token   string // of the attackers, empty for none
	checked bool   // the server checks the Host header
	every   int    // clients of each kind
	idle    int    // idle connections
	time    time.Duration

	end      <-chan time.Time
	breached atomic.Int64 // answers that the server must not have given
	conns    atomic.Int64
}

// attackVariable passes an attack to its process.
const attackVariable = "ETRUN_TEST_ATTACK"

func (a *attack) String() string {
	return fmt.Sprintf("%s %v %s %v %d %d %v", a.address, a.tls, cmp.Or(a.token, "-"), a.checked, a.every, a.idle, a.time)
}

func parseAttack(text string) *attack {
	a := &attack{}
	var limit string
	if _, err := fmt.Sscan(text, &a.address, &a.tls, &a.token, &a.checked, &a.every, &a.idle, &limit); err != nil {
		panic(err)
	}
	a.token = strings.TrimPrefix(a.token, "-")
	a.time, _ = time.ParseDuration(limit)
	return a
}

// raw connects from one of many addresses, whose ports do not run out.
func (a *attack) raw() (net.Conn, error) {
	from := &net.TCPAddr{IP: net.IPv4(127, 2, byte(rand.IntN(250)), byte(1+rand.IntN(250)))}
	conn, err := (&net.Dialer{Timeout: 5 * time.Second, LocalAddr: from}).Dial("tcp", a.address)
	if err == nil {
		a.conns.Add(1)
	}
	return conn, err
}

func (a *attack) dial() (net.Conn, error) {
	conn, err := a.raw()
	if err == nil && a.tls {
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	}
	return conn, err
}

// head returns the begin of a request.
func (a *attack) head(request, host string) string {
	text := request + " HTTP/1.1\r\nHost: " + host + "\r\n"
	if a.token != "" {
		text += "Authorization: Bearer " + a.token + "\r\n"
	}
	return text
}

func pick[T any](list []T) T { return list[rand.IntN(len(list))] }

// attackers are the kinds of clients. Each uses one connection, until its deadline.
var attackers = []struct {
	name string
	run  func(a *attack, conn net.Conn)
}{
	{"half a body", func(a *attack, conn net.Conn) {
		b := pick(unsent)
		_, _ = io.WriteString(conn, a.head(pick(early), "localhost")+b.headers+"\r\n"+b.text)
		for ; b.more != ""; time.Sleep(20 * time.Millisecond) {
			if _, err := io.WriteString(conn, b.more); err != nil {
				return
			}
		}
		_, _ = io.Copy(io.Discard, conn)
	}},
	{"half an inference", func(a *attack, conn net.Conn) {
		_, _ = io.WriteString(conn, a.head("POST /v2/models/m/infer", "localhost")+"Content-Length: 100\r\n\r\n{")
		_, _ = io.Copy(io.Discard, conn)
	}},
	{"a slow header", func(a *attack, conn net.Conn) {
		for _, c := range []byte(a.head("GET /v2/health/live", "localhost") + strings.Repeat("X: x\r\n", 1000)) {
			if _, err := conn.Write([]byte{c}); err != nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}},
	{"half closed", func(a *attack, conn net.Conn) {
		_, _ = io.WriteString(conn, a.head("POST /v2/models/m/infer", "localhost")+"Content-Length: 100\r\n\r\n{")
		if c, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = c.CloseWrite()
		}
		_, _ = io.Copy(io.Discard, conn)
	}},
	{"another name", func(a *attack, conn net.Conn) {
		path := pick([]string{"GET /v2", "GET /metrics", "GET /v2/health/live", "GET http://evil.example/v2"})
		if a.checked && rand.IntN(2) == 0 {
			path = "POST /v2/repository/models/m/unload"
		}
		_, _ = io.WriteString(conn, a.head(path, pick([]string{"evil.example", "evil.example:80", "127.0.0.1.evil.example"}))+"\r\n")
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err == nil && a.checked && answer.StatusCode < 400 {
			a.breached.Add(1)
		}
	}},
	{"another origin", func(a *attack, conn net.Conn) {
		_, _ = io.WriteString(conn, a.head("POST /v2/repository/models/m/unload", "localhost")+"Origin: http://evil.example\r\n\r\n")
		if answer, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil && answer.StatusCode < 400 {
			a.breached.Add(1)
		}
	}},
	{"a huge body", func(a *attack, conn net.Conn) {
		_, _ = io.WriteString(conn, a.head(pick(early), "localhost")+"Content-Length: 1000000000\r\n\r\n")
		for block := make([]byte, 1<<16); ; {
			if _, err := conn.Write(block); err != nil {
				return
			}
			time.Sleep(time.Millisecond) // the attack is not on the processors
		}
	}},
	{"a huge header", func(a *attack, conn net.Conn) {
		_, _ = io.WriteString(conn, a.head("GET /v2", "localhost")+"X: "+strings.Repeat("x", 100_000))
		_, _ = io.Copy(io.Discard, conn)
	}},
	{"no reader", func(a *attack, conn net.Conn) {
		_, _ = io.WriteString(conn, strings.Repeat(a.head(pick([]string{"GET /v2/openapi.json", "GET /metrics", "GET /v2/health/live"}),
			"localhost")+"\r\n", 500))
		<-a.end
	}},
	{"no handshake", func(_ *attack, conn net.Conn) {
		if t, ok := conn.(*tls.Conn); ok {
			conn = t.NetConn()
		}
		_, _ = io.WriteString(conn, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
		_, _ = io.Copy(io.Discard, conn)
	}},
	{"a short visit", func(_ *attack, _ net.Conn) { time.Sleep(time.Duration(rand.IntN(10)) * time.Millisecond) }},
	{"many requests", func(a *attack, conn net.Conn) {
		reader := bufio.NewReader(conn)
		for range 100 {
			_, _ = io.WriteString(conn, a.head("POST /v2/models/m/infer",
				"localhost")+"Content-Length: "+strconv.Itoa(len(adderBody))+"\r\n\r\n"+adderBody)
			answer, err := http.ReadResponse(reader, nil)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, answer.Body)
			time.Sleep(10 * time.Millisecond)
		}
	}},
}

// run attacks until the time has passed.
func (a *attack) run() {
	end, over := time.Now().Add(a.time), make(chan time.Time)
	time.AfterFunc(a.time, func() { close(over) })
	a.end = over
	var all sync.WaitGroup
	for _, kind := range attackers {
		for range a.every {
			all.Go(func() {
				for time.Now().Before(end) {
					if conn, err := a.dial(); err == nil {
						_ = conn.SetDeadline(earlier(end, time.Now().Add(30*time.Second)))
						stop := time.AfterFunc(time.Until(end), func() { conn.Close() })
						kind.run(a, conn)
						stop.Stop()
						conn.Close()
					}
					time.Sleep(20 * time.Millisecond)
				}
			})
		}
	}
	all.Go(func() { a.hoard(end) })
	all.Wait()
}

// hoard keeps idle connections, and replaces those that have been open longest.
func (a *attack) hoard(end time.Time) {
	var conns []net.Conn
	for time.Now().Before(end) {
		conn, err := a.raw()
		if err == nil {
			conns = append(conns, conn)
		}
		time.Sleep(time.Millisecond)
		if len(conns) > a.idle || err != nil && len(conns) > 0 {
			conns[0].Close()
			conns = conns[1:]
			time.Sleep(10 * time.Millisecond)
		}
	}
	for _, c := range conns {
		c.Close()
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// probe asks whether the server is alive, on a new connection.
func probe(address string, encrypted bool, limit time.Duration) (took time.Duration, err error) {
	begun := time.Now()
	conn, err := (&net.Dialer{Timeout: limit}).Dial("tcp", address)
	if err != nil {
		return 0, err
	}
	if encrypted {
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	}
	defer conn.Close()
	_ = conn.SetDeadline(begun.Add(limit))
	if _, err := io.WriteString(conn, "GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); err != nil {
		return 0, err
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	return time.Since(begun), err
}

// TestAttack checks that health probes are answered within a second while clients hold connections
// in every way: with half-sent, slow, huge and half-closed requests, other names and origins, idle
// and unfinished connections; with and without authentication and TLS. ETRUN_ATTACK=10m attacks for
// that time, with ten thousand idle connections.
func TestAttack(t *testing.T) {
	t.Parallel()
	if text := os.Getenv(attackVariable); text != "" {
		a := parseAttack(text)
		a.run()
		fmt.Printf("%d connections, %d breaches\n", a.conns.Load(), a.breached.Load())
		if a.breached.Load() > 0 {
			t.Error("the server gave answers that it must not give")
		}
		return
	}
	a, connections, limit := attack{every: 4, idle: 300, time: time.Duration(cases.Of(500, 1200)) * time.Millisecond}, 128, 3*time.Second // of tests that share processors
	if text := os.Getenv(attackTime); text != "" {
		total, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		a, connections, limit = attack{every: 12, idle: 10_000, time: total / 5}, Defaults().Connections, time.Second
	}
	cert, key, _ := newAuthority(t).pair(t)
	const token = "0123456789abcdef"
	for _, c := range []struct {
		name        string
		auth, knows bool
		tls         bool
	}{{name: "open"}, {name: "no token", auth: true}, {name: "a token", auth: true, knows: true},
		{name: "no token, TLS", auth: true, tls: true},
		{name: "a token, TLS", auth: true, knows: true, tls: true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := start(t, func(d *Daemon) {
				d.Connections, d.AccessLog, d.Control = connections, false, true
				d.Drain = d.BodyTimeout * 2 / 3 // the clients are gone, so that requests end without the time limit of bodies
				if c.auth {
					d.TokenFile = file(t, "tokens", token)
				}
				if c.tls {
					d.Cert, d.Key = cert, key
				}
			}, model("m", adder))
			a := attack{address: r.address(), tls: c.tls, checked: !c.auth, every: a.every, idle: a.idle, time: a.time}
			if c.knows {
				a.token = token
			}
			r.attacked(&a, limit)
		})
	}
}

// attacked starts an attack, and probes the server until it ends.
func (r *running) attacked(a *attack, limit time.Duration) {
	t := r.t
	before := settled(t)
	c := exec.Command(os.Args[0], "-test.run=^TestAttack$", "-test.timeout=0")
	c.Env = append(os.Environ(), attackVariable+"="+a.String())
	ended := make(chan error, 1)
	var said []byte
	go func() {
		var err error
		said, err = c.CombinedOutput()
		ended <- err
	}()
	var probes, failed int
	var longest time.Duration
	for running := true; running; {
		took, err := probe(a.address, a.tls, limit)
		probes, longest = probes+1, max(longest, took)
		if err != nil {
			if failed++; failed <= 5 {
				t.Errorf("probe %d: %v", probes, err)
			}
		}
		select {
		case err := <-ended:
			if running = false; err != nil {
				t.Errorf("%v: %s", err, said)
			}
		case <-time.After(20 * time.Millisecond):
		}
	}
	after := settled(t)
	t.Logf("%d of %d probes failed, the longest took %v; memory %d MB before and %d MB after; %s", failed, probes, longest, before>>20,
		after>>20, said)
	if after > before+256<<20 {
		t.Errorf("memory went from %d to %d MB", before>>20, after>>20)
	}
	r.wait("requests are served after the attack", func() bool {
		code := 0
		if conn, err := dialTo(a.address, a.tls); err == nil {
			_, _ = io.WriteString(conn, "POST /v2/models/m/infer HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer 0123456789abcdef\r\nConnection: close\r\n"+
				"Content-Length: "+strconv.Itoa(len(adderBody))+"\r\n\r\n"+adderBody)
			if answer, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
				code = answer.StatusCode
			}
			conn.Close()
		}
		return code == http.StatusOK
	})
}
