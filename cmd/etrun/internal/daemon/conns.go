package daemon

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// connections bounds how many there are. Where all places are taken, a new one gets that of
// the connection that has been idle for longest; where none is idle, it is closed.
type connections struct {
	most int

	mu   sync.Mutex
	all  map[net.Conn]*list.Element // nil while a request is under way
	idle list.List                  // of net.Conn, the longest idle first
}

func newConnections(most int) *connections {
	return &connections{most: most, all: make(map[net.Conn]*list.Element)}
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
		if len(c.all) < c.most || c.dropIdle() {
			c.all[conn] = c.idle.PushBack(conn)
		} else {
			go conn.Close() // closing may wait, as that of TLS does
		}
	case http.StateIdle:
		if _, known := c.all[conn]; known {
			c.all[conn] = c.idle.PushBack(conn)
		}
	case http.StateClosed, http.StateHijacked:
		delete(c.all, conn)
	}
}

// dropIdle closes the longest idle connection; false where there is none.
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
