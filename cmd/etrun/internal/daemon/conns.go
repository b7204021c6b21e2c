package daemon

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"syscall"
)

// connections bounds the number of connections. A connection is new until its first request has arrived: before
// and during its TLS handshake, and while the header arrives. It is busy while a handler answers a request, and
// idle after that. At the limit of new ones, and of the others, those that have been new or idle longest are
// closed.
//
// A request beyond the first of a busy connection, which HTTP/2 allows, counts like a connection. If all are
// busy, health checks on further connections are answered; other requests are refused at once.
type connections struct {
	limit, news int

	mu    sync.Mutex
	all   map[net.Conn]*connection
	fresh list.List // of *connection, the oldest first
	idle  list.List // of *connection, the longest idle first
	busy  int
	more  int // requests of busy connections beyond the first
}

// connection is in at most one list; a busy one is in none.
type connection struct {
	net.Conn
	list     *list.List
	at       *list.Element
	requests int // in progress; one with HTTP/1
	probes   int // in progress and not counted, see aside
}

// Bounds of connections in addition to those of --max-connections.
const (
	maxNew  = 1024 // new ones, which are cheap
	reserve = 256  // those on which only health checks are answered

	maxProbes = 4 // health checks of a connection at the same time that clients without authentication send
)

func newConnections(limit, news int) *connections {
	return &connections{limit: limit, news: news, all: make(map[net.Conn]*connection)}
}

// state is http.Server.ConnState.
func (c *connections) state(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch k := c.all[conn]; state {
	case http.StateNew:
		k = &connection{Conn: conn}
		c.all[conn] = k
		c.busy++
		c.move(k, &c.fresh)
		c.trim(&c.fresh, c.news)
	case http.StateIdle:
		if k != nil && k.requests == 0 { // a client of HTTP/2 can cancel a request that the handler still answers
			c.makeIdle(k)
		}
	case http.StateClosed, http.StateHijacked:
		c.forget(k)
	}
}

// move moves a connection to the end of a list, nil for none. c.mu is locked.
func (c *connections) move(k *connection, to *list.List) {
	if k.list != nil {
		k.list.Remove(k.at)
		c.busy++
	}
	if k.list, k.at = to, nil; to != nil {
		k.at = to.PushBack(k)
		c.busy--
	}
}

// forget ends the count of a connection. c.mu is locked.
func (c *connections) forget(k *connection) {
	if k == nil {
		return
	}
	c.move(k, nil)
	c.busy--
	c.more -= max(k.requests-1, 0)
	delete(c.all, k.Conn)
}

// makeIdle makes a connection idle. c.mu is locked.
func (c *connections) makeIdle(k *connection) {
	if k == nil {
		return // it was closed
	}
	c.move(k, &c.idle)
	room := c.limit - c.busy
	if 2*c.busy >= c.limit { // answers on connections beyond the limit must arrive
		room = max(room, reserve)
	}
	c.trim(&c.idle, room)
}

// trim closes the first connections of a list.
func (c *connections) trim(l *list.List, room int) {
	for l.Len() > room {
		k := l.Front().Value.(*connection)
		c.forget(k)
		abort(k.Conn)
	}
}

// abort closes a connection without the last message of TLS, which could block.
func abort(conn net.Conn) {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	go conn.Close()
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

// context is http.Server.ConnContext.
func (c *connections) context(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// track makes the connection of a request busy until it is answered. What net/http does before and
// afterwards may take time that depends on the client: it reads a header, sends the answer, discards
// the rest of the body, and waits before it closes.
func (c *connections) track(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer c.ended(r)
		if !c.begun(r) {
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	})
}

// begun makes the connection of a request busy. It returns false if there are too many.
func (c *connections) begun(r *http.Request) bool {
	conn, _ := r.Context().Value(connKey{}).(net.Conn)
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.all[conn]; k != nil {
		c.count(k)
	}
	return c.busy+c.more <= c.limit+reserve
}

// ended ends a request. Its connection is idle if it has no other one.
func (c *connections) ended(r *http.Request) {
	conn, _ := r.Context().Value(connKey{}).(net.Conn)
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.all[conn]; k != nil {
		c.uncount(k)
	}
}

// count counts a request of a connection. c.mu is locked.
func (c *connections) count(k *connection) {
	if k.requests++; k.requests > 1 {
		c.more++
	}
	c.move(k, nil)
}

// uncount ends the count of a request. c.mu is locked.
func (c *connections) uncount(k *connection) {
	if k.requests--; k.requests == 0 {
		c.makeIdle(k)
	} else {
		c.more--
	}
}

// aside answers a request whose client is unknown and decides how long it lasts. It is not counted meanwhile, so that such clients
// cannot displace others, and its connection may be idle. aside returns false if the connection has too many of them.
func (c *connections) aside(r *http.Request, next func()) bool {
	conn, _ := r.Context().Value(connKey{}).(net.Conn)
	if !c.probe(conn) {
		return false
	}
	defer c.probed(conn)
	next()
	return true
}

// probe begins a request that is not counted. It returns false if its connection has too many.
func (c *connections) probe(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.all[conn]
	if k == nil {
		return true // it was closed
	}
	if k.probes == maxProbes {
		return false
	}
	k.probes++
	c.uncount(k)
	return true
}

// probed counts such a request again, until it ends.
func (c *connections) probed(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.all[conn]; k != nil {
		k.probes--
		c.count(k)
	}
}

// answered makes the connection of a request idle before it ends, if it has no other one.
func (c *connections) answered(r *http.Request) {
	conn, _ := r.Context().Value(connKey{}).(net.Conn)
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.all[conn]; k != nil && k.requests <= 1 {
		c.makeIdle(k)
	}
}

// shed refuses requests beyond the limit, except health checks.
func (c *connections) shed(next http.Handler) http.Handler {
	full := refusal(http.StatusServiceUnavailable, "too many connections with a request in progress")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if open[r.URL.Path] || !c.full() {
			next.ServeHTTP(w, r)
			return
		}
		c.answered(r)
		if r.ProtoMajor == 1 { // other requests share a connection of HTTP/2
			w.Header().Set("Connection", "close")
		}
		w.Header().Set("Retry-After", "1")
		full.ServeHTTP(w, r)
	})
}

func (c *connections) full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.busy+c.more > c.limit
}

// openFiles returns how many files the process may open, 0 if that is unknown.
func openFiles() int {
	var limit syscall.Rlimit // Go has raised it as far as possible
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(uint64(limit.Cur), 1<<30))
}
