package isolate

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync"
	"time"
)

// Bounds of messages.
const (
	maxFrame = 1 << 20 // bytes
	maxText  = 4 << 10 // bytes of a string
	maxList  = 4 << 10 // items of a list
	maxRank  = 16
)

// coder reads or writes the fields of a message: numbers in 8 bytes, little-endian; strings and
// lists after their length.
type coder struct {
	bytes   []byte // written, or still to be read
	reading bool
	err     error // the first error of reading
}

// bad records the first error; later reads return zeros.
func (c *coder) bad(what string) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: %s", errProtocol, what)
	}
	c.bytes = nil
}

func (c *coder) number(x *uint64) {
	switch {
	case !c.reading:
		c.bytes = binary.LittleEndian.AppendUint64(c.bytes, *x)
	case len(c.bytes) < 8:
		*x = 0
		c.bad("it is too short")
	default:
		*x, c.bytes = binary.LittleEndian.Uint64(c.bytes), c.bytes[8:]
	}
}

// small codes a number up to a bound.
func small[T ~uint8 | ~int8 | ~int | ~uint32](c *coder, x *T, most uint64) {
	n := uint64(*x)
	c.number(&n)
	if n > most {
		c.bad(fmt.Sprintf("number %d, want at most %d", n, most))
		n = 0
	}
	*x = T(n)
}

func (c *coder) signed(x *int64) {
	n := uint64(*x)
	c.number(&n)
	*x = int64(n)
}

func (c *coder) float(x *float64) {
	n := math.Float64bits(*x)
	c.number(&n)
	*x = math.Float64frombits(n)
}

func (c *coder) flag(x *bool) {
	n := 0
	if *x {
		n = 1
	}
	small(c, &n, 1)
	*x = n == 1
}

func (c *coder) text(s *string, most int) {
	n := len(*s)
	small(c, &n, uint64(most))
	switch {
	case !c.reading:
		c.bytes = append(c.bytes, *s...)
	case n > len(c.bytes):
		c.bad("a string is too short")
	default:
		*s, c.bytes = string(c.bytes[:n]), c.bytes[n:]
	}
}

// list codes the number of items, then the items.
func list[T any](c *coder, items *[]T, most int, each func(*T)) {
	n := len(*items)
	small(c, &n, uint64(most))
	if !c.reading {
		for i := range *items {
			each(&(*items)[i])
		}
		return
	}
	*items = nil
	for ; n > 0 && c.err == nil; n-- {
		var x T
		each(&x)
		*items = append(*items, x)
	}
}

// errTooLong means that a message is too long to be sent. The link remains usable.
var errTooLong = errors.New("message too long")

// message is a message in either direction.
type message interface{ code(c *coder) }

// frame appends a message with its length and kind.
func (t table) frame(to []byte, m message) ([]byte, error) {
	start := len(to)
	c := &coder{bytes: append(to, 0, 0, 0, 0, t.kindOf(m))}
	m.code(c)
	n := len(c.bytes) - start - 4
	if c.err != nil || n > maxFrame {
		return to, fmt.Errorf("%w: a %T of %d bytes", errTooLong, m, n)
	}
	binary.LittleEndian.PutUint32(c.bytes[start:], uint32(n))
	return c.bytes, nil
}

// parse decodes a frame without its length. The frame is not empty.
func (t table) parse(frame []byte) (message, error) {
	m := t.make(frame[0])
	if m == nil {
		return nil, fmt.Errorf("%w: of kind %d", errProtocol, frame[0])
	}
	c := &coder{bytes: frame[1:], reading: true}
	m.code(c)
	if c.err == nil && len(c.bytes) > 0 {
		c.bad("it is too long")
	}
	return m, c.err
}

// link is one end of the socket. One goroutine reads, any goroutine writes.
type link struct {
	conn         net.Conn
	reader       *bufio.Reader
	out, in      table
	frame        []byte // of the last message read
	writeTimeout time.Duration

	mu  sync.Mutex
	buf []byte
}

func newLink(conn net.Conn, out, in table, writeTimeout time.Duration) *link {
	return &link{conn: conn, reader: bufio.NewReaderSize(conn, 16<<10), out: out, in: in, writeTimeout: writeTimeout}
}

// write sends a message. After errors other than errTooLong the link is unusable.
func (l *link) write(m message) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.buf, err = l.out.frame(l.buf[:0], m); err != nil {
		return err
	}
	if l.writeTimeout > 0 {
		_ = l.conn.SetWriteDeadline(time.Now().Add(l.writeTimeout)) // sockets support deadlines
	}
	_, err = l.conn.Write(l.buf)
	return err
}

// read waits for a message. The message owns its memory.
func (l *link) read() (message, error) {
	var head [4]byte
	if _, err := io.ReadFull(l.reader, head[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n == 0 || n > maxFrame {
		return nil, fmt.Errorf("%w: %d bytes, want at most %d", errProtocol, n, maxFrame)
	}
	if cap(l.frame) < int(n) {
		l.frame = make([]byte, n)
	}
	if _, err := io.ReadFull(l.reader, l.frame[:n]); err != nil {
		return nil, err
	}
	return l.in.parse(l.frame[:n])
}
