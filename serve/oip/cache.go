package oip

import (
	"bytes"
	"slices"
	"sync/atomic"
)

// Cache keeps the contents of the last JSON part whose inputs are all binary. Clients often send the
// same one with other data. It is empty at first, and safe for concurrent use.
type Cache struct{ last atomic.Pointer[known] }

// known is a JSON part and its contents, which do not change.
type known struct {
	header  []byte
	request Request // its inputs have no data
	sizes   []int64
}

// find returns the request whose JSON part p has read, without its data, or nil.
func (c *Cache) find(p *parser) *Request {
	if c == nil {
		return nil
	}
	k := c.last.Load()
	if k == nil || !bytes.Equal(k.header, p.header) {
		return nil
	}
	p.sizes = k.sizes
	return k.copy()
}

func (k *known) copy() *Request {
	r := k.request
	r.Inputs = slices.Clone(r.Inputs)
	return &r
}

// keep stores a request before its data are read.
func (c *Cache) keep(p *parser, r *Request) {
	if c == nil || !p.binary || slices.Contains(p.sizes, -1) {
		return
	}
	k := &known{header: p.header, request: *r, sizes: p.sizes}
	k.request = *k.copy()
	c.last.Store(k)
}
