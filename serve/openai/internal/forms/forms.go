// Package forms makes the forms of texts that requests prescribe, and keeps those that were used last.
package forms

import (
	"context"
	"slices"
	"sync"

	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/text"
)

// formCache keeps the forms that were used last: clients send the same schema with each request, and to compile a large one can
// take longer than to answer. Each client has its own: the time of an answer does not depend on the schemas of others.
type formCache struct {
	mu   sync.Mutex
	list []cachedForm // the most recently used is the last
	size int          // of the forms and their keys
}

type cachedForm struct {
	key  string
	form *text.Form
}

// Limits on the forms that are kept: about 25 MB.
const (
	maxCachedForms = 64
	maxCachedSize  = 250_000
)

// kept are those of all models: a form does not depend on one.
var kept formCache

// maxCompiling is the number of forms that are made at once: a large one keeps a processor busy for a second.
const maxCompiling = 2

var compiling = make(chan struct{}, maxCompiling)

// Maker makes the forms of a request, or finds them in a cache. Their memory counts toward that of requests.
type Maker struct {
	ctx    context.Context    // of the request: nothing waits longer
	memory *serve.Reservation // nil counts nothing
	cache  *formCache
}

// NewMaker returns a maker with the cache of all models. hold counts the memory, nil for none.
func NewMaker(ctx context.Context, hold *serve.Reservation) *Maker { return &Maker{ctx, hold, &kept} }

// Within returns a maker that waits no longer than a further context.
func (m *Maker) Within(ctx context.Context) *Maker { return &Maker{ctx, m.memory, m.cache} }

// keptBytes are those of a state of a form that was made.
const keptBytes = 100

// Make makes a form when others are made.
func (m *Maker) Make(compile func(limit text.FormLimit) (*text.Form, error)) (*text.Form, error) {
	select {
	case compiling <- struct{}{}:
		defer func() { <-compiling }()
	case <-m.ctx.Done():
		return nil, &fault.Unmade{Err: context.Cause(m.ctx)}
	}
	used := int64(0)
	form, err := compile(func(bytes int64) error {
		switch {
		case m.ctx.Err() != nil:
			return &fault.Unmade{Err: context.Cause(m.ctx)}
		case m.memory == nil:
			return nil
		}
		if err := m.memory.Grow(bytes); err != nil {
			return &fault.Unmade{Err: err}
		}
		used += bytes
		return nil
	})
	if err == nil {
		used -= min(used, keptBytes*int64(form.Size())) // until the end of the request
	}
	if m.memory != nil {
		m.memory.Shrink(used)
	}
	return form, err
}

// Object returns the form of any JSON object.
func (m *Maker) Object() (*text.Form, error) {
	return m.cache.get(m, "object", func(limit text.FormLimit) (*text.Form, error) { return text.JSONForm(limit) })
}

// Schema returns the form of JSON by a schema.
func (m *Maker) Schema(schema []byte) (*text.Form, error) {
	return m.cache.get(m, "schema "+string(schema), func(limit text.FormLimit) (*text.Form, error) { return text.SchemaForm(schema, limit) })
}

// Grammar returns the form of a grammar in GBNF.
func (m *Maker) Grammar(gbnf string) (*text.Form, error) {
	return m.Kept("grammar "+gbnf, func(limit text.FormLimit) (*text.Form, error) { return text.GrammarForm(gbnf, limit) })
}

// Kept returns the form of a key, which it makes if it is not kept.
func (m *Maker) Kept(key string, compile func(text.FormLimit) (*text.Form, error)) (*text.Form, error) {
	return m.cache.get(m, key, compile)
}

// size is the size of a form with its key, in states.
func (c cachedForm) size() int { return c.form.Size() + len(c.key)/100 }

// get returns the form of a key, which it makes if it is not kept.
func (c *formCache) get(m *Maker, key string, compile func(text.FormLimit) (*text.Form, error)) (*text.Form, error) {
	client := serve.ClientOf(m.ctx)
	key = client.Credential + client.Address + key
	if form := c.find(key); form != nil {
		return form, nil
	}
	return m.Make(func(limit text.FormLimit) (*text.Form, error) {
		if form := c.find(key); form != nil { // another request has made it
			return form, nil
		}
		form, err := compile(limit) // not locked: requests for forms that are kept do not wait for it
		if err == nil {
			c.keep(key, form)
		}
		return form, err
	})
}

// keep adds a form, and drops those that were not used for the longest time.
func (c *formCache) keep(key string, form *text.Form) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.ContainsFunc(c.list, func(f cachedForm) bool { return f.key == key }) {
		return // two requests have made it at once
	}
	entry := cachedForm{key, form}
	c.list, c.size = append(c.list, entry), c.size+entry.size()
	for len(c.list) > maxCachedForms || c.size > maxCachedSize {
		c.size -= c.list[0].size()
		c.list = slices.Delete(c.list, 0, 1) // which clears its place: a form can have 20 MB
	}
}

// find returns a form that is kept, nil if it is not.
func (c *formCache) find(key string) *text.Form {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.list, func(f cachedForm) bool { return f.key == key })
	if i < 0 {
		return nil
	}
	found := c.list[i]
	c.list = append(slices.Delete(c.list, i, i+1), found)
	return found.form
}
