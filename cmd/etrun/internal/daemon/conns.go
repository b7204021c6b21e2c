package daemon

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// connections bounds the number of connections. At the limit, a new connection replaces the one
// that has been idle longest; if none is idle, the new one is closed.
type connections struct {
	limit int

	mu   sync.Mutex
	all  map[net.Conn]*list.Element // nil during a request
	idle list.List                  // of net.Conn, the longest idle first
}

func newConnections(limit int) *connections {
	return &connections{limit: limit, all: make(map[net.Conn]*list.Element)}
}

// state is http.Server.ConnState.
func (c *connections) state(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.all[conn]; e != nil {
		c.idle.Remove(e)
		c.all[conn] = nil
	}
	switch state {
	case http.StateNew:
		if len(c.all) < c.limit || c.dropIdle() {
			c.all[conn] = c.idle.PushBack(conn)
		} else {
			go conn.Close() // closing may block, as with TLS
		}
	case http.StateIdle:
		if _, known := c.all[conn]; known {
			c.all[conn] = c.idle.PushBack(conn)
		}
	case http.StateClosed, http.StateHijacked:
		delete(c.all, conn)
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
	go conn.Close()
	return true
}
