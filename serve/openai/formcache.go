package openai

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/etrun-go/etrun/text"
)

// formCache keeps the forms that were used last: clients send the same schema with each request, and to compile a large one can
// take longer than to answer.
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

// forms are those of all models: a form does not depend on one.
var forms formCache

// maxCompiling is the number of forms that are made at once: each can need a hundred megabytes until it is made, which are not counted
// in the memory of requests.
const maxCompiling = 2

var compiling = make(chan struct{}, maxCompiling)

// compiled makes a form when there is room for it.
func compiled(compile func() (*text.Form, error)) (*text.Form, error) {
	compiling <- struct{}{}
	defer func() { <-compiling }()
	return compile()
}

// size is the size of a form with its key, in states.
func (c cachedForm) size() int { return c.form.Size() + len(c.key)/100 }

// get returns the form of a key, which it makes if it is not kept.
func (c *formCache) get(key string, compile func() (*text.Form, error)) (*text.Form, error) {
	if form := c.find(key); form != nil {
		return form, nil
	}
	return compiled(func() (*text.Form, error) {
		if form := c.find(key); form != nil { // another request has made it
			return form, nil
		}
		form, err := compile() // not locked: requests for forms that are kept do not wait for it
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

// schema returns the form of JSON by a schema.
func (c *formCache) schema(schema []byte) (*text.Form, error) {
	return c.get("schema "+string(schema), func() (*text.Form, error) { return text.SchemaForm(schema) })
}

// grammar returns the form of a grammar in GBNF, some of whose rules are schemas.
func (c *formCache) grammar(gbnf string, schemas map[string][]byte) (*text.Form, error) {
	names, err := json.Marshal(schemas)
	if err != nil { // cannot happen for texts
		return nil, err
	}
	return c.get("grammar "+string(names)+gbnf, func() (*text.Form, error) { return text.GrammarForm(gbnf, schemas) })
}
