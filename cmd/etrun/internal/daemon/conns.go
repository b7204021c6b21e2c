package daemon

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// connections bounds the number of connections. Those without a request in progress are idle: new
// ones, also before and during their TLS handshake and while a header arrives, those that wait for
// their next request, and those whose request was answered. At the limit, a new connection replaces
// the one that has been idle longest.
//
// If requests are in progress on nearly all connections, reserve more are accepted, for health
// checks only: other requests on them are refused at once. So there is always room for that many
// idle ones, and a client that connects has some time to send its request.
type connections struct {
	limit, reserve int

	mu   sync.Mutex
	all  map[net.Conn]*list.Element // nil during a request
	idle list.List                  // of net.Conn, the longest idle first
}

// maxReserve bounds the connections beyond the limit.
const maxReserve = 64

func newConnections(limit int) *connections {
	return &connections{limit: limit, reserve: min(maxReserve, 4+limit/8), all: make(map[net.Conn]*list.Element)}
}

// state is http.Server.ConnState.
func (c *connections) state(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		if len(c.all) < c.room() || c.dropIdle() {
			c.all[conn] = c.idle.PushBack(conn)
		} else {
			abort(conn)
		}
	case http.StateIdle:
		c.rest(conn)
	case http.StateClosed, http.StateHijacked:
		if e := c.all[conn]; e != nil {
			c.idle.Remove(e)
		}
		delete(c.all, conn)
	}
}

// room returns how many connections there may be now. c.mu is held.
func (c *connections) room() int {
	return min(max(c.limit, c.busy()+c.reserve), c.limit+2*c.reserve)
}

// busy returns the number of connections with a request in progress. c.mu is held.
func (c *connections) busy() int { return len(c.all) - c.idle.Len() }

// rest makes a connection the one that has been idle for the shortest time. c.mu is held.
func (c *connections) rest(conn net.Conn) {
	switch e, known := c.all[conn]; {
	case e != nil:
		c.idle.MoveToBack(e)
	case known:
		c.all[conn] = c.idle.PushBack(conn)
	}
}

// dropIdle closes the connection that has been idle longest; it returns false if there is none.
func (c *connections) dropIdle() bool {
	first := c.idle.Front()
	if first == nil {
		return false
	}
	conn := c.idle.Remove(first).(net.Conn)
	delete(c.all, conn)
	abort(conn)
	return true
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
		c.begun(r)
		defer c.answered(r)
		next.ServeHTTP(w, r)
	})
}

// begun makes the connection of a request busy.
func (c *connections) begun(r *http.Request) {
	conn, _ := r.Context().Value(connKey{}).(net.Conn)
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.all[conn]; e != nil {
		c.idle.Remove(e)
		c.all[conn] = nil
	}
}

// answered makes the connection of a request idle.
func (c *connections) answered(r *http.Request) {
	conn, _ := r.Context().Value(connKey{}).(net.Conn)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rest(conn)
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
		w.Header().Set("Connection", "close")
		w.Header().Set("Retry-After", "1")
		full.ServeHTTP(w, r)
	})
}

func (c *connections) full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.busy() > c.limit
}
